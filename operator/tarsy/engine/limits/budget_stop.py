"""Ends agents that cannot conclude: their budget is spent, or their model gave no conclusion when it was asked for one.

No model may be asked any more, so the result is put together from the record: the last output of the agent, or, for a
synthesis, the conclusions of the agents of its stage. The result states that it is no conclusion.
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
        metadata={"reason": "BudgetExceeded", "limit": str(exceeded.limit)},
    )
    await world.recorder.budget_exceeded(exceeded, [event])


NO_CONCLUSION = "NoConclusion"
"""The reason of a result that replaces a conclusion which a person asked for and the model did not give."""


def no_conclusion(failure: Failure) -> str:
    """A sentence about a model that gave no conclusion when it was asked to conclude."""
    return f"Stopped on request, without a conclusion from the model ({failure.reason})."


def partial_conclusion(conversation: Conversation, why: str) -> str:
    """Returns the last output of an investigating agent, marked as no conclusion; `why` is a sentence."""
    said = [m.content.strip() for m in conversation.messages if m.role is Role.ASSISTANT and m.content.strip()]
    if partial := conversation.loop.partial.strip():
        said.append(f"{partial} [cut off here]")
    if not said:
        return f"{why} This agent had produced no output."
    return f"{why} This agent was cut off before it concluded; its last output:\n\n{said[-1]}"


def concatenate_conclusions(
    agents: Sequence[AgentWork], timelines: Mapping[UUID, Sequence[TimelineEvent]], why: str
) -> str:
    """Concatenates the conclusions of the agents of a stage, in place of a synthesis.

    Args:
        agents: of the stage.
        timelines: their events, by execution.
        why: there is no synthesis, as a sentence.
    """
    parts = [f"{why} The findings of the agents were not combined:"]
    for agent in agents:
        said = [whole_text(e) for e in timelines.get(agent.execution, ()) if e.type is EventType.FINAL_ANALYSIS]
        parts.append(f"## {agent.name}\n\n{said[-1] if said else f'(no conclusion: {agent.state.value})'}")
    return "\n\n".join(parts)


def cutoff_event(conversation: Conversation, text: str, reason: str) -> Event:
    """Returns the event with the text that replaces the conclusion of an agent.

    Args:
        conversation: of the agent.
        text: the replacement, put together from the record.
        reason: why there is no conclusion, in CamelCase, such as `NoConclusion`.
    """
    return Event(
        id=event_id(conversation.execution, "cutoff"),
        type=EventType.FINAL_ANALYSIS,
        status=EventStatus.COMPLETED,
        content=text,
        metadata={"from_record": True, "reason": reason},
        stage=conversation.stage,
        execution=conversation.execution,
    )
