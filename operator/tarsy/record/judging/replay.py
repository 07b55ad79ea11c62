"""Defines how an answer of a replayed run was found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from tarsy.record.integrity import EvidenceMarks

FLOOR = 0.7
"""Coverage below which the finding of a replay is Inconclusive."""


class Rung(StrEnum):
    """Origin of the answer to a tool call of a replay, best first.

    `exact`: a recorded call with the same arguments. `normalised`: one whose arguments mean the same. `derived`:
    computed from a recorded answer that contains more. `wildcard`: recorded for all arguments, so those of the call
    were not checked. `miss`: not recorded. `live`: the tool server was asked during the replay. `simulated`: a model
    made the answer up.
    """

    EXACT = "exact"
    NORMALISED = "normalised"
    DERIVED = "derived"
    WILDCARD = "wildcard"
    MISS = "miss"
    LIVE = "live"
    SIMULATED = "simulated"

    @property
    def covered(self) -> bool:
        """Whether the answer comes from the record."""
        return self.value in _COVERED


_COVERED = frozenset({Rung.EXACT.value, Rung.NORMALISED.value, Rung.DERIVED.value, Rung.WILDCARD.value})


def covered_calls(rungs: Mapping[str, int]) -> int:
    """Returns the number of calls that the record answered. A rung that only newer versions know is none.

    Args:
        rungs: number of calls by rung.
    """
    return sum(count for rung, count in rungs.items() if rung in _COVERED)


@dataclass(frozen=True, slots=True)
class ReplayedFrom:
    """Origin of one answer: its rung, and the line of the cassette that it comes from (None: from none).

    `handed_on`: it comes from the first attempt of the same stage, outside of replays too.
    """

    rung: Rung
    line: int | None = None
    handed_on: bool = False


def replay_metadata(source: ReplayedFrom | None) -> Mapping[str, str | int]:
    """Returns what the timeline event of a call tells of its origin; nothing of a call that a tool server answered."""
    if source is None:
        return {}
    if source.handed_on:
        return {"handed_on": source.rung.value}
    return {"rung": source.rung.value, **({} if source.line is None else {"line": source.line})}


class ReplayStep(BaseModel):
    """A tool call in a report: `server.tool`, and the beginning of its arguments."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tool: str
    arguments: str


class ReplayDivergence(BaseModel):
    """Holds the first tool call of an agent that differs from the recorded ones.

    `index` is the number of calls that are the same before. A step is None where that run made no further call.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    stage: int
    agent: int
    index: int
    recorded: ReplayStep | None = None
    replayed: ReplayStep | None = None

    @property
    def sentence(self) -> str:
        """The divergence as a sentence."""
        ours, theirs = (
            f"{step.tool} {step.arguments}" if step else "no further call" for step in (self.recorded, self.replayed)
        )
        return f"Stage {self.stage + 1}, agent {self.agent + 1}, call {self.index + 1}: recorded {ours}; now {theirs}"


class ReplayReport(BaseModel):
    """How closely a replay followed its record.

    `rungs` counts answers by rung; uses of tools that the model's provider runs itself count as misses. `unused` is the
    number of recorded calls that answered nothing. `divergence` None: all tool calls are those of the record. `source`
    is the recorded run, with which the replay is deleted; None: a file, or a case of a suite.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    rungs: dict[str, int] = Field(default_factory=dict)
    unused: int = 0
    divergence: ReplayDivergence | None = None
    source: UUID | None = None

    @property
    def calls(self) -> int:
        """Number of calls that needed an answer."""
        return sum(self.rungs.values())

    @property
    def coverage(self) -> float:
        """Share of calls that the record answered; 1 where nothing was asked."""
        return covered_calls(self.rungs) / self.calls if self.calls else 1.0


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """The answer to one tool of a stage of kind Changes: as recorded, and as later agents are sent it.

    `marks` are its integrity classes, as recorded.
    """

    result: str
    is_error: bool
    shown: str
    source: ReplayedFrom
    marks: EvidenceMarks | None = None


@dataclass(frozen=True, slots=True)
class KnownClaim:
    """A statement with the tool whose result contains the quote."""

    text: str
    tool: str
    quote: str


@dataclass(frozen=True, slots=True)
class KnownChanges:
    """Holds the recorded answers that a replay uses instead of reading the cluster, by tool (none: the stage made
    no call)."""

    summary: str
    confidence: str
    claims: Sequence[KnownClaim] = ()
    answers: Mapping[str, KnownAnswer] = field(default_factory=dict)
