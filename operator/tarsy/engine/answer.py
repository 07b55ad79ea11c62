"""The answer of a model as it arrives, under its limits.

Time is kept here, not in the SDKs: a limit to the first chunk of each try, one between chunks, one for the whole call,
waits before new tries included. Writing to the record stops all three clocks. What a model says is cleaned here, where
it comes in: what the record keeps is then exactly what is sent next time.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, assert_never
from uuid import UUID

from tarsy.engine.conversation import Conversation
from tarsy.engine.model_events import native_event, response_event, thinking_event
from tarsy.engine.ports import World
from tarsy.engine.repetition import Repetition, first_only
from tarsy.engine.timing import Stopwatch, paused
from tarsy.llm.protocol import (
    Chunk,
    CodeExecutionChunk,
    EndChunk,
    GenerateRequest,
    GroundingChunk,
    ModelError,
    ModelErrorCode,
    RetryChunk,
    Source,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.plan.model import Limits
from tarsy.record.messages import ToolCall
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus
from tarsy.record.usage import Usage


@dataclass(slots=True)
class Answer:
    """What has arrived of an answer.

    `hidden`: its text is not shown as it arrives, but read when it is complete. `repeats`: it was cut, because it
    repeated itself.
    """

    hidden: bool = False
    text: str = ""
    thinking: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    native: list[CodeExecutionChunk | GroundingChunk] = field(default_factory=list)
    retries: list[RetryChunk] = field(default_factory=list)
    usage: Usage | None = None
    end: EndChunk | None = None
    repeats: bool = False

    def metadata(self) -> dict[str, Any]:
        """What the trace says of the answer beyond its text."""
        found: dict[str, Any] = {}
        if self.end is not None:
            found["finish_reason"] = self.end.finish_reason
        if self.repeats:
            found["finish_reason"] = "repeated_text"
        if self.retries:
            found["retries"] = [{"error": r.error.code.value, "seconds": round(r.seconds, 2)} for r in self.retries]
        for chunk in self.native:
            match chunk:
                case CodeExecutionChunk(code, output, language):
                    said = {"code": code, "output": output, "language": language}
                    found.setdefault("code_execution", []).append(said)
                case GroundingChunk(kind, queries, sources):
                    pages = [{"title": source.title, "url": source.url} for source in sources]
                    looked = {"kind": kind.value, "queries": list(queries), "sources": pages}
                    found.setdefault("grounding", []).append(looked)
                case _:
                    assert_never(chunk)
        return found


async def receive(
    answer: Answer, conversation: Conversation, call: UUID, request: GenerateRequest, world: World, watch: Stopwatch
) -> None:
    """Collects the answer of one model call, whatever has come of it when this raises.

    Raises:
        ModelError: the call failed, timeouts included.
    """
    seconds = min(watch.left, conversation.limits.model_call_seconds)
    reception = _Reception(answer, conversation, call, world, watch)
    try:
        async with asyncio.timeout(seconds) as limit:
            with watch.running():
                async with world.models.client(conversation.agent.provider) as client:
                    async with aclosing(client.generate(request)) as chunks:
                        await reception.collect(chunks, limit)
    except TimeoutError:
        if not limit.expired():
            raise
        raise _time_error(conversation.limits, seconds) from None
    finally:
        reception.close()
    if answer.end is None and not answer.repeats:
        raise ModelError(
            ModelErrorCode.PARTIAL_STREAM, "the model's stream ended before its answer did.", retryable=True
        )


class _Reception:
    """Takes one stream apart, chunk by chunk."""

    def __init__(self, answer: Answer, conversation: Conversation, call: UUID, world: World, watch: Stopwatch) -> None:
        self._answer = answer
        self._conversation = conversation
        self._call = call
        self._world = world
        self._watch = watch
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._text_repeats, self._thinking_repeats = Repetition(), Repetition()

    async def collect(self, chunks: AsyncGenerator[Chunk, None], limit: asyncio.Timeout) -> None:
        """Takes all chunks, or those before the text repeats itself."""
        limits, first = self._conversation.limits, True
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(limits.first_token_seconds) as idle:
                async for chunk in chunks:
                    idle.reschedule(None)
                    if isinstance(chunk, RetryChunk):
                        self._answer.retries.append(chunk)
                        idle.reschedule(loop.time() + chunk.seconds + limits.first_token_seconds)
                        continue
                    first = False
                    if (event := self._take(chunk)) is not None:
                        with paused(limit), self._watch.paused():
                            await self._world.recorder.write_events([event])
                    if self._answer.repeats:
                        return
                    idle.reschedule(loop.time() + limits.stall_seconds)
        except TimeoutError:
            if not idle.expired():
                raise
            raise _idle_error(limits, first) from None

    def close(self) -> None:
        """Puts together what has come."""
        self._answer.text = self._answer.text or "".join(self._text)
        self._answer.thinking = self._answer.thinking or "".join(self._thinking)

    def _take(self, chunk: Chunk) -> Event | None:
        """Keeps a chunk; the event that it begins, if any."""
        answer, event = self._answer, None
        match chunk:
            case TextChunk(text):
                if not self._text and not answer.hidden:
                    event = response_event(self._conversation, self._call, "", EventStatus.STREAMING)
                self._text.append(clean(text))
                if (length := self._text_repeats.add(self._text[-1])) is not None:
                    answer.text, answer.repeats = first_only(self._text, length), True
            case ThinkingChunk(text):
                if not self._thinking:
                    event = thinking_event(self._conversation, self._call, "", EventStatus.STREAMING)
                self._thinking.append(clean(text))
                if (length := self._thinking_repeats.add(self._thinking[-1])) is not None:
                    answer.thinking, answer.repeats = first_only(self._thinking, length), True
            case ToolCallChunk(call):
                answer.tool_calls.append(ToolCall(clean(call.id), clean(call.name), clean(call.arguments)))
            case CodeExecutionChunk() | GroundingChunk():
                answer.native.append(_clean(chunk))
                number = len(answer.native) - 1
                event = native_event(self._conversation, self._call, number, answer.native[-1], EventStatus.STREAMING)
            case UsageChunk(usage):
                answer.usage = usage
            case EndChunk():
                answer.end = chunk
            case RetryChunk():
                raise AssertionError("taken by collect")
            case _:
                assert_never(chunk)
        return event


def _clean(chunk: CodeExecutionChunk | GroundingChunk) -> CodeExecutionChunk | GroundingChunk:
    match chunk:
        case CodeExecutionChunk(code, output, language):
            return CodeExecutionChunk(clean(code), clean(output), clean(language))
        case GroundingChunk(kind, queries, sources):
            pages = tuple(Source(clean(source.title), clean(source.url)) for source in sources)
            return GroundingChunk(kind, tuple(clean(query) for query in queries), pages)


def _time_error(limits: Limits, seconds: float) -> ModelError:
    """Names the limit that ended a call: its own, or what was left of its iteration's."""
    if seconds >= limits.model_call_seconds:
        text = f"the model's answer took longer than {seconds:g} s (timeouts.modelCallSeconds)."
        return ModelError(ModelErrorCode.TIMEOUT, text, retryable=True)
    text = f"the model's answer took longer than its iteration may, {limits.iteration_seconds:g} s "
    return ModelError(ModelErrorCode.ITERATION_TIMEOUT, text + "(timeouts.iterationSeconds).", retryable=True)


def _idle_error(limits: Limits, first: bool) -> ModelError:
    if first:
        text = f"the model sent nothing for {limits.first_token_seconds:g} s (timeouts.firstTokenSeconds)."
        return ModelError(ModelErrorCode.FIRST_TOKEN_TIMEOUT, text, retryable=True)
    text = f"the model's stream stood still for {limits.stall_seconds:g} s (timeouts.stallSeconds)."
    return ModelError(ModelErrorCode.STALL, text, retryable=True, started=True)
