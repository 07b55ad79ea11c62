"""Sends text that models are writing to readers that follow a run; it is never stored.

A process that runs investigations remembers for 30 seconds which of them are followed (`tarsy.stream.follow_requests`).
Only of those it takes new text out of the model streams, batched per tick. Each delta contains its offset in the text,
so that a reader notices a lost one; it can then request the text from its beginning, or wait for the closed event,
which the record has in full. Decision: the engine only reports that a text has grown, which costs two look-ups without
readers; masking and packing are done here, once a tick.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

import asyncpg
import orjson
from pydantic import TypeAdapter, ValidationError

from tarsy.store.database import call
from tarsy.store.errors import StoreError
from tarsy.store.queries import load
from tarsy.store.runs.wakeups import DELTA_CHANNEL, FOLLOW_CHANNEL
from tarsy.stream.follow_requests import KEEP_SECONDS, read_follow

TICK_SECONDS = 0.02
MAX_TEXT = 65_536
"""Maximum characters of a text that are sent before it is closed."""
MAX_PAYLOAD = 7_900
"""Maximum bytes of a payload; Postgres accepts less than 8,000."""
_MAX_PIECE = 1_900  # characters: JSON of any of them fits a payload
_RUN = 36  # characters of a run's id, which a payload begins with
_SECONDS = 5.0
_ITEMS = TypeAdapter(list[tuple[UUID, int, str, bool]])
_log = logging.getLogger(__name__)


class Words(Protocol):
    """Masks one text while it is being written."""

    @property
    def stopped(self) -> bool:
        """Whether no more of the text will be shown."""
        ...

    def add(self, text: str) -> str:
        """Returns the further text that may be shown."""
        ...


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the text of an event; `offset` is the number of characters before it.

    `truncated`: no more of this text is sent until its event is closed.
    """

    event: UUID
    offset: int
    text: str
    truncated: bool = False


@dataclass(slots=True)
class _Text:
    """A followed text: its pieces, which the engine appends to, and what was sent of them."""

    event: UUID
    pieces: Sequence[str]
    words: Words
    read: int = 0
    taken: int = 0
    shown: list[str] = field(default_factory=list)
    unsent: list[str] = field(default_factory=list)
    told: int = 0
    truncated: bool = False
    end_told: bool = False

    def deltas(self) -> Iterator[Delta]:
        """Returns the deltas that were not sent yet."""
        if self.read < len(self.pieces) and not self.truncated:
            self._take()
        text = "".join(self.unsent)
        self.unsent.clear()
        for place in range(0, len(text), _MAX_PIECE):
            yield Delta(self.event, self.told + place, text[place : place + _MAX_PIECE])
        self.told += len(text)
        if self.truncated and not self.end_told:
            self.end_told = True
            yield Delta(self.event, self.told, "", truncated=True)

    def _take(self) -> None:
        new = "".join(self.pieces[self.read :])[: MAX_TEXT - self.taken]
        self.read = len(self.pieces)
        self.taken += len(new)
        if more := self.words.add(new):
            self.shown.append(more)
            self.unsent.append(more)
        self.truncated = self.words.stopped or self.taken >= MAX_TEXT

    def anew(self) -> None:
        """Sends the text again from its beginning."""
        self.unsent, self.told, self.end_told = list(self.shown), 0, False


class RunDeltas:
    """Takes reports of the engine about the texts of one run (`engine.ports.Live`)."""

    def __init__(self, sender: "Deltas", run: UUID, words: Callable[[], Words]) -> None:
        self.run = run
        self._sender = sender
        self._words = words
        self._open: dict[UUID, Sequence[str]] = {}
        self._texts: dict[UUID, _Text] = {}
        self._grown: set[UUID] = set()
        self._to_tell: list[Callable[[], None]] = []

    @property
    def followed(self) -> bool:
        """Whether the run is followed now."""
        return self.run in self._sender.followed

    @contextmanager
    def when_followed(self, tell: Callable[[], None]) -> Iterator[None]:
        """Calls `tell` each time the run, without a follower before, gets one; until the context ends."""
        self._to_tell.append(tell)
        try:
            yield
        finally:
            self._to_tell.remove(tell)

    def follower_came(self) -> None:
        """Tells that the run is followed from now on."""
        for tell in list(self._to_tell):
            tell()

    def began(self, event: UUID, pieces: Sequence[str]) -> None:
        """Registers the text of an event; the caller appends to `pieces`."""
        self._open[event] = pieces
        self.grew(event)

    def grew(self, event: UUID) -> None:
        """Reports that the text of an event has grown."""
        if self.followed:
            self._grown.add(event)
            self._sender.wake(self)

    def ended(self, event: UUID) -> None:
        """Drops a text whose event is about to be closed; readers get the rest with the event."""
        self._open.pop(event, None)
        self._texts.pop(event, None)

    def anew(self) -> None:
        """Sends all texts again from their beginning."""
        for text in self._texts.values():
            text.anew()
        self._grown.update(self._open)
        self._sender.wake(self)

    def forget(self) -> None:
        """Drops what was prepared for readers, because none follows the run any more."""
        self._texts.clear()
        self._grown.clear()

    def deltas(self) -> list[Delta]:
        """Returns the deltas of all texts that were not sent yet."""
        grown, self._grown = self._grown, set()
        found: list[Delta] = []
        for event in grown:
            if event not in self._texts and event in self._open:
                self._texts[event] = _Text(event, self._open[event], self._words())
            if event in self._texts:
                found += self._texts[event].deltas()
        return found


