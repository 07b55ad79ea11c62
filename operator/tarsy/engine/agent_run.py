"""Defines the input and the result of an agent execution."""

from dataclasses import dataclass
from uuid import UUID

from tarsy.engine.task import Task
from tarsy.plan.model import AgentLimits, AgentPlan
from tarsy.record.dispatch import HypothesisVerdict
from tarsy.record.run import Failure, State
from tarsy.record.waiting import Wait


@dataclass(frozen=True, slots=True)
class AgentResult:
    """Holds the outcome of an agent execution; a parked one has none yet, and waits for `wait`."""

    execution: UUID
    state: State
    text: str = ""
    failure: Failure | None = None
    wait: Wait | None = None
    verdict: HypothesisVerdict | None = None


@dataclass(frozen=True, slots=True)
class AgentRun:
    """The input of an agent execution: its id, its stage and index there, its plan, its task and the run's limits.

    That of a sub-agent has the execution that dispatched it, and the key of the call that did.
    """

    id: UUID
    stage: UUID
    index: int
    plan: AgentPlan
    task: Task
    limits: AgentLimits
    parent: UUID | None = None
    dispatched_by: UUID | None = None
