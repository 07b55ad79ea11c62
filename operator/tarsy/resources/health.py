"""Derives the health of configuration objects from their conditions.

The controller records transitions of the same kinds, and the API tells health over time by the same rules.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1 import (
    Agent,
    AlertRoute,
    AlertSchedule,
    Chain,
    EvalSuite,
    InvestigationDefaults,
    InvestigationQuota,
    LLMProvider,
    MCPServer,
    Skill,
)
from tarsy.resources.v1alpha1.common import ConditionType

Health = Literal["NotReady", "Degraded", "Unknown", "Ready"]

RANKS: Final[Mapping[Health, int]] = {"NotReady": 0, "Degraded": 1, "Unknown": 2, "Ready": 3}
"""Order of health, the worst first."""

CONFIGURATION_KINDS: Final[tuple[type[AnyResource], ...]] = (
    Chain,
    Agent,
    MCPServer,
    LLMProvider,
    Skill,
    InvestigationDefaults,
    AlertRoute,
    AlertSchedule,
    InvestigationQuota,
    EvalSuite,
)
"""Kinds that decide what runs, in the order in which people look for a cause."""

_WANTED: Final = (
    ConditionType.READY,
    ConditionType.AVAILABLE,
    ConditionType.VERIFIED,
    ConditionType.SERVING,
    ConditionType.NOTIFICATIONS_READY,
    ConditionType.FIRED,
)
_UNWANTED: Final = (ConditionType.TOOLS_CHANGED, ConditionType.EXCEEDED)


class Stated(Protocol):
    """A condition, or what is recorded of one."""

    @property
    def type(self) -> str:
        """Type of the condition."""

    @property
    def status(self) -> str:
        """Status of the condition."""


_S = TypeVar("_S", bound=Stated)


def is_problem(one: Stated) -> bool:
    """Checks whether a condition prevents the normal use of its object."""
    return (one.type in _WANTED and one.status == "False") or (one.type in _UNWANTED and one.status == "True")


def problems(conditions: Sequence[_S]) -> Iterator[_S]:
    """Yields the conditions of an object that prevent its normal use, Ready first."""
    for one in sorted(conditions, key=lambda one: one.type != ConditionType.READY):
        if is_problem(one):
            yield one


def health_of(conditions: Sequence[_S]) -> tuple[Health, _S | None]:
    """Returns the health of an object, and the condition that decides it; None: it has no condition Ready yet."""
    ready = next((one for one in conditions if one.type == ConditionType.READY), None)
    wrong = next(problems(conditions), None)
    if wrong is not None:
        return ("NotReady" if wrong.type == ConditionType.READY else "Degraded"), wrong
    if ready is None or ready.status == "Unknown":
        return "Unknown", ready
    return "Ready", ready


def address_of(resource: AnyResource | None) -> str | None:
    """Returns scheme, host and port that an object is reached by; None: by none."""
    url: str | None = None
    if isinstance(resource, MCPServer):
        http = resource.spec.transport.http
        url = None if http is None else str(http.url)
    elif isinstance(resource, LLMProvider):
        url = None if resource.spec.base_url is None else str(resource.spec.base_url)
    return None if url is None else host_of(url)


def host_of(url: str) -> str | None:
    """Returns scheme, host and port of a URL, without credentials, path and query; None: it has no host."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return None
    if not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}"
