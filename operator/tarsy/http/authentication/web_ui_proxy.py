"""Authenticates users of the web UI by an authenticating proxy.

Decision: the proxy authenticates with a TLS client certificate, never with a header alone, as the front proxy of
kube-apiserver does. It authenticates reads; writes use the person's own token, which the proxy may forward. Users of a
proxy that forwards none have read-only access. The proxy cannot name users or groups of the system.
"""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tarsy.http.admission.tls import CertificateError
from tarsy.http.authentication.front_proxy import NAME, NAMESPACE, is_named
from tarsy.http.authentication.identity import Caller
from tarsy.http.errors import Unauthorized
from tarsy.kube.client import KubeClient

OPTION: Final = "--page-proxy-ca"
AUTHENTICATED: Final = "system:authenticated"
_SYSTEM: Final = "system:"


@dataclass(frozen=True, slots=True)
class PageProxySettings:
    """Settings of the authenticating proxy.

    Args:
        authority: file with the PEM of a CA that signs only the client certificate of the proxy.
        names: permitted common names; empty: any certificate of `authority`.
        user_header: header with the user name.
        group_header: header with the groups; repeated, or separated by commas.
    """

    authority: Path
    names: tuple[str, ...] = ()
    user_header: str = "X-Remote-User"
    group_header: str = "X-Remote-Group"


@dataclass(frozen=True, slots=True)
class PageProxy:
    """An authenticating proxy; `authority` is PEM."""

    settings: PageProxySettings
    authority: str = field(repr=False)

    def person(self, request: web.Request) -> Caller | None:
        """Returns the user that the proxy names; None if the connection is not that of the proxy, or names no user.

        Raises:
            Unauthorized: the proxy names several users, or a user of the system.
        """
        peer = request.transport.get_extra_info("peercert") if request.transport is not None else None
        if not is_named(peer, self.settings.names):
            return None
        said = request.headers.getall(self.settings.user_header, [])
        if not any(said):
            return None
        if len(said) > 1:  # a proxy that appends its header would let clients choose the user
            header = self.settings.user_header
            raise Unauthorized(f"the proxy sent {header} more than once: it must replace the header of the request")
        if said[0].startswith(_SYSTEM) or not said[0].isprintable():
            raise Unauthorized(
                f"a proxy must not send user names that begin with {_SYSTEM} or contain unprintable characters"
            )
        groups = (
            one.strip() for line in request.headers.getall(self.settings.group_header, []) for one in line.split(",")
        )
        mine = dict.fromkeys(one for one in groups if one.isprintable() and one and not one.startswith(_SYSTEM))
        return Caller(said[0], groups=(*mine, AUTHENTICATED), by_proxy=True)


def read_page_proxy(settings: PageProxySettings) -> PageProxy:
    """Reads the CA of the proxy.

    Raises:
        CertificateError: the file cannot be read, or contains no certificate.
    """
    try:
        authority = settings.authority.read_text()
        if not x509.load_pem_x509_certificates(authority.encode()):
            raise ValueError
    except (OSError, ValueError):
        raise CertificateError(f"{OPTION}: {settings.authority} contains no readable certificate") from None
    return PageProxy(settings, authority)


async def require_separate_authority(proxy: PageProxy, client: KubeClient) -> None:
    """Refuses the client CA of the cluster as the CA of the proxy: its client certificates could impersonate any user.

    Raises:
        CertificateError: the CA is that of the cluster.
        ApiError: the Kubernetes API refused or is unavailable.
    """
    data = (await client.find("ConfigMap", NAMESPACE, NAME) or {}).get("data") or {}
    if _keys(proxy.authority) & _keys(data.get("client-ca-file", "")):
        raise CertificateError(
            f"{OPTION}: {proxy.settings.authority} is the client CA of the cluster: any client certificate that it "
            "signed could then impersonate any user; create a CA for the proxy alone"
        )


def trust_proxy(context: ssl.SSLContext, proxy: PageProxy) -> None:
    """Makes a TLS context accept the certificate of the proxy and clients without one; others are refused."""
    context.load_verify_locations(cadata=proxy.authority)
    context.verify_mode = ssl.CERT_OPTIONAL


def _keys(pem: str) -> set[bytes]:
    """Returns the public keys: a renewed certificate of the same key belongs to the same CA."""
    try:
        found = [one.public_key() for one in x509.load_pem_x509_certificates(pem.encode())]
    except ValueError:
        return set()
    return {key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in found}
