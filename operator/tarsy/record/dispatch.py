"""Defines dispatches: the work that an agent hands to its sub-agents, and the verdicts that they come back with.

A dispatch is a call of the tool `dispatch_agent` and an agent execution of the same stage. The state of the loop of the
parent lists them in order, and the ids of their executions follow from their places: an attempt that resumes finds the
executions that the attempt before it began, and never begins one twice.
"""

from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from tarsy.record.finding import Claim

DISPATCH_AGENT, LIST_AGENTS, CANCEL_AGENT = "dispatch_agent", "list_agents", "cancel_agent"
DISPATCH_TOOLS = frozenset({DISPATCH_AGENT, LIST_AGENTS, CANCEL_AGENT})
"""Tools of an agent that has sub-agents; they are of no server, and their results are no evidence."""

LONGEST_TASK = 2_000
LONGEST_HYPOTHESIS = 500
"""Maximum characters of the task and of the hypothesis of a dispatch."""

MOST_DISPATCHES = 50
"""Maximum dispatches of one agent, whatever its plan allows."""


class Dispatch(BaseModel):
    """A sub-agent that was dispatched.

    `call` is the key of the tool call, the same for every try of it. `told`: the model of the parent has the result.
    """

    model_config = ConfigDict(frozen=True)

    call: UUID
    agent: str
    task: str
    hypothesis: str | None = None
    told: bool = False


class VerdictValue(StrEnum):
    """Lists the verdicts on a hypothesis."""

    SUPPORTED = "Supported"
    REFUTED = "Refuted"
    UNRESOLVED = "Unresolved"


class HypothesisVerdict(BaseModel):
    """The verdict of a sub-agent on its hypothesis, as the record bears it out.

    `stated` is the verdict that its model gave, and `reason` tells why it does not stand, or why there is none. The
    citations of `claims` are checked.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    verdict: VerdictValue
    stated: str | None = None
    reason: str | None = None
    claims: tuple[Claim, ...] = ()


def child_index(parent: int, number: int) -> int:
    """Returns the index of the execution of a sub-agent in its stage.

    Args:
        parent: index of the execution of the parent.
        number: of the dispatch, from 1.
    """
    return (parent + 1) * 100 + number
