"""Reads the namespaces of a request from `_meta`, which the arguments cannot change.

Decision: what a request carries is kept to, always. With `--bound NAMESPACE` one that carries nothing is refused, and
only requests for MCPServers of that namespace reach more than one: an MCPServer of another namespace that has found the
URL reaches its own namespace, whatever it grants.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tarsy.kubernetes_tools.kinds import NAME_PATTERN, Refused

NAMESPACES = "tarsy.dev/namespaces"
_MCPSERVER = "tarsy.dev/mcpserver"
ENFORCED = {NAMESPACES: "enforced"}
"""Declaration in the `_meta` of each tool."""

_ALL = "*"


@dataclass(frozen=True, slots=True)
class NamespaceReach:
    """The namespaces of a request; None is all of them."""

    namespaces: frozenset[str] | None = None

    @property
    def only(self) -> str | None:
        """Returns the only namespace of a request; None if there are several, or all."""
        return next(iter(self.namespaces)) if self.namespaces is not None and len(self.namespaces) == 1 else None

    def includes(self, namespace: str | None) -> bool:
        """Reports whether a namespace is in reach."""
        return self.namespaces is None or namespace in self.namespaces

    def checked(self, namespace: str) -> str:
        """Returns a namespace in reach. Raises Refused for any other."""
        if not self.includes(namespace):
            raise Refused(f"namespace {namespace} is out of reach: this investigation reaches {self} and no other")
        return namespace

    def __str__(self) -> str:
        return "all namespaces" if self.namespaces is None else f"namespace {', '.join(sorted(self.namespaces))}"


def reach_of(meta: Mapping[str, Any] | None, *, owner: str | None) -> NamespaceReach:
    """Returns the reach of a request.

    Args:
        meta: its `_meta`.
        owner: the namespace of the MCPServers that this server is for; None: requests need not name any namespace.

    Raises:
        Refused: it names no namespaces and must, or names what are none, or none is left of them.
    """
    named, server = (meta or {}).get(NAMESPACES), (meta or {}).get(_MCPSERVER)
    if named is None and owner is None:
        return NamespaceReach()
    if named is None or (owner is not None and not isinstance(server, str)):
        raise Refused(
            f"this server answers only requests that name their namespaces and MCPServer in _meta ({NAMESPACES}, "
            f"{_MCPSERVER}), as TARSy sends them"
        )
    reach = NamespaceReach() if named == [_ALL] else NamespaceReach(_namespaces(named))
    home = str(server).partition("/")[0]
    if owner is None or home == owner:
        return reach
    if not reach.includes(home):
        raise Refused(
            f"{reach} is out of reach: MCPServer {server} is not of namespace {owner} and reaches its own only"
        )
    return NamespaceReach(_namespaces([home]))


def _namespaces(named: object) -> frozenset[str]:
    if (
        not isinstance(named, list)
        or not named
        or not all(isinstance(n, str) and NAME_PATTERN.fullmatch(n) for n in named)
    ):
        raise Refused(f"_meta {NAMESPACES} of the request is not a list of namespaces")
    return frozenset(named)
