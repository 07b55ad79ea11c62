"""Holds the conversation of one agent execution, and decides its next step.

`next_turn` is the heart of crash safety: it looks only at what is on record (messages and loop state), so an attempt
that resumes decides exactly what the attempt that died would have decided. Nothing about the position in the loop is
kept anywhere else.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from tarsy.engine.conversation.compaction import SentMessages
from tarsy.engine.prompts import builder
from tarsy.llm.message_forms import MessageForms
from tarsy.plan.builtin import has_native_tools
from tarsy.plan.model import AgentLimits, AgentPlan
from tarsy.record.messages import Message, Role, ToolCall
from tarsy.record.run import ExecutionRecord, LoopState, ModelCallKind, ToolCallRecord


def serving_provider(plan: AgentPlan, loop: LoopState) -> AgentPlan:
    """The agent with the provider, strategy and native tools that it has now."""
    if not loop.fallback:
        return plan
    entry = plan.fallback[loop.fallback - 1]
    found = {"provider": entry.provider, "strategy": entry.strategy, "native_tools": entry.native_tools}
    return plan.model_copy(update=found)


@dataclass(slots=True)
class Conversation:
    """The mutable state of a running execution, always equal to its record at the last boundary.

    `plan` is the agent as planned, `agent` as it is now: on the provider that it changed to, if it did.
    `ahead` are answers of tools, by their place among the messages, that came before an earlier call of the same
    message was answered; `messages` has no gaps. `superseded` is what is sent instead of some of them. Whoever changes
    `loop` while calls run side by side holds `writing` until the change is on record. `unmasked` is the last answer of
    this attempt as its model wrote it, with its place: it is in no record. `unbound`: its provider refused tools that
    may not be called. `sent` and `forms` keep what was made of the messages for earlier requests. `acts`: its answers
    end with a line that says whether it took an action.
    """

    execution: UUID
    stage: UUID
    plan: AgentPlan
    agent: AgentPlan
    limits: AgentLimits
    messages: list[Message]
    loop: LoopState
    model_calls: int
    began: datetime
    unanswered: dict[tuple[int, int], ToolCallRecord] = field(default_factory=dict)
    ahead: dict[int, Message] = field(default_factory=dict)
    superseded: dict[int, str] = field(default_factory=dict)
    unmasked: tuple[int, Message] | None = None
    unbound: bool = False
    acts: bool = False
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    sent: SentMessages = field(default_factory=SentMessages)
    forms: MessageForms = field(default_factory=MessageForms)

    @classmethod
    def resume(cls, stage: UUID, agent: AgentPlan, limits: AgentLimits, record: ExecutionRecord) -> "Conversation":
        """Restores the conversation from the record: empty for a new execution.

        Args:
            stage: id of the agent's stage.
            agent: as planned.
            limits: of the run.
            record: of the execution.
        """
        return cls(
            execution=record.id,
            stage=stage,
            plan=agent,
            agent=serving_provider(agent, record.loop),
            limits=limits,
            messages=list(record.messages),
            loop=record.loop,
            model_calls=record.model_calls,
            began=record.started_at,
            unanswered={(t.message_seq, t.index): t for t in record.unanswered},
            ahead=dict(record.ahead),
            superseded=dict(record.superseded),
        )

    @property
    def native_tools(self) -> tuple[str, ...]:
        """Tools of the provider that are on: only a backend that has some makes use of them."""
        return self.agent.native_tools if has_native_tools(self.agent.strategy) else ()

    def as_written(self, seq: int) -> Message | None:
        """The answer number `seq` as its model wrote it; None when an earlier attempt got it."""
        return self.unmasked[1] if self.unmasked is not None and self.unmasked[0] == seq else None

    def put(self, seq: int, message: Message) -> None:
        """Takes a message that is on record as number `seq`."""
        self.ahead[seq] = message
        while (following := self.ahead.pop(len(self.messages), None)) is not None:
            self.messages.append(following)


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model, after appending `new_messages`."""

    kind: ModelCallKind
    new_messages: tuple[Message, ...] = ()
    loop: LoopState = field(default_factory=LoopState)


@dataclass(frozen=True, slots=True)
class CallTool:
    """Answer the tool call at `index` of the assistant message `message_seq`.

    `call` is as on record, `arguments` as the model wrote them; None when that is not known any more.
    """

    message_seq: int
    index: int
    call: ToolCall
    arguments: str | None = None

    @property
    def sendable(self) -> str:
        """The arguments to make the call with."""
        return self.call.arguments if self.arguments is None else self.arguments


