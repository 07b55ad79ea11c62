"""Receives the answer of a model as it streams, within the time limits of the call.

Time is kept here, not in the SDKs: limits to silence, to the first chunk of each try, between chunks, and to the whole
call, waits before new tries included. Waiting for the record stops all clocks, and so does a wait for the call's turn
under a limit of its provider. A call is cut as soon as its run is to conclude; one that concludes has a short time from
then on, waits for its turn included. What a model says is cleaned here, where it comes in, and without secrets before
it is recorded: what the record keeps is then exactly what is sent next time.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import assert_never
from uuid import UUID

from tarsy.engine.conversation.masking import Mask, mask_response_text
from tarsy.engine.conversation.state import Conversation
from tarsy.engine.limits.timing import Cut, Silence, Stopwatch, paused, timeouts
from tarsy.engine.model_calls.clock import CallClock
from tarsy.engine.model_calls.events import (
    native_event,
    notice_event,
    response_event,
    retry_event,
    thinking_event,
    wait_event,
)
from tarsy.engine.model_calls.late_events import LateEvents
from tarsy.engine.model_calls.repetition import RepeatedText, first_only
from tarsy.engine.model_calls.response import ModelResponse, Waiting
from tarsy.engine.model_calls.text_calls import take_calls
from tarsy.engine.run_context import RunContext
from tarsy.llm.protocol import (
    ActivityChunk,
    Chunk,
    CodeExecutionChunk,
    EndChunk,
    GenerateRequest,
    GroundingChunk,
    GroundingSource,
    LifeChunk,
    ModelError,
    ModelErrorCode,
    NoticeChunk,
    RetryChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
    WaitChunk,
)
from tarsy.masking import off_loop
from tarsy.record.messages import ToolCall
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus


class CutToConclude(Exception):
    """The call was cut, because its run is to conclude."""


async def receive(
    answer: ModelResponse,
    conversation: Conversation,
    call: UUID,
    request: GenerateRequest,
    world: RunContext,
    watch: Stopwatch,
    *,
    concludes: bool = False,
) -> None:
    """Collects the answer of one model call, whatever has come of it when this raises.

    Args:
        answer: is filled.
        conversation: asks.
        call: its id.
        request: what is asked.
        world: the ports.
        watch: counts the call's time.
        concludes: the call has time for its answer when the run is to conclude; any other is cut then.

    Raises:
        ModelError: the call failed, timeouts included.
        CutToConclude: the run is to conclude.
    """
    provider, limits = conversation.agent.provider, conversation.limits
    if world.control.concluding and not concludes:
        answer.unsent = True
        raise CutToConclude
    reception = _Reception(answer, conversation, call, world, watch)
    seconds, limit = min(watch.left, reception.timeouts.call), asyncio.timeout(None)
    clock, cut = reception.clock, reception.cut
    async with reception.late:
        try:
            async with cut:
                with world.control.when_concluding(lambda: cut.after(limits.conclusion_seconds if concludes else 0.0)):
                    async with asyncio.timeout(seconds) as limit:
                        with watch.running():
                            async with world.models.client(provider) as client:
                                async with aclosing(client.generate(request)) as chunks:
                                    await reception.collect(chunks, limit)
        except TimeoutError:
            if cut.expired():
                raise (clock.conclusion_error(limits) if concludes else CutToConclude()) from None
            if not limit.expired():
                raise
            raise clock.call_error(seconds, limits) from None
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


def _take_calls(answer: ModelResponse, request: GenerateRequest, call: UUID) -> None:
    """Makes calls of what the answer has in its text; what its provider wants back of it does not know them."""
    taken = take_calls(answer.text, request.tools, request.messages, call)
    if taken is not None:
        answer.written, answer.text = answer.text, taken.text
        answer.tool_calls.extend(taken.calls)
        if answer.end is not None:
            answer.end = replace(answer.end, provider_state=None)


class _Reception:
    """Takes one stream apart, chunk by chunk."""

    def __init__(
        self,
        answer: ModelResponse,
        conversation: Conversation,
        call: UUID,
        world: RunContext,
        watch: Stopwatch,
    ) -> None:
        provider = conversation.agent.provider
        self.timeouts = timeouts(provider, conversation.limits)
        self.clock = CallClock(provider, self.timeouts)
        self.cut = Cut()
        self.late = LateEvents(world.recorder.write_events, world.live)
        self._answer = answer
        self._conversation = conversation
        self._call = call
        self._world = world
        self._watch = watch
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._kept: str | None = None
        self._text_repeats, self._thinking_repeats = RepeatedText(), RepeatedText()
        self._shown_text: UUID | None = None
        self._shown_thinking: UUID | None = None

    async def collect(self, chunks: AsyncGenerator[Chunk, None], limit: asyncio.Timeout) -> None:
        """Takes all chunks, or those before the text repeats itself."""
        clock = self.clock
        try:
            async with Silence(clock.begin()) as silence:
                async for chunk in chunks:
                    silence.heard()
                    if isinstance(chunk, RetryChunk | WaitChunk | NoticeChunk):
                        silence.expect(clock.begin(await self._begin_anew(chunk, chunks, limit)))
                        continue
                    if isinstance(chunk, LifeChunk):
                        silence.expect(clock.alive())
                        continue
                    if isinstance(chunk, CodeExecutionChunk | GroundingChunk):
                        chunk = await off_loop(partial(_clean, chunk, self._world.mask), len(repr(chunk)))
                    self._take(chunk)
                    if self._answer.repeats:
                        return
                    silence.expect(clock.answering())
        except TimeoutError:
            if not silence.expired():
                raise
            raise clock.idle_error() from None
        self._look_again()

    async def _begin_anew(
        self, chunk: RetryChunk | WaitChunk | NoticeChunk, chunks: AsyncGenerator[Chunk, None], limit: asyncio.Timeout
    ) -> float:
        """Tells what comes before an answer; the seconds after which the wait for its first chunk begins."""
        answer, of = self._answer, (self._conversation, self._call)
        match chunk:
            case RetryChunk():
                answer.retries.append(chunk)
                event = retry_event(*of, len(answer.retries), chunk)
                await self._write(replace(event, content=mask_response_text(self._world.mask, event.content)), limit)
                return chunk.seconds
            case WaitChunk():
                place, clock = len(answer.waits), asyncio.get_running_loop().time
                with paused(limit), self._watch.paused():
                    began = clock()
                    answer.waiting = Waiting(chunk, began)
                    answer.unsent = not answer.retries
                    with self.cut.held():
                        await self._world.recorder.write_events([wait_event(*of, place, chunk)])
                    await anext(chunks, None)
                    seconds = clock() - began
                    answer.waits.append((chunk.limit, seconds))
                    answer.waiting, answer.unsent = None, False
                    with self.cut.held():
                        await self._world.recorder.write_events([wait_event(*of, place, chunk, seconds)])
            case NoticeChunk():
                await self._write(notice_event(*of, chunk), limit)
        return 0.0

    async def _write(self, event: Event, limit: asyncio.Timeout) -> None:
        with self.cut.held(), paused(limit), self._watch.paused():
            await self._world.recorder.write_events([event])

    def _look_again(self) -> None:
        """Judges the end of a text that was too short to be looked at while it came, where it is the whole answer."""
        if self._answer.tool_calls:
            return
        if (length := self._text_repeats.end()) is not None:
            self._kept, self._answer.repeats = first_only(self._text, length), True

    def close(self) -> None:
        """Puts together what has come."""
        for event in (self._shown_text, self._shown_thinking):
            if event is not None:
                self._world.live.ended(event)
        self._answer.text = "".join(self._text) if self._kept is None else self._kept
        self._answer.thinking = self._answer.thinking or "".join(self._thinking)

    def _take(self, chunk: Chunk) -> None:
        """Keeps a chunk, and begins its event."""
        answer = self._answer
        match chunk:
            case TextChunk(text):
                self._text.append(clean(text))
                if self._shown_text is None and self._text[-1] and not answer.hidden:
                    event = response_event(self._conversation, self._call, "", EventStatus.STREAMING)
                    self._shown_text = self._shown(event, self._text)
                if self._shown_text is not None:
                    self._world.live.grew(self._shown_text)
                if (length := self._text_repeats.add(self._text[-1])) is not None:
                    self._kept, answer.repeats = first_only(self._text, length), True
            case ThinkingChunk(text):
                self._thinking.append(clean(text))
                if self._shown_thinking is None and self._thinking[-1] and not answer.silent:
                    event = thinking_event(self._conversation, self._call, "", EventStatus.STREAMING)
                    self._shown_thinking = self._shown(event, self._thinking)
                if self._shown_thinking is not None:
                    self._world.live.grew(self._shown_thinking)
                if (length := self._thinking_repeats.add(self._thinking[-1])) is not None:
                    answer.thinking, answer.repeats = first_only(self._thinking, length), True
            case ToolCallChunk(call):
                answer.tool_calls.append(ToolCall(clean(call.id), clean(call.name), clean(call.arguments)))
            case CodeExecutionChunk() | GroundingChunk():
                answer.native.append(chunk)
                number = len(answer.native) - 1
                self.late.begin(
                    native_event(self._conversation, self._call, number, answer.native[-1], EventStatus.STREAMING)
                )
            case UsageChunk(usage):
                answer.usage = usage
            case EndChunk():
                answer.end = chunk
            case ActivityChunk():
                pass
            case RetryChunk() | WaitChunk() | NoticeChunk() | LifeChunk():
                raise AssertionError("taken by collect")
            case _:
                assert_never(chunk)

    def _shown(self, event: Event, pieces: list[str]) -> UUID:
        """Begins the event of a text that is shown as it comes, all of it `pieces`; its id."""
        self.late.begin(event)
        self._world.live.began(event.id, pieces)
        return event.id


def _clean(chunk: CodeExecutionChunk | GroundingChunk, mask: Mask) -> CodeExecutionChunk | GroundingChunk:
    """Masks text about a provider's tool that is shown immediately."""

    def shown(text: str) -> str:
        return mask_response_text(mask, clean(text))

    match chunk:
        case CodeExecutionChunk(code, output, language):
            return CodeExecutionChunk(shown(code), shown(output), clean(language))
        case GroundingChunk(kind, queries, sources):
            pages = tuple(GroundingSource(shown(source.title), shown(source.url)) for source in sources)
            return GroundingChunk(kind, tuple(shown(query) for query in queries), pages)
