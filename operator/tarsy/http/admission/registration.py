"""The aggregated door's certificate, and the Kubernetes API told to believe it (`caBundle` of the APIService).

Decision: each replica makes a certificate of its own, whose key never leaves its memory, and adds the authority to the
one APIService. So no Secret is needed, nothing is shared, and a replica that finds its
authority gone adds it again. The oldest authorities go when there are too many, and those that are over.
"""

import asyncio
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from tarsy.http.admission.ca_bundle import encoded, keep_ca_bundle, with_authority
from tarsy.http.admission.tls import (
    CertificateError,
    ServingCertificate,
    make_certificate,
    needs_renewal,
    read_certificate,
)
from tarsy.http.models import RECORD_GROUP, RECORD_VERSION
from tarsy.kube.client import KubeClient

_SERVICE = "tarsy-record"
API_SERVICE = f"{RECORD_VERSION}.{RECORD_GROUP}"


class Registration:
    """Keeps the certificate of this process, and the APIService of the installation.

    Args:
        client: as the operator.
        namespace: of the Service that the APIService leads to.
        files: a folder with `tls.crt`, `tls.key` and perhaps `ca.crt`, by which somebody else gives the certificate.
            Without `ca.crt` that somebody also keeps the APIService's `caBundle`.
    """

    def __init__(self, client: KubeClient, namespace: str, files: Path | None = None) -> None:
        self._client = client
        self._files = files
        self._names = (f"{_SERVICE}.{namespace}.svc", f"{_SERVICE}.{namespace}.svc.cluster.local")
        self._own: ServingCertificate | None = None

    async def certificate(self) -> ServingCertificate:
        """The certificate to show now: the same as before, unless that is over soon or its files have changed.

        Raises:
            CertificateError: the files are not there; the message says what to do.
        """
        if self._files is not None:
            return await asyncio.to_thread(read_certificate, self._files)
        own = self._own or make_certificate(self._names, datetime.now(UTC))
        if needs_renewal(own, datetime.now(UTC)):
            own = make_certificate(self._names, datetime.now(UTC))
        self._own = own
        return own

    async def publish(self, own: ServingCertificate) -> None:
        """Makes the Kubernetes API believe a certificate.

        Raises:
            CertificateError: there is no APIService.
            ApiError: the Kubernetes API refused or is away.
        """
        if not own.authority:
            return
        if not await keep_ca_bundle(self._client, "APIService", API_SERVICE, partial(self._believing, own)):
            text = f"the APIService {API_SERVICE} does not exist: apply manifests/base, which contains it"
            raise CertificateError(text)

    def _believing(self, own: ServingCertificate, found: dict[str, Any]) -> dict[str, Any]:
        """The APIService with the `caBundle` by which `own` is believed."""
        spec = found["spec"]
        kept = self._files is not None  # by whoever gives the files, and no replica has another
        bundle = encoded(own.authority) if kept else with_authority(own.authority, spec.get("caBundle"))
        return {**found, "spec": {**spec, "caBundle": bundle}}
