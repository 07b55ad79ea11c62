"""Where the URLs in specs may lead (DESIGN section 7): who may write an object must not reach through the operator.

Decision: judged twice, by what a URL says when its object is read, and by the addresses that its host really has when
a connection is made, since a name proves nothing. Outside a pod only addresses that are nobody's server are refused;
in a pod everything that is not public, but for Services of the object's own namespace.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import urlsplit

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_OPTION = "--url-host"
Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def is_public(address: str) -> bool:
    """Whether an IP address (a scope after `%` is ignored) belongs to the public internet.

    Addresses that carry another inside (mapped, translated, tunnelled) are judged by what they carry too.
    """
    found = _address(address)
    return found is not None and all(_plainly_public(inner) for inner in (found, *_carried(found)))


@dataclass(frozen=True, slots=True)
class Destinations:
    """What the administrator lets URLs lead to.

    Args:
        in_pod: the process runs in a cluster, where loopback and private addresses are not for tenants.
        hosts: names opened for every namespace; `*.example.com` stands for every name below it.
        networks: addresses opened for every namespace.
    """

    in_pod: bool = False
    hosts: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, opened: Iterable[str], *, in_pod: bool) -> Destinations:
        """From the words of an administrator: names, `*.` with a name, addresses, networks.

        Raises:
            ValueError: one of them is none of these; its text names it.
        """
        hosts: list[str] = []
        networks: list[Network] = []
        for word in opened:
            text = word.strip().lower().rstrip(".")
            try:
                networks.append(ipaddress.ip_network(text.strip("[]"), strict=False))
            except ValueError:
                if not text or any(c in text for c in "/:@ []") or "*" in text.removeprefix("*."):
                    raise ValueError(
                        f"{word!r} is no host name, no address and no network; write tools.example.com, "
                        "*.example.com, 10.1.2.3 or 10.0.0.0/8"
                    ) from None
                hosts.append(text)
        return cls(in_pod, tuple(hosts), tuple(networks))

    def why_not(self, url: str, namespace: str) -> str | None:
        """Why a URL of an object in `namespace` may not be used, as far as the URL itself tells; None: it may."""
        host = _host(url)
        if self._is_open(host):
            return None
        literal = _address(host)
        if literal is not None:
            return self._of_address(host, literal)
        service = _namespace_of(host)
        if self.in_pod and service is not None and service != namespace:
            return (
                f"host {host} is a Service of namespace {service}, not of {namespace}; move the object there, or "
                f"{_remedy(host)}"
            )
        if self.in_pod and (host == "localhost" or host.endswith(".localhost")):
            return f"host {host} is the operator's own pod; {_remedy(host)}"
        return None

    def why_not_at(self, url: str, address: str, namespace: str) -> str | None:
        """Why the host of a URL may not be connected to at an address that it was found at; None: it may."""
        host, found = _host(url), _address(address)
        if self._is_open(host):
            return None
        if found is None:
            return f"host {host} has no address that can be judged; {_remedy(host)}"
        own = namespace in (_namespace_of(host), _short_namespace_of(host))
        return self._of_address(host, found, own=own)

    def _of_address(self, host: str, found: Address, *, own: bool = False) -> str | None:
        inner = (found, *_carried(found))
        if any(one in network for one in inner for network in self.networks):
            return None
        if any(one.is_link_local or one.is_multicast or one.is_unspecified for one in inner):
            return f"host {host} has a link-local, multicast or unspecified address; {_remedy(host)}"
        if not self.in_pod:
            return None
        if any(one.is_loopback for one in inner):
            return f"host {host} is the operator's own pod; {_remedy(host)}"
        if own or all(_plainly_public(one) for one in inner):
            return None
        return (
            f"host {host} has an address that is not public; use a Service of the object's own namespace "
            f"(NAME.NAMESPACE.svc), or {_remedy(host)}"
        )

    def _is_open(self, host: str) -> bool:
        return any(host.endswith(entry[1:]) if entry.startswith("*.") else host == entry for entry in self.hosts)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def _remedy(host: str) -> str:
    return f"ask the administrator to start operator and workers with {_OPTION} {host}"


def _namespace_of(host: str) -> str | None:
    """The namespace of `NAME.NAMESPACE.svc` and longer names of a Service (a pod's name by address proves nothing)."""
    labels = host.split(".")
    where = next((i for i in range(len(labels) - 1, 1, -1) if labels[i] == "svc"), None)
    return None if where is None else labels[where - 1]


def _short_namespace_of(host: str) -> str | None:
    labels = host.split(".")
    return labels[1] if len(labels) == 2 else None


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _plainly_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved


def _carried(address: Address) -> tuple[IPv4Address, ...]:
    if isinstance(address, IPv4Address):
        return ()
    carried = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        carried.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return tuple(inner for inner in carried if inner is not None)
