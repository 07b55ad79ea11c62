"""Decides which URLs and addresses the URLs in specs may lead to.

The author of an object must not reach other networks through the operator.

Decision: a URL is checked twice: its text when its object is read, and the addresses of its host when a connection is
made (`tarsy.outbound`), since a name proves nothing. Outside a pod only addresses that belong to no server are
rejected. In a pod every address that is not public is rejected, except for Services of the object's own namespace.
Names are looked up in a pod as absolute ones: with the search domains of a pod, the owner of a namespace called `com`
or `svc` could answer for names of others.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network

from tarsy.plan.place import Place, ServiceAddress

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_OPTION = "--url-host"
CLUSTER_DOMAIN = "cluster.local"
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
Network = IPv4Network | IPv6Network


def domain_of(resolv_conf: str) -> str:
    """Finds the cluster's domain in a pod's resolv.conf: the search domain after `svc.`, else `cluster.local`."""
    lines = (line.split() for line in resolv_conf.splitlines())
    words = (word for line in lines if line[:1] == ["search"] for word in line[1:])
    domains = (word.removeprefix("svc.").rstrip(".").lower() for word in words if word.startswith("svc."))
    return next((domain for domain in domains if _DOMAIN.fullmatch(domain)), CLUSTER_DOMAIN)


def is_public(address: str) -> bool:
    """Whether an IP address (a scope after `%` is ignored) belongs to the public internet.

    Addresses that carry another inside (mapped, translated, tunnelled) are judged by what they carry too.
    """
    found = _address(address)
    return found is not None and all(_plainly_public(inner) for inner in (found, *_carried(found)))


@dataclass(frozen=True, slots=True)
class Destinations:
    """The destinations that the administrator allows.

    Args:
        in_pod: the process runs in a cluster, where loopback and private addresses are not for tenants.
        hosts: names opened for every namespace; `*.example.com` stands for every name below it.
        networks: addresses opened for every namespace.
        cluster_domain: domain of the cluster's Services, in lower case.
    """

    in_pod: bool = False
    hosts: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()
    cluster_domain: str = CLUSTER_DOMAIN

    @classmethod
    def of(cls, opened: Iterable[str], *, in_pod: bool, cluster_domain: str = CLUSTER_DOMAIN) -> Destinations:
        """Parses the entries of an administrator: names, `*.` with a name, addresses, networks.

        Args:
            opened: the entries.
            in_pod: whether the process runs in a cluster.
            cluster_domain: domain of the cluster's Services, in lower case.

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
                odd = not text.isascii() or any(c in text for c in "/:@ []") or "*" in text.removeprefix("*.")
                if not text or odd:
                    raise ValueError(
                        f"{word!r} is not a host name, an address or a network; write tools.example.com, "
                        "*.example.com, 10.1.2.3 or 10.0.0.0/8"
                    ) from None
                hosts.append(text)
        domain = cluster_domain.strip(".").lower()
        if not _DOMAIN.fullmatch(domain):
            raise ValueError(f"{cluster_domain!r} is no domain of a cluster; write it as {CLUSTER_DOMAIN}")
        return cls(in_pod, tuple(hosts), tuple(networks), domain)

    def why_not(self, url: str, namespace: str) -> str | None:
        """Returns why a URL of an object in `namespace` is not allowed, judging by its text; None: it is allowed."""
        try:
            place = Place.of(url)
        except ValueError as error:
            return str(error)
        host = place.host
        if self._is_open(host):
            return None
        if place.address is not None:
            return self._of_address(host, place.address)
        service = self._namespace_of(host)
        if self.in_pod and service is not None and service != namespace:
            return (
                f"host {host} is a Service of namespace {service}, not of {namespace}; move the object there, or "
                f"{_remedy(host)}"
            )
        if self.in_pod and (host == "localhost" or host.endswith(".localhost")):
            return f"host {host} is the operator's own pod; {_remedy(host)}"
        return None

    def asked(self, host: str) -> str:
        """Returns the name to look up for a host; an allowed name is resolved as in the pod."""
        if not self.in_pod or self._is_open(host):
            return host
        return f"{host}.{self.cluster_domain}." if host.endswith(".svc") else f"{host}."

    def why_not_at(self, host: str, address: str, namespace: str, *, alias: bool = False) -> str | None:
        """Returns why a host may not be connected to at one of its addresses; None: it may.

        Args:
            host: as `Place` has it.
            address: one of its addresses.
            namespace: of the object whose URL it is.
            alias: the name is another one's alias, as that of an ExternalName Service is.
        """
        found = _address(address)
        if self._is_open(host):
            return None
        if found is None:
            return f"host {host} has no valid IP address; {_remedy(host)}"
        return self._of_address(host, found, own=not alias and self._is_own(host, namespace))

    def _of_address(self, host: str, found: ServiceAddress, *, own: bool = False) -> str | None:
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

    def _is_own(self, host: str, namespace: str) -> bool:
        """Whether a host is `NAME.NAMESPACE.svc`, with or without the cluster's domain."""
        labels = host.removesuffix(f".{self.cluster_domain}").split(".")
        return len(labels) == 3 and labels[1:] == [namespace, "svc"]

    def _namespace_of(self, host: str) -> str | None:
        """The namespace of a name below `svc` of this cluster; None for any other."""
        labels = host.removesuffix(f".{self.cluster_domain}").split(".")
        return labels[-2] if len(labels) > 2 and labels[-1] == "svc" else None


def _remedy(host: str) -> str:
    return f"ask the administrator to start operator and workers with {_OPTION} {host}"


def _address(text: str) -> ServiceAddress | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _plainly_public(address: ServiceAddress) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved


def _carried(address: ServiceAddress) -> tuple[IPv4Address, ...]:
    if isinstance(address, IPv4Address):
        return ()
    carried = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        carried.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return tuple(inner for inner in carried if inner is not None)
