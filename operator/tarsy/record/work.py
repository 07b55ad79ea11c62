"""Defines the past work of an investigation, which chat answers and syntheses read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from tarsy.record.run import Failure, State
from tarsy.record.timeline import TimelineEvent

Timelines = Mapping[UUID, Sequence[TimelineEvent]]
"""Events of each execution, in order."""


@dataclass(frozen=True, slots=True)
class AgentWork:
    """One agent of a stage and its outcome."""

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
    """A question about an investigation with its author, its answer (empty: none) and the agents that answered it."""

    question: str
    answer: str
    author: str = ""
    state: State = State.COMPLETED
    agents: tuple[AgentWork, ...] = ()


@dataclass(frozen=True, slots=True)
class PastWork:
    """A whole investigation without its executive summary, and the earlier questions about it, oldest first.

    `timelines` has the events of both.
    """

    stages: tuple[StageWork, ...]
    timelines: Timelines = field(default_factory=dict)
    earlier: tuple[Exchange, ...] = ()
