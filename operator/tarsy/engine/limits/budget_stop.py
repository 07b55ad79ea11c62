"""What an agent leaves that was cut off before it had concluded: by a spent budget, or because it was asked to conclude
and its model gave no conclusion.

No model may be asked any more, so its result is put together from the record: the last it said, or, of a synthesis,
what the agents of its stage concluded. It says of itself that it is no conclusion.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from tarsy.engine.conversation.state import Conversation
from tarsy.engine.findings.conclusion import whole_text
from tarsy.engine.run_context import RunContext
from tarsy.record.history import BudgetExceeded
from tarsy.record.ids import event_id
from tarsy.record.messages import Role
from tarsy.record.run import Failure
from tarsy.record.timeline import Event, EventStatus, EventType, TimelineEvent
from tarsy.record.work import AgentWork


async def note_exceeded(world: RunContext, exceeded: BudgetExceeded) -> None:
    """Puts the first limit that a run reaches on record, with a notice; later ones change nothing."""
    if world.meter.exceeded is not None:
        return
    world.meter.exceeded = exceeded
    event = Event(
        id=event_id(world.meter.run, "budget"),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=exceeded.message,
        metadata={"reason": "BudgetExceeded", "limit": exceeded.limit.value},
    )
    await world.recorder.budget_exceeded(exceeded, [event])


NO_CONCLUSION = "NoConclusion"
"""Why a result stands in for a conclusion that was asked for by a person and not given by a model."""


def no_conclusion(failure: Failure) -> str:
    """A sentence about a model that gave no conclusion when it was asked to conclude."""
    return f"Stopped on request, without a conclusion of the model ({failure.reason})."


def partial_conclusion(conversation: Conversation, why: str) -> str:
    """What an investigating agent said last, marked as what it is; `why` is a sentence."""
    said = [m.content.strip() for m in conversation.messages if m.role is Role.ASSISTANT and m.content.strip()]
    if partial := conversation.loop.partial.strip():
        said.append(f"{partial} [cut off here]")
    if not said:
        return f"{why} This agent had not said anything before."
    return f"{why} This agent was cut off before it concluded; the last it said:\n\n{said[-1]}"


def concatenate_conclusions(
    agents: Sequence[AgentWork], timelines: Mapping[UUID, Sequence[TimelineEvent]], why: str
) -> str:
    """What the agents of a stage concluded, one after the other, in place of a synthesis; `why` is a sentence."""
    parts = [f"{why} The findings of the agents were not combined:"]
    for agent in agents:
        said = [whole_text(e) for e in timelines.get(agent.execution, ()) if e.type is EventType.FINAL_ANALYSIS]
        parts.append(f"## {agent.name}\n\n{said[-1] if said else f'(no conclusion: {agent.state.value})'}")
    return "\n\n".join(parts)


def cutoff_event(conversation: Conversation, text: str, reason: str) -> Event:
    """Tells people what stands in for the conclusion."""
    return Event(
        id=event_id(conversation.execution, "cutoff"),
        type=EventType.FINAL_ANALYSIS,
        status=EventStatus.COMPLETED,
        content=text,
        metadata={"from_record": True, "reason": reason},
        stage=conversation.stage,
        execution=conversation.execution,
    )
