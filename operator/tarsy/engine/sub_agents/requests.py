"""Decides about a request to dispatch an agent: a pure function of the plan, the arguments and the dispatches so far.

Every limit counts dispatches on record, so that it is exact in every attempt, however often a model asks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tarsy.engine.prompts.fence import inline
from tarsy.mcp.arguments.cascade import parse_arguments
from tarsy.plan.model import DelegationPlan, SubAgentPlan
from tarsy.record.dispatch import LONGEST_HYPOTHESIS, LONGEST_TASK, Dispatch
from tarsy.record.text import clean

DISPATCH_LIMIT = "DispatchLimit"
DISPATCH_INVALID = "DispatchInvalid"


@dataclass(frozen=True, slots=True)
class NotDispatched:
    """Why an agent is not dispatched: a reason for programs, and a sentence for the model."""

    reason: str
    sentence: str


def sub_agent_id(dispatches: Sequence[Dispatch], number: int) -> str:
    """Returns the id and display name of a dispatched agent; `number` counts from 1."""
    return f"{dispatches[number - 1].agent}-{number}"


def numbered(dispatches: Sequence[Dispatch], identity: str) -> int | None:
    """Returns the number of the dispatch with an id; None: there is none."""
    wanted = identity.strip()
    return next((n for n in range(1, len(dispatches) + 1) if sub_agent_id(dispatches, n) == wanted), None)


def decide_dispatch(
    delegation: DelegationPlan, dispatches: Sequence[Dispatch], arguments: str, call: UUID
) -> Dispatch | NotDispatched:
    """Returns the dispatch that a call asks for, or why there is none.

    Args:
        delegation: what the agent may dispatch.
        dispatches: those so far.
        arguments: of the call, without secrets.
        call: key of the call.
    """
    given = parse_arguments(arguments, {})
    name, task, hypothesis = (given.get(key) for key in ("name", "task", "hypothesis"))
    found = next((one for one in delegation.agents if one.agent.agent == name), None)
    if found is None:
        known = ", ".join(one.agent.agent for one in delegation.agents)
        return NotDispatched(DISPATCH_INVALID, f"There is no agent {inline(str(name or ''))}; the agents are: {known}.")
    if not isinstance(task, str) or not task.strip():
        return NotDispatched(
            DISPATCH_INVALID, "The argument task is missing: say in it all that the agent needs to know."
        )
    if hypothesis is not None and not isinstance(hypothesis, str):
        return NotDispatched(DISPATCH_INVALID, "The argument hypothesis must be a text.")
    task, hypothesis = clean(task).strip(), clean(hypothesis or "").strip()
    for name_, text, longest in (("task", task, LONGEST_TASK), ("hypothesis", hypothesis, LONGEST_HYPOTHESIS)):
        if len(text) > longest:
            told = f"The argument {name_} has {len(text):,} characters; at most {longest:,} are allowed. Shorten it."
            return NotDispatched(DISPATCH_INVALID, told)
    if (spent := _spent(delegation, found, dispatches)) is not None:
        return spent
    return Dispatch(call=call, agent=found.agent.agent, task=task, hypothesis=hypothesis or None)


def _spent(delegation: DelegationPlan, found: SubAgentPlan, dispatches: Sequence[Dispatch]) -> NotDispatched | None:
    if len(dispatches) >= delegation.dispatches:
        told = f"All {delegation.dispatches} dispatches are used. Go on with what you have; do not ask again."
        return NotDispatched(DISPATCH_LIMIT, told)
    name = found.agent.agent
    if sum(one.agent == name for one in dispatches) >= found.max_dispatches:
        told = (
            f"All {found.max_dispatches} dispatches of {name} are used. Use another agent, or go on with what you have."
        )
        return NotDispatched(DISPATCH_LIMIT, told)
    return None