@dataclass(frozen=True, slots=True)
class CallTools:
    """Answer these tool calls of one assistant message: all that have no answer yet, in order."""

    calls: tuple[CallTool, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """The conversation has its final answer (blank: the model gave none)."""

    text: str


ConversationTurn = CallModel | CallTools | Finish


@dataclass(frozen=True, slots=True)
class Stop:
    """Why an agent must conclude before its iterations are used up.

    `requested`: a person asked for it; `budget`: which budget is reached; neither: it goes round in circles.
    """

    requested: bool = False
    budget: str | None = None


class Conclude(Protocol):
    """Makes the message that asks for a conclusion."""

    def __call__(
        self, iterations: int, *, requested: bool, budget: str | None = None, repeats: bool = False
    ) -> Message:
        """Makes the message.

        Args:
            iterations: model calls made.
            requested: whether a person asked for the conclusion.
            budget: the budget that is reached, if one is.
            repeats: whether the model repeats its calls; with none of the three, the iterations are used up.
        """
        ...


def next_turn(
    conversation: Conversation, opening: Sequence[Message], *, stop: Stop | None, max_iterations: int | None
) -> ConversationTurn:
    """Returns the next step of the conversation.

    Args:
        conversation: as on record.
        opening: the messages a new conversation starts with.
        stop: why the agent must conclude now, if it must.
        max_iterations: model calls after which a conclusion is forced; None for strategies that never loop.
    """
    tools = max_iterations is not None and stop is None and not conversation.loop.concluding
    turn = _next(conversation, opening, tools)
    if isinstance(turn, CallModel):
        return ask_model(conversation, turn, stop, max_iterations)
    return turn


def _next(conversation: Conversation, opening: Sequence[Message], tools: bool) -> ConversationTurn:
    messages, loop = conversation.messages, conversation.loop
    if not messages:
        return CallModel(ModelCallKind.ITERATION, tuple(opening), loop)
    last_answer = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role is Role.ASSISTANT), None)
    if last_answer is not None:
        answer, answered = messages[last_answer], len(messages) - 1 - last_answer
        if missing := _missing(conversation, last_answer):
            return CallTools(missing)
        if not answer.tool_calls and not answered:
            if tells := tell_repetition(conversation, tools=tools):
                return tells
            if answer.content.strip() or loop.empty_answers > conversation.limits.empty_answers:
                return Finish(answer.content)
            return CallModel(ModelCallKind.ITERATION, (builder.nudge_message(tools=tools),), loop)
    return CallModel(ModelCallKind.ITERATION, (), loop)


def _missing(conversation: Conversation, seq: int) -> tuple[CallTool, ...]:
    """The calls of the assistant message `seq` that have no answer: an attempt that died may have left some of them."""
    first, written = len(conversation.messages) - 1 - seq, conversation.as_written(seq)
    return tuple(
        CallTool(seq, index, call, written.tool_calls[index].arguments if written else None)
        for index, call in enumerate(conversation.messages[seq].tool_calls)
        if index >= first and seq + 1 + index not in conversation.ahead
    )


def unanswered_calls(conversation: Conversation) -> tuple[CallTool, ...]:
    """The calls of the last answer that have no answer of their own yet."""
    messages = conversation.messages
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role is Role.ASSISTANT), None)
    return () if last is None else _missing(conversation, last)


def tell_repetition(conversation: Conversation, *, tools: bool) -> CallModel | None:
    """The call that tells a model that its last answer was cut, because it repeated itself.

    None when it was not, when nothing is left of it, or when it happened as often as answers may be lost in a row:
    then the text up to the first repetition is the answer.
    """
    loop, text = conversation.loop, conversation.messages[-1].content
    if not 0 < loop.repeated_answers < conversation.limits.consecutive_timeouts or not text.strip():
        return None
    return CallModel(ModelCallKind.ITERATION, (builder.repetition_message(tools=tools),), loop)


def ask_model(
    conversation: Conversation,
    turn: CallModel,
    stop: Stop | None,
    max_iterations: int | None,
    conclude: Conclude = builder.conclusion_message,
) -> CallModel:
    """Returns the model call of a turn, made a forced conclusion where it is time to conclude.

    Args:
        conversation: as on record.
        turn: the call that would be made otherwise.
        stop: why the agent must conclude now, if it must.
        max_iterations: model calls after which a conclusion is forced; None for strategies that never loop.
        conclude: makes the message that asks for the conclusion.
    """
    loop, new = conversation.loop, turn.new_messages
    if loop.concluding:
        return CallModel(ModelCallKind.FORCED_CONCLUSION, new, loop)
    if stop is not None or (max_iterations is not None and loop.iteration >= max_iterations):
        why = stop or Stop()
        repeats = stop is not None and stop == Stop()
        prompt = conclude(loop.iteration, requested=why.requested, budget=why.budget, repeats=repeats)
        return CallModel(ModelCallKind.FORCED_CONCLUSION, (*new, prompt), loop.model_copy(update={"concluding": True}))
    return turn
