"""Manages the certificate of the aggregated port, and publishes its CA in the `caBundle` of the APIService.

Decision: each replica creates a certificate of its own, whose key never leaves its memory, and adds its CA to the
APIService. So no Secret is needed and nothing is shared; a replica adds its CA again if it is missing. Expired CAs, and
the oldest ones of too many, are removed.
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
    """Maintains the certificate of this process and the APIService of the installation.

    Args:
        client: authenticated as the operator.
        namespace: namespace of the Service of the APIService.
        files: folder with an external certificate: `tls.crt`, `tls.key` and optionally `ca.crt`. Without `ca.crt`, the
            `caBundle` of the APIService is also managed externally. None: the process creates its certificate.
    """

    def __init__(self, client: KubeClient, namespace: str, files: Path | None = None) -> None:
        self._client = client
        self._files = files
        self._names = (f"{_SERVICE}.{namespace}.svc", f"{_SERVICE}.{namespace}.svc.cluster.local")
        self._own: ServingCertificate | None = None

    async def certificate(self) -> ServingCertificate:
        """Returns the current certificate; a new one if it expires soon or its files have changed.

        Raises:
            CertificateError: the files do not exist; the message contains the remedy.
        """
        if self._files is not None:
            return await asyncio.to_thread(read_certificate, self._files)
        own = self._own or make_certificate(self._names, datetime.now(UTC))
        if needs_renewal(own, datetime.now(UTC)):
            own = make_certificate(self._names, datetime.now(UTC))
        self._own = own
        return own

    async def publish(self, own: ServingCertificate) -> None:
        """Publishes the CA of a certificate.

        Raises:
            CertificateError: the APIService does not exist.
            ApiError: the Kubernetes API refused or is unavailable.
        """
        if not own.authority:
            return
        if not await keep_ca_bundle(self._client, "APIService", API_SERVICE, partial(self._believing, own)):
            text = f"the APIService {API_SERVICE} does not exist: apply manifests/base, which contains it"
            raise CertificateError(text)

    def _believing(self, own: ServingCertificate, found: dict[str, Any]) -> dict[str, Any]:
        """Returns the APIService with the CA of `own` in its `caBundle`."""
        spec = found["spec"]
        kept = self._files is not None  # external certificates are the same for all replicas
        bundle = encoded(own.authority) if kept else with_authority(own.authority, spec.get("caBundle"))
        return {**found, "spec": {**spec, "caBundle": bundle}}
