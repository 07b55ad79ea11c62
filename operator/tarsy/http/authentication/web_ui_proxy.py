"""People whom an authenticating proxy signed in: whose word is taken for that, and how it is said.

Decision: the word is that of a TLS client certificate and never of a header alone, as kube-apiserver holds it with its
own front proxy. It says who reads. What is written is written with the person's own token, which a proxy may forward;
one that forwards none gives its people a page to read. Names of the system are not a proxy's to give.
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
    """Which proxy may say who asks.

    Args:
        authority: a file with PEM of the certificates that sign the proxy's own, and nobody else's.
        names: the common names that it may have; none: any that `authority` signed.
        user_header: where it says who asks.
        group_header: where it says what groups they are in; repeated, or with commas between them.
    """

    authority: Path
    names: tuple[str, ...] = ()
    user_header: str = "X-Remote-User"
    group_header: str = "X-Remote-Group"


@dataclass(frozen=True, slots=True)
class PageProxy:
    """A proxy whose word is taken; `authority` is PEM."""

    settings: PageProxySettings
    authority: str = field(repr=False)

    def person(self, request: web.Request) -> Caller | None:
        """Whom the proxy names; None: the connection is not the proxy's, or it names nobody.

        Raises:
            Unauthorized: it names several, or a name that only Kubernetes itself gives.
        """
        peer = request.transport.get_extra_info("peercert") if request.transport is not None else None
        if not is_named(peer, self.settings.names):
            return None
        said = request.headers.getall(self.settings.user_header, [])
        if not any(said):
            return None
        if len(said) > 1:  # a proxy that adds its header to that of whoever asks would let them choose
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
    """The proxy that the settings say.

    Raises:
        CertificateError: its authority cannot be read, or is none.
    """
    try:
        authority = settings.authority.read_text()
        if not x509.load_pem_x509_certificates(authority.encode()):
            raise ValueError
    except (OSError, ValueError):
        raise CertificateError(f"{OPTION}: {settings.authority} contains no readable certificate") from None
    return PageProxy(settings, authority)


async def require_separate_authority(proxy: PageProxy, client: KubeClient) -> None:
    """Refuses an authority by which Kubernetes knows its own users: each of them could say to be anybody.

    Raises:
        CertificateError: it is one of those.
        ApiError: the Kubernetes API refused or is away.
    """
    data = (await client.find("ConfigMap", NAMESPACE, NAME) or {}).get("data") or {}
    if _keys(proxy.authority) & _keys(data.get("client-ca-file", "")):
        raise CertificateError(
            f"{OPTION}: {proxy.settings.authority} is the client CA of the cluster: any client certificate that it "
            "signed could then impersonate any user; create a CA for the proxy alone"
        )


def trust_proxy(context: ssl.SSLContext, proxy: PageProxy) -> None:
    """Lets a socket take the proxy's certificate, and clients without any; other certificates do not connect."""
    context.load_verify_locations(cadata=proxy.authority)
    context.verify_mode = ssl.CERT_OPTIONAL


def _keys(pem: str) -> set[bytes]:
    """The public keys: a certificate that was made anew for the same key is of the same authority."""
    try:
        found = [one.public_key() for one in x509.load_pem_x509_certificates(pem.encode())]
    except ValueError:
        return set()
    return {key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in found}
