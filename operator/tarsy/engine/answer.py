"""The answer of a model as it arrives, under its limits.

Time is kept here, not in the SDKs: a limit to the first chunk of each try, one between chunks, one for the whole call,
waits before new tries included. Writing to the record stops all three clocks, and so does a wait for the call's turn
under a limit of its provider. What a model says is cleaned here, where
it comes in, and without secrets before it is recorded: what the record keeps is then exactly what is sent next time.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, assert_never
from uuid import UUID

from tarsy.engine.conversation import Conversation
from tarsy.engine.masking import Mask, Shown, holds, masked, masked_aside
from tarsy.engine.model_events import (
    native_event,
    notice_event,
    response_event,
    retry_event,
    thinking_event,
    wait_event,
)
from tarsy.engine.ports import World
from tarsy.engine.repetition import Repetition, first_only
from tarsy.engine.text_calls import take_calls
from tarsy.engine.timing import Silence, Stopwatch, paused
from tarsy.llm.protocol import (
    ActivityChunk,
    Chunk,
    CodeExecutionChunk,
    EndChunk,
    GenerateRequest,
    GroundingChunk,
    ModelError,
    ModelErrorCode,
    NoticeChunk,
    RetryChunk,
    Source,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
    WaitChunk,
)
from tarsy.plan.model import Limits
from tarsy.record.messages import ToolCall
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus
from tarsy.record.usage import Usage


@dataclass(slots=True)
class Answer:
    """What has arrived of an answer.

    `hidden`: its text is not shown as it arrives, but read when it is complete; `silent`: nor is its thinking.
    `repeats`: it was cut, because it repeated itself. `waits`: the limits under which the call waited for its turn,
    with the seconds. `server_words`: what the server said of a failure, masked; only the trace has them. `written` is
    the whole text of an answer that had its calls in it, `text` then what is left.
    """

    hidden: bool = False
    silent: bool = False
    text: str = ""
    thinking: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    native: list[CodeExecutionChunk | GroundingChunk] = field(default_factory=list)
    retries: list[RetryChunk] = field(default_factory=list)
    waits: list[tuple[str, float]] = field(default_factory=list)
    usage: Usage | None = None
    end: EndChunk | None = None
    repeats: bool = False
    server_words: str = ""
    written: str = ""

    @property
    def said(self) -> str:
        """The text as the model wrote it."""
        return self.written or self.text

    def metadata(self) -> dict[str, Any]:
        """What the trace says of the answer beyond its text."""
        found: dict[str, Any] = {}
        if self.end is not None:
            found["finish_reason"] = self.end.finish_reason
        if self.repeats:
            found["finish_reason"] = "repeated_text"
        if self.retries:
            found["retries"] = [{"error": r.error.code.value, "seconds": round(r.seconds, 2)} for r in self.retries]
        if self.waits:
            found["waits"] = [{"limit": limit, "seconds": round(seconds, 2)} for limit, seconds in self.waits]
        if self.server_words:
            found["server_words"] = self.server_words
        if self.written:
            found["calls_in_text"] = len(self.tool_calls)
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


async def without_secrets(answer: Answer, mask: Mask, shown: Shown | None) -> Answer:
    """An answer as it may be recorded; the one given stays as it is.

    What its provider wants back of it is dropped where it repeats the words that were taken out; the provider is then
    sent the answer like one of another model, as after a fallback.

    Args:
        answer: complete, or as far as it came.
        mask: for all of it.
        shown: for the arguments of its calls as well; None where it has none.
    """
    text = await masked_aside(mask, answer.text)
    calls = []
    for call in answer.tool_calls:
        arguments = await masked_aside(mask, call.arguments)
        calls.append(replace(call, arguments=shown(call.name, arguments) if shown else arguments))
    end = answer.end
    changed = [(wrote.arguments, known.arguments) for wrote, known in zip(answer.tool_calls, calls, strict=True)]
    if end is not None and holds(end.provider_state, (answer.text, text), changed):
        end = replace(end, provider_state=None)
    thinking, written = await masked_aside(mask, answer.thinking), await masked_aside(mask, answer.written)
    return replace(answer, text=text, thinking=thinking, tool_calls=calls, end=end, written=written)


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
    if not request.may_call:
        answer.tool_calls.clear()
    elif request.offers_tools and not answer.tool_calls and not answer.repeats:
        _take_calls(answer, request, call)


def _take_calls(answer: Answer, request: GenerateRequest, call: UUID) -> None:
    """Makes calls of what the answer has in its text; what its provider wants back of it does not know them."""
    taken = take_calls(answer.text, request.tools, request.messages, call)
    if taken is not None:
        answer.written, answer.text = answer.text, taken.text
        answer.tool_calls.extend(taken.calls)
        if answer.end is not None:
            answer.end = replace(answer.end, provider_state=None)


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
        self._shown_text: UUID | None = None
        self._shown_thinking: UUID | None = None

    async def collect(self, chunks: AsyncGenerator[Chunk, None], limit: asyncio.Timeout) -> None:
        """Takes all chunks, or those before the text repeats itself."""
        limits, first = self._conversation.limits, True
        try:
            async with Silence(limits.first_token_seconds) as silence:
                async for chunk in chunks:
                    silence.heard()
                    if isinstance(chunk, RetryChunk | WaitChunk | NoticeChunk):
                        pause = await self._begin_anew(chunk, chunks, limit)
                        silence.expect(pause + limits.first_token_seconds)
                        continue
                    first = False
                    if (event := self._take(chunk)) is not None:
                        await self._write(event, limit)
                    if self._answer.repeats:
                        return
                    silence.expect(limits.stall_seconds)
        except TimeoutError:
            if not silence.expired():
                raise
            raise _idle_error(limits, first) from None

    async def _begin_anew(
        self, chunk: RetryChunk | WaitChunk | NoticeChunk, chunks: AsyncGenerator[Chunk, None], limit: asyncio.Timeout
    ) -> float:
        """Tells what comes before an answer; the seconds after which the wait for its first chunk begins."""
        answer, of = self._answer, (self._conversation, self._call)
        match chunk:
            case RetryChunk():
                answer.retries.append(chunk)
                event = retry_event(*of, len(answer.retries), chunk)
                await self._write(replace(event, content=masked(self._world.mask, event.content)), limit)
                return chunk.seconds
            case WaitChunk():
                place, clock = len(answer.waits), asyncio.get_running_loop().time
                with paused(limit), self._watch.paused():
                    began = clock()
                    await self._world.recorder.write_events([wait_event(*of, place, chunk)])
                    await anext(chunks, None)
                    seconds = clock() - began
                    answer.waits.append((chunk.limit, seconds))
                    await self._world.recorder.write_events([wait_event(*of, place, chunk, seconds)])
            case NoticeChunk():
                await self._write(notice_event(*of, chunk), limit)
        return 0.0

    async def _write(self, event: Event, limit: asyncio.Timeout) -> None:
        with paused(limit), self._watch.paused():
            await self._world.recorder.write_events([event])

    def close(self) -> None:
        """Puts together what has come."""
        for event in (self._shown_text, self._shown_thinking):
            if event is not None:
                self._world.live.ended(event)
        self._answer.text = self._answer.text or "".join(self._text)
        self._answer.thinking = self._answer.thinking or "".join(self._thinking)

    def _take(self, chunk: Chunk) -> Event | None:
        """Keeps a chunk; the event that it begins, if any."""
        answer, event = self._answer, None
        match chunk:
            case TextChunk(text):
                if not self._text and not answer.hidden:
                    event = response_event(self._conversation, self._call, "", EventStatus.STREAMING)
                    self._shown_text = event.id
                    self._world.live.began(event.id, self._text)
                self._text.append(clean(text))
                if self._shown_text is not None:
                    self._world.live.grew(self._shown_text)
                if (length := self._text_repeats.add(self._text[-1])) is not None:
                    answer.text, answer.repeats = first_only(self._text, length), True
            case ThinkingChunk(text):
                if not self._thinking and not answer.silent:
                    event = thinking_event(self._conversation, self._call, "", EventStatus.STREAMING)
                    self._shown_thinking = event.id
                    self._world.live.began(event.id, self._thinking)
                self._thinking.append(clean(text))
                if self._shown_thinking is not None:
                    self._world.live.grew(self._shown_thinking)
                if (length := self._thinking_repeats.add(self._thinking[-1])) is not None:
                    answer.thinking, answer.repeats = first_only(self._thinking, length), True
            case ToolCallChunk(call):
                answer.tool_calls.append(ToolCall(clean(call.id), clean(call.name), clean(call.arguments)))
            case CodeExecutionChunk() | GroundingChunk():
                answer.native.append(_clean(chunk, self._world.mask))
                number = len(answer.native) - 1
                event = native_event(self._conversation, self._call, number, answer.native[-1], EventStatus.STREAMING)
            case UsageChunk(usage):
                answer.usage = usage
            case EndChunk():
                answer.end = chunk
            case ActivityChunk():
                pass
            case RetryChunk() | WaitChunk() | NoticeChunk():
                raise AssertionError("taken by collect")
            case _:
                assert_never(chunk)
        return event


def _clean(chunk: CodeExecutionChunk | GroundingChunk, mask: Mask) -> CodeExecutionChunk | GroundingChunk:
    """What people see of a provider's tool at once, so without secrets at once."""

    def shown(text: str) -> str:
        return masked(mask, clean(text))

    match chunk:
        case CodeExecutionChunk(code, output, language):
            return CodeExecutionChunk(shown(code), shown(output), clean(language))
        case GroundingChunk(kind, queries, sources):
            pages = tuple(Source(shown(source.title), shown(source.url)) for source in sources)
            return GroundingChunk(kind, tuple(shown(query) for query in queries), pages)


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
