"""Defines the origins of the values of a tool call: those that approvers are shown, and the results searched.

Decision: an origin is evidence for people, not a permit. A value that occurs in a text may stand there for another
reason, so origins are listed, never added up. Only a destination that nothing but untrusted text names is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from tarsy.record.integrity import EvidenceMarks


class Origin(StrEnum):
    """Origin of a value.

    Person: the question of a person. Plan: instructions of objects that the plan was made of. Alert: the alert and its
    runbook. K, A, X: results of tools, by their integrity class. Nowhere: none of these, so the model made it up.
    """

    PERSON = "Person"
    PLAN = "Plan"
    ALERT = "Alert"
    K = "K"
    A = "A"
    X = "X"
    NOWHERE = "Nowhere"


UNTRUSTED_ORIGINS = frozenset({Origin.A, Origin.X})
"""Origins that are not enough for a destination."""

MOST_ORIGINS = 32
"""Maximum arguments whose origins are recorded and shown; destinations come first."""

LONGEST_POINTER = 256
"""Maximum characters of the JSON pointer of an argument that is recorded and shown."""


@dataclass(frozen=True, slots=True)
class ArgumentOrigin:
    """The origins of one value in the arguments of a call.

    Attributes:
        argument: JSON pointer of the value.
        origins: of the value, in the order of `Origin`.
        calls: ids of some calls whose results contain it.
        destination: whether the call sends or fetches something there.
    """

    argument: str
    origins: tuple[Origin, ...]
    calls: tuple[str, ...] = ()
    destination: bool = False

    def as_json(self) -> dict[str, Any]:
        """Returns the origins as events and ToolApprovals have them."""
        return {
            "argument": self.argument,
            "origins": [one.value for one in self.origins],
            **({"calls": list(self.calls)} if self.calls else {}),
            **({"destination": True} if self.destination else {}),
        }


RESULTS_A_PAGE = 16
"""Results that the record returns at a time: each may have megabytes."""


@dataclass(frozen=True, slots=True)
class ToldResult:
    """A stored result that the models of a run may have seen: of the run, or of the investigation that it is about.

    Attributes:
        id: of the row.
        ref: id by which models cite it.
        tool: `server.tool`.
        arguments: of the call, as on record.
        text: of the result, as on record.
        marks: its integrity classes.
        place: of the call in its run, that of the investigation before those of questions; results are ordered by it.
    """

    id: UUID
    ref: str
    tool: str
    arguments: str
    text: str
    marks: EvidenceMarks = field(default_factory=EvidenceMarks)
    place: tuple[int, ...] = ()


def shown_origins(found: Sequence[ArgumentOrigin]) -> tuple[ArgumentOrigin, ...]:
    """Returns the origins that are recorded and shown: those of destinations first, at most `MOST_ORIGINS`."""
    return tuple(sorted(found, key=lambda one: not one.destination)[:MOST_ORIGINS])
