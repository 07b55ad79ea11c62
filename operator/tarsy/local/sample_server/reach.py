"""The namespaces that a request is about: named by the caller in `_meta`, out of reach of the arguments.

Decision: what a request carries is kept to, always. With `--bound` one that carries nothing is refused, so that nobody
reaches all namespaces by leaving it out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tarsy.local.sample_server.kinds import NAME, Refused

NAMESPACES = "tarsy.dev/namespaces"
ENFORCED = {NAMESPACES: "enforced"}
"""What the `_meta` of each tool declares."""

ALL = "*"


@dataclass(frozen=True, slots=True)
class Reach:
    """The namespaces of a request; None is all of them."""

    namespaces: frozenset[str] | None = None

    @property
    def only(self) -> str | None:
        """The one namespace of a request; None where there are several, or all."""
        return next(iter(self.namespaces)) if self.namespaces is not None and len(self.namespaces) == 1 else None

    def includes(self, namespace: str | None) -> bool:
        """Whether a namespace is among them."""
        return self.namespaces is None or namespace in self.namespaces

    def checked(self, namespace: str) -> str:
        """A namespace that is among them. Raises Refused: it is not."""
        if not self.includes(namespace):
            raise Refused(f"namespace {namespace} is out of reach: this investigation reaches {self} and no other")
        return namespace

    def __str__(self) -> str:
        return "all namespaces" if self.namespaces is None else f"namespace {', '.join(sorted(self.namespaces))}"


def reach_of(meta: Mapping[str, Any] | None, *, bound: bool) -> Reach:
    """The reach of a request.

    Args:
        meta: its `_meta`.
        bound: whether it must name namespaces.

    Raises:
        Refused: it must and does not, or what it names are no namespaces.
    """
    named = (meta or {}).get(NAMESPACES)
    if named is None:
        if bound:
            raise Refused(f"this server answers only requests that name their namespaces in _meta ({NAMESPACES})")
        return Reach()
    if named == [ALL]:
        return Reach()
    if (
        not isinstance(named, list)
        or not named
        or not all(isinstance(one, str) and NAME.fullmatch(one) for one in named)
    ):
        raise Refused(f"_meta {NAMESPACES} of the request is not a list of namespaces")
    return Reach(frozenset(named))
