"""What an investigation leaves for those who ask about it, and for those who combine what its agents did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from tarsy.record.run import Failure, State
from tarsy.record.timeline import TimelineEvent

Timelines = Mapping[UUID, Sequence[TimelineEvent]]
"""The events of each execution, in order."""


@dataclass(frozen=True, slots=True)
class AgentWork:
    """One agent of a stage and how it ended."""

    execution: UUID
    name: str
    strategy: str
    model: str
    state: State
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class StageWork:
    """A stage of an investigation with its agents, in launch order; a synthesis is a stage of its own."""

    name: str
    agents: tuple[AgentWork, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question about an investigation, who asked it, what was answered (blank: nothing), and the work behind that."""

    question: str
    answer: str
    author: str = ""
    state: State = State.COMPLETED
    agents: tuple[AgentWork, ...] = ()


@dataclass(frozen=True, slots=True)
class PastWork:
    """A whole investigation, and what was asked about it before, oldest first; the executive summary is left out.

    `timelines` are those of both.
    """

    stages: tuple[StageWork, ...]
    timelines: Timelines = field(default_factory=dict)
    earlier: tuple[Exchange, ...] = ()
