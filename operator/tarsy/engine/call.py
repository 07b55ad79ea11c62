"""One model call between its two boundaries.

Before the request leaves, the record says so (a); when the answer is complete, it is in the record with its usage and
the loop's state (b). What happens in between may be lost and is then asked again. Time is kept here, not in the SDKs:
a limit to the first chunk, one between chunks, one for the whole call.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, assert_never
from uuid import UUID

from tarsy.engine.conversation import CallModel, Conversation
from tarsy.engine.ports import World
from tarsy.engine.prompts import builder
from tarsy.llm.protocol import (
    Chunk,
    EndChunk,
    GenerateRequest,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.plan.model import Limits
from tarsy.record.ids import event_id, model_call_id
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition
from tarsy.record.run import Failure, ModelCallResult, ModelCallStart, State
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.usage import UNKNOWN_USAGE, Usage


class ModelCallFailed(Exception):
    """The model failed for good: the agent ends in `state` with `failure`."""

    def __init__(self, state: State, failure: Failure) -> None:
        super().__init__(failure.message)
        self.state = state
        self.failure = failure


_TIMEOUTS = frozenset({ModelErrorCode.TIMEOUT, ModelErrorCode.FIRST_TOKEN_TIMEOUT, ModelErrorCode.STALL})
_ASK_AGAIN = _TIMEOUTS | {ModelErrorCode.PARTIAL_STREAM}
"""Answers lost on the way; everything else was retried below or will not get better."""


@dataclass(slots=True)
class _Answer:
    """What has arrived of an answer."""

    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    usage: Usage | None = None
    end: EndChunk | None = None


async def call_model(
    conversation: Conversation, turn: CallModel, tools: tuple[ToolDefinition, ...], world: World
) -> None:
    """Makes one model call and appends its answer to the conversation.

    An answer lost on the way (time ran out, the stream was cut) is noted in the conversation and not an error until
    it happens `limits.consecutive_timeouts` times in a row.

    Raises:
        ModelCallFailed: the model refused, or failed for good.
    """
    agent = conversation.agent
    call = ModelCallStart(
        id=model_call_id(conversation.execution, conversation.model_calls),
        execution=conversation.execution,
        number=conversation.model_calls,
        kind=turn.kind,
        provider=agent.provider.ref.name,
        model=agent.provider.model,
        strategy=agent.strategy.value,
        first_seq=len(conversation.messages),
        new_messages=turn.new_messages,
        message_count=len(conversation.messages) + len(turn.new_messages),
        tools=tools,
        loop=turn.loop,
    )
    world.control.check()
    await world.recorder.model_call_started(call)
    conversation.model_calls += 1
    conversation.messages.extend(turn.new_messages)
    conversation.loop = turn.loop

    started = time.monotonic()
    answer = _Answer()
    try:
        await _stream(conversation, call.id, answer, tools, world)
    except ModelError as error:
        await _record_failure(conversation, call.id, answer, error, started, world)
        return
    await _record_answer(conversation, call.id, answer, bool(tools), started, world)


async def _stream(
    conversation: Conversation, call: UUID, answer: _Answer, tools: tuple[ToolDefinition, ...], world: World
) -> None:
    """Collects the answer's chunks in `answer`; raises ModelError, timeouts included."""
    request = GenerateRequest(
        messages=tuple(conversation.messages),
        tools=tools,
        execution=str(conversation.execution),
        agent=conversation.agent.name,
    )
    seconds = conversation.limits.model_call_seconds
    try:
        async with asyncio.timeout(seconds) as limit:
            async with world.models.client(conversation.agent.provider) as client:
                async with aclosing(client.generate(request)) as chunks:
                    await _collect(chunks, conversation, call, answer, world)
    except TimeoutError:
        if not limit.expired():
            raise
        raise ModelError(
            ModelErrorCode.TIMEOUT, f"the model's answer took longer than {seconds:g} s.", retryable=True
        ) from None


async def _collect(
    chunks: AsyncGenerator[Chunk, None], conversation: Conversation, call: UUID, answer: _Answer, world: World
) -> None:
    limits, first = conversation.limits, True
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(limits.first_token_seconds) as idle:
            async for chunk in chunks:
                idle.reschedule(None)
                first = False
                await _take(chunk, answer, conversation, call, world)
                idle.reschedule(loop.time() + limits.stall_seconds)
    except TimeoutError:
        if not idle.expired():
            raise
        raise _idle_error(limits, first) from None


def _idle_error(limits: Limits, first: bool) -> ModelError:
    if first:
        text = f"the model sent nothing for {limits.first_token_seconds:g} s."
        return ModelError(ModelErrorCode.FIRST_TOKEN_TIMEOUT, text, retryable=True)
    text = f"the model's stream stood still for {limits.stall_seconds:g} s."
    return ModelError(ModelErrorCode.STALL, text, retryable=True, started=True)


