"""One model call between its two boundaries.

Before the request leaves, the record says so (a); when the answer is complete, it is in the record with its usage and
the loop's state (b). What happens in between may be lost and is then asked again. Time is kept here, not in the SDKs:
a limit to the first chunk, one between chunks, one for the whole call.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import assert_never
from uuid import UUID

from tarsy.engine.conversation import CallModel, Conversation
from tarsy.engine.model_events import error_event, response_event, thinking_event
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
from tarsy.record.ids import model_call_id
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition
from tarsy.record.run import Failure, ModelCallKind, ModelCallResult, ModelCallStart, State
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


Read = Callable[[Conversation, UUID, str], list[Event]]
"""The timeline events that the complete text of a model call makes."""


@dataclass(slots=True)
class _Answer:
    """What has arrived of an answer; with `read`, its text is not shown as it arrives, but read when it is complete."""

    read: Read | None
    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    usage: Usage | None = None
    end: EndChunk | None = None


async def call_model(
    conversation: Conversation,
    turn: CallModel,
    tools: tuple[ToolDefinition, ...],
    world: World,
    *,
    seconds: float,
    read: Read | None = None,
) -> None:
    """Makes one model call, of at most `seconds`, and appends its answer to the conversation.

    An answer lost on the way (time ran out, the stream was cut) is noted for the next call and not an error until it
    happens `limits.consecutive_timeouts` times in a row.

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
    conversation.note = None
    world.control.check()  # the write may have waited for Postgres longer than the lease lasts

    started = time.monotonic()
    answer = _Answer(read)
    try:
        await _stream(conversation, call.id, answer, tools, world, seconds)
    except ModelError as error:
        await _record_failure(conversation, call.id, answer, error, started, world)
        return
    await _record_answer(conversation, call, answer, started, world)


async def _stream(
    conversation: Conversation,
    call: UUID,
    answer: _Answer,
    tools: tuple[ToolDefinition, ...],
    world: World,
    seconds: float,
) -> None:
    """Collects the answer's chunks in `answer`; raises ModelError, timeouts included."""
    request = GenerateRequest(
        messages=tuple(conversation.messages),
        tools=tools,
        execution=str(conversation.execution),
        agent=conversation.agent.name,
    )
    try:
        async with asyncio.timeout(seconds) as limit:
            async with world.models.client(conversation.agent.provider) as client:
                async with aclosing(client.generate(request)) as chunks:
                    await _collect(chunks, conversation, call, answer, world)
    except TimeoutError:
        if not limit.expired():
            raise
        raise ModelError(
            ModelErrorCode.TIMEOUT, f"the model's answer took longer than {round(seconds, 2):g} s.", retryable=True
        ) from None
    if answer.end is None:
        raise ModelError(
            ModelErrorCode.PARTIAL_STREAM, "the model's stream ended before its answer did.", retryable=True
        )


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
            if not answer.text and answer.read is None:
                await world.recorder.write_events([response_event(conversation, call, "", EventStatus.STREAMING)])
            answer.text.append(text)
        case ThinkingChunk(text):
            if not answer.thinking:
                await world.recorder.write_events([thinking_event(conversation, call, "", EventStatus.STREAMING)])
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
    conversation: Conversation, call: ModelCallStart, answer: _Answer, started: float, world: World
) -> None:
    text = "".join(answer.text)
    message = Message(
        Role.ASSISTANT,
        text,
        tool_calls=tuple(answer.tool_calls) if call.tools else (),
        provider_state=answer.end.provider_state if answer.end else None,
    )
    loop = conversation.loop.model_copy(
        update={
            "iteration": conversation.loop.iteration + 1,
            "consecutive_timeouts": 0,
            "empty_answers": conversation.loop.empty_answers + (not text.strip() and not message.tool_calls),
            "usage": conversation.loop.usage + (answer.usage or UNKNOWN_USAGE),
        }
    )
    seq = len(conversation.messages)
    kind = EventType.LLM_RESPONSE
    if text.strip() and not message.tool_calls:
        summary = call.kind is ModelCallKind.EXECUTIVE_SUMMARY
        kind = EventType.EXECUTIVE_SUMMARY if summary else EventType.FINAL_ANALYSIS
    await world.recorder.model_call_finished(
        ModelCallResult(
            id=call.id,
            execution=conversation.execution,
            loop=loop,
            message_seq=seq,
            message=message,
            thinking="".join(answer.thinking),
            usage=answer.usage,
            duration_ms=_milliseconds(started),
            response_metadata={"finish_reason": answer.end.finish_reason} if answer.end else {},
        ),
        _events(conversation, call.id, answer, EventStatus.COMPLETED, kind),
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
    status = EventStatus.TIMED_OUT if error.code in _TIMEOUTS else EventStatus.FAILED
    events = _events(conversation, call, answer, status, EventType.LLM_RESPONSE)
    if again:
        events.append(error_event(conversation, call, error))
    failure = Failure(error.code.value, error.message)
    await world.recorder.model_call_finished(
        ModelCallResult(
            id=call,
            execution=conversation.execution,
            loop=loop,
            thinking="".join(answer.thinking),
            usage=answer.usage,
            failure=failure,
            duration_ms=_milliseconds(started),
        ),
        events,
    )
    conversation.loop = loop
    if not again:
        state = State.TIMED_OUT if error.code in _TIMEOUTS else State.FAILED
        where = f"provider {conversation.agent.provider.ref.name}: {error.message}"
        raise ModelCallFailed(state, Failure(error.code.value, where))
    conversation.note = builder.retry_message(error.message, "".join(answer.text))


def _events(
    conversation: Conversation, call: UUID, answer: _Answer, status: EventStatus, kind: EventType
) -> list[Event]:
    events = []
    if answer.thinking:
        events.append(thinking_event(conversation, call, "".join(answer.thinking), status))
    if answer.read is not None:
        if status is EventStatus.COMPLETED:
            events += answer.read(conversation, call, "".join(answer.text))
    elif answer.text:
        events.append(response_event(conversation, call, "".join(answer.text), status, kind))
    return events


def _milliseconds(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