class Deltas:
    """Sends the deltas of all runs of this process, in `run`."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        hear: Callable[[str, Callable[[str], None]], AbstractContextManager[None]],
        *,
        tick_seconds: float = TICK_SECONDS,
        keep_seconds: float = KEEP_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            pool: from `open_pool`.
            hear: method of a listener to FOLLOW_CHANNEL.
            tick_seconds: pause between two batches.
            keep_seconds: time for which a run counts as followed after a follow request.
            clock: monotonic seconds.
        """
        self._pool = pool
        self._hear = hear
        self._tick = tick_seconds
        self._keep = keep_seconds
        self._clock = clock
        self.followed: dict[UUID, float] = {}
        self._runs: dict[UUID, RunDeltas] = {}
        self._waiting: set[RunDeltas] = set()
        self._some = asyncio.Event()

    def follow(self, payload: str) -> None:
        """Handles a follow request of FOLLOW_CHANNEL."""
        told = read_follow(payload)
        if told is None:
            return
        self._prune()
        run, anew = told
        new = run not in self.followed
        self.followed[run] = self._clock() + self._keep
        if run not in self._runs:
            return
        if new:
            self._runs[run].follower_came()
        if new or anew:
            self._runs[run].anew()

    @contextmanager
    def of(self, run: UUID, words: Callable[[], Words]) -> Iterator[RunDeltas]:
        """Registers a run for the length of the block, while this process runs it.

        Args:
            run: its id.
            words: makes the masking of one text.
        """
        mine = self._runs[run] = RunDeltas(self, run, words)
        try:
            yield mine
        finally:
            if self._runs.get(run) is mine:
                del self._runs[run]
            self._waiting.discard(mine)

    def wake(self, run: RunDeltas) -> None:
        """Schedules a run whose texts have grown."""
        self._waiting.add(run)
        self._some.set()

    async def run(self) -> None:
        """Sends until it is cancelled. Deltas that cannot be sent are dropped: the closed events have the text."""
        with self._hear(FOLLOW_CHANNEL, self.follow):
            while True:
                await self._some.wait()
                self._some.clear()
                self._prune()
                waiting, self._waiting = self._waiting, set()
                payloads = [payload for run in waiting for payload in pack(run.run, run.deltas())]
                if payloads:
                    await self._send(payloads)
                await asyncio.sleep(self._tick)

    def _prune(self) -> None:
        now = self._clock()
        for run in [run for run, until in self.followed.items() if until < now]:
            del self.followed[run]
            if run in self._runs:
                self._runs[run].forget()

    async def _send(self, payloads: list[str]) -> None:
        async def send(connection: asyncpg.Connection) -> None:
            await connection.execute(*load("wakeups")["send_to"](channel=DELTA_CHANNEL, payloads=payloads))

        try:
            async with asyncio.timeout(_SECONDS):
                await call(self._pool, "send text of models", send)
        except (StoreError, TimeoutError) as error:
            _log.info("%d messages with text of models dropped, closed events contain it: %s", len(payloads), error)


def pack(run: UUID, deltas: Iterable[Delta]) -> Iterator[str]:
    """Packs the deltas of a run into payloads of at most MAX_PAYLOAD bytes."""
    head, parts, size = str(run), list[str](), 0
    for delta in deltas:
        part = orjson.dumps([str(delta.event), delta.offset, delta.text, delta.truncated])
        if parts and _RUN + 2 + size + len(part) > MAX_PAYLOAD:
            yield f"{head}[{','.join(parts)}]"
            parts, size = [], 0
        parts.append(part.decode())
        size += len(part) + 1
    if parts:
        yield f"{head}[{','.join(parts)}]"


def run_of_payload(payload: str) -> str:
    """Returns the id of the run of a payload without parsing the payload."""
    return payload[:_RUN]


def unpack(payload: str) -> list[Delta]:
    """Returns the deltas of a payload; none when another version wrote it and this one cannot read it."""
    try:
        items = _ITEMS.validate_json(payload[_RUN:])
    except ValidationError:
        return []
    return [Delta(event, offset, text, truncated) for event, offset, text, truncated in items]
