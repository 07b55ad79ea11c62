"""The aggregated door's certificate, and the Kubernetes API told to believe it (`caBundle` of the APIService).

Decision: each replica makes a certificate of its own, whose key never leaves its memory, and adds the authority to the
one APIService. So no Secret is needed, nothing is shared, and a replica that finds its
authority gone adds it again. The oldest authorities go when there are too many, and those that are over.
"""

import asyncio
import base64
import binascii
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tarsy.http.identity import RECORD_GROUP
from tarsy.http.route import RECORD_VERSION
from tarsy.http.tls import (
    CertificateError,
    ServingCertificate,
    believed,
    make_certificate,
    needs_renewal,
    read_certificate,
)
from tarsy.kube.client import ApiError, KubeClient

SERVICE = "tarsy-record"
API_SERVICE = f"{RECORD_VERSION}.{RECORD_GROUP}"
_RACES = 10


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
        self._names = (f"{SERVICE}.{namespace}.svc", f"{SERVICE}.{namespace}.svc.cluster.local")
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
        for _ in range(_RACES):
            found = await self._client.find("APIService", None, API_SERVICE)
            if found is None:
                raise CertificateError(f"the APIService {API_SERVICE} is not there: apply manifests/base, which has it")
            spec: dict[str, Any] = found["spec"]
            bundle = self._bundle(own, spec.get("caBundle"))
            if bundle == spec.get("caBundle"):
                return
            try:
                await self._client.replace({**found, "spec": {**spec, "caBundle": bundle}})
            except ApiError as error:
                if error.reason != "Conflict":
                    raise
            else:
                return
        raise ApiError(409, "Conflict", f"the APIService {API_SERVICE} changes all the time")

    def _bundle(self, own: ServingCertificate, present: str | None) -> str:
        """The `caBundle` by which `own` is believed, beside those of other replicas, which are in `present`."""
        found = _decoded(present)
        wanted = own.authority if self._files is not None else believed(own.authority, found, datetime.now(UTC))
        return base64.b64encode(wanted.encode()).decode()


def _decoded(bundle: str | None) -> str:
    try:
        return base64.b64decode(bundle or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