async def _take(chunk: Chunk, answer: _Answer, conversation: Conversation, call: UUID, world: World) -> None:
    match chunk:
        case TextChunk(text):
            if not answer.text:
                await world.recorder.write_events([_response(conversation, call, "", EventStatus.STREAMING)])
            answer.text.append(text)
        case ThinkingChunk(text):
            if not answer.thinking:
                await world.recorder.write_events([_thinking(conversation, call, "", EventStatus.STREAMING)])
            answer.thinking.append(text)
        case ToolCallChunk(tool_call):
            answer.tool_calls.append(tool_call)
        case UsageChunk(usage):
            answer.usage = usage
        case EndChunk():
            answer.end = chunk
        case _:
            assert_never(chunk)


async def _record_answer(
    conversation: Conversation, call: UUID, answer: _Answer, tools_offered: bool, started: float, world: World
) -> None:
    text = "".join(answer.text)
    message = Message(
        Role.ASSISTANT,
        text,
        tool_calls=tuple(answer.tool_calls) if tools_offered else (),
        provider_state=answer.end.provider_state if answer.end else None,
    )
    final = not message.tool_calls and bool(text.strip())
    loop = conversation.loop.model_copy(
        update={
            "iteration": conversation.loop.iteration + 1,
            "consecutive_timeouts": 0,
            "empty_answers": conversation.loop.empty_answers + (not text.strip() and not message.tool_calls),
            "usage": conversation.loop.usage + (answer.usage or UNKNOWN_USAGE),
        }
    )
    seq = len(conversation.messages)
    events = _events(conversation, call, answer, EventStatus.COMPLETED, final=final)
    await world.recorder.model_call_finished(
        ModelCallResult(
            id=call,
            execution=conversation.execution,
            loop=loop,
            message_seq=seq,
            message=message,
            thinking="".join(answer.thinking),
            usage=answer.usage,
            duration_ms=_milliseconds(started),
            response_metadata={"finish_reason": answer.end.finish_reason} if answer.end else {},
        ),
        events,
    )
    conversation.messages.append(message)
    conversation.loop = loop


async def _record_failure(
    conversation: Conversation, call: UUID, answer: _Answer, error: ModelError, started: float, world: World
) -> None:
    """Records a failed call; returns when it is worth asking again, raises ModelCallFailed when not."""
    lost = conversation.loop.consecutive_timeouts + 1
    again = error.code in _ASK_AGAIN and lost < conversation.limits.consecutive_timeouts
    loop = conversation.loop.model_copy(
        update={
            "iteration": conversation.loop.iteration + 1,
            "consecutive_timeouts": lost,
            "usage": conversation.loop.usage + (answer.usage or UNKNOWN_USAGE),
        }
    )
    note = builder.retry_message(error.message, "".join(answer.text)) if again else None
    status = EventStatus.TIMED_OUT if error.code in _TIMEOUTS else EventStatus.FAILED
    events = _events(conversation, call, answer, status, final=False)
    if again:
        events.append(_error(conversation, call, error))
    failure = Failure(error.code.value, error.message)
    await world.recorder.model_call_finished(
        ModelCallResult(
            id=call,
            execution=conversation.execution,
            loop=loop,
            message_seq=len(conversation.messages) if note else None,
            message=note,
            thinking="".join(answer.thinking),
            usage=answer.usage,
            failure=failure,
            duration_ms=_milliseconds(started),
        ),
        events,
    )
    conversation.loop = loop
    if note is None:
        state = State.TIMED_OUT if error.code in _TIMEOUTS else State.FAILED
        where = f"provider {conversation.agent.provider.ref.name}: {error.message}"
        raise ModelCallFailed(state, Failure(error.code.value, where))
    conversation.messages.append(note)


def _events(
    conversation: Conversation, call: UUID, answer: _Answer, status: EventStatus, *, final: bool
) -> list[Event]:
    events = []
    if answer.thinking:
        events.append(_thinking(conversation, call, "".join(answer.thinking), status))
    if answer.text:
        events.append(_response(conversation, call, "".join(answer.text), status, final=final))
    return events


def _thinking(conversation: Conversation, call: UUID, text: str, status: EventStatus) -> Event:
    return _event(conversation, call, "thinking", EventType.LLM_THINKING, status, text)


def _response(conversation: Conversation, call: UUID, text: str, status: EventStatus, *, final: bool = False) -> Event:
    kind = EventType.FINAL_ANALYSIS if final else EventType.LLM_RESPONSE
    metadata = {"forced_conclusion": True} if final and conversation.loop.concluding else {}
    return _event(conversation, call, "response", kind, status, text, metadata)


def _error(conversation: Conversation, call: UUID, error: ModelError) -> Event:
    metadata = {"reason": error.code.value}
    return _event(conversation, call, "error", EventType.ERROR, EventStatus.COMPLETED, error.message, metadata)


def _event(
    conversation: Conversation,
    call: UUID,
    part: str,
    kind: EventType,
    status: EventStatus,
    content: str,
    metadata: dict[str, Any] | None = None,
) -> Event:
    return Event(
        id=event_id(call, part),
        type=kind,
        status=status,
        content=content,
        metadata=metadata or {},
        stage=conversation.stage,
        execution=conversation.execution,
        model_call=call,
    )


def _milliseconds(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
