"""The conversation of one agent execution, and what to do next with it.

`next_turn` is the heart of crash safety: it looks only at what is on record (messages and loop state), so an attempt
that resumes decides exactly what the attempt that died would have decided. Nothing about the position in the loop is
kept anywhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

from tarsy.engine.prompts import builder
from tarsy.plan.model import AgentPlan, Limits
from tarsy.record.messages import Message, Role, ToolCall
from tarsy.record.run import ExecutionRecord, LoopState, ModelCallKind, ToolCallRecord


@dataclass(slots=True)
class Conversation:
    """The mutable state of a running execution, always equal to its record at the last boundary.

    `note` tells the model what became of its last answer; it is on record once the next call is. An attempt that dies
    between the two asks again without it.
    """

    execution: UUID
    stage: UUID
    agent: AgentPlan
    limits: Limits
    messages: list[Message]
    loop: LoopState
    model_calls: int
    unanswered: dict[tuple[int, int], ToolCallRecord] = field(default_factory=dict)
    note: Message | None = None

    @classmethod
    def resume(cls, stage: UUID, agent: AgentPlan, limits: Limits, record: ExecutionRecord) -> "Conversation":
        """The conversation as the record has it: empty for a new execution."""
        return cls(
            execution=record.id,
            stage=stage,
            agent=agent,
            limits=limits,
            messages=list(record.messages),
            loop=record.loop,
            model_calls=record.model_calls,
            unanswered={(t.message_seq, t.index): t for t in record.unanswered},
        )


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model, after appending `new_messages`."""

    kind: ModelCallKind
    new_messages: tuple[Message, ...] = ()
    loop: LoopState = field(default_factory=LoopState)


@dataclass(frozen=True, slots=True)
class CallTool:
    """Answer the tool call at `index` of the assistant message `message_seq`."""

    message_seq: int
    index: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Finish:
    """The conversation has its final answer (blank: the model gave none)."""

    text: str


Turn = CallModel | CallTool | Finish


class Conclude(Protocol):
    """Makes the message that asks for a conclusion."""

    def __call__(self, iterations: int, *, requested: bool) -> Message:
        """After so many iterations; `requested` when a person asked for it."""
        ...


def next_turn(
    conversation: Conversation, opening: Sequence[Message], *, concluding: bool, max_iterations: int | None
) -> Turn:
    """What to do next.

    Args:
        conversation: as on record.
        opening: the messages a new conversation starts with.
        concluding: whether somebody asked the run to conclude.
        max_iterations: model calls after which a conclusion is forced; None for strategies that never loop.
    """
    tools = max_iterations is not None and not (concluding or conversation.loop.concluding)
    turn = _next(conversation, opening, tools)
    if isinstance(turn, CallModel):
        return ask(conversation, turn, concluding, max_iterations)
    return turn


def _next(conversation: Conversation, opening: Sequence[Message], tools: bool) -> Turn:
    messages, loop = conversation.messages, conversation.loop
    if not messages:
        return CallModel(ModelCallKind.ITERATION, tuple(opening), loop)
    last_answer = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role is Role.ASSISTANT), None)
    if last_answer is not None:
        answer, answered = messages[last_answer], len(messages) - 1 - last_answer
        if answered < len(answer.tool_calls):
            return CallTool(last_answer, answered, answer.tool_calls[answered])
        if not answer.tool_calls and not answered:
            if answer.content.strip() or loop.empty_answers > conversation.limits.empty_answers:
                return Finish(answer.content)
            return CallModel(ModelCallKind.ITERATION, (builder.nudge_message(tools=tools),), loop)
    return CallModel(ModelCallKind.ITERATION, (), loop)


def ask(
    conversation: Conversation,
    turn: CallModel,
    concluding: bool,
    max_iterations: int | None,
    conclude: Conclude = builder.conclusion_message,
) -> CallModel:
    """The call with what else the model must hear: what became of its last answer, and that it is time to conclude."""
    loop = conversation.loop
    new = turn.new_messages if conversation.note is None else (conversation.note, *turn.new_messages)
    if loop.concluding:
        return CallModel(ModelCallKind.FORCED_CONCLUSION, new, loop)
    if concluding or (max_iterations is not None and loop.iteration >= max_iterations):
        prompt = conclude(loop.iteration, requested=concluding)
        return CallModel(ModelCallKind.FORCED_CONCLUSION, (*new, prompt), loop.model_copy(update={"concluding": True}))
    return replace(turn, new_messages=new)
