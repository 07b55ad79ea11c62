"""What a model says, as it comes, to whoever reads along: never stored, and free where nobody does.

A process that runs investigations keeps for half a minute which of them are followed (`tarsy.stream.follow_requests`),
and only of those takes new words out of the streams, batched per tick. Each piece says its place in the text, so a
reader knows whether it missed one; it can then ask for the text anew, or wait for the event that closes it, which is in
the record whole. Decision: the engine leaves the pieces where they are and says that there are more, which costs two
look-ups; who listens, what may be shown and how it is packed is decided here, once a tick.
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
from tarsy.store.wakeups import DELTA_CHANNEL, FOLLOW_CHANNEL
from tarsy.stream.follow_requests import KEEP_SECONDS, read_follow

TICK_SECONDS = 0.02
MAX_TEXT = 65_536
"""Characters of a text that are told before it is closed."""
MAX_PAYLOAD = 7_900
"""Bytes of a payload; Postgres takes less than 8,000."""
_MAX_PIECE = 1_900  # characters: JSON of any of them fits a payload
_RUN = 36  # characters of a run's id, which a payload begins with
_SECONDS = 5.0
_ITEMS = TypeAdapter(list[tuple[UUID, int, str, bool]])
_log = logging.getLogger(__name__)


class Words(Protocol):
    """Takes one text as it comes and says what of it may be shown."""

    @property
    def stopped(self) -> bool:
        """Whether nothing more will be."""
        ...

    def add(self, text: str) -> str:
        """What can be shown in addition."""
        ...


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an event's text; `offset` characters came before it.

    `truncated`: no more is told of this text until its event is closed.
    """

    event: UUID
    offset: int
    text: str
    truncated: bool = False


@dataclass(slots=True)
class _Text:
    """A text that is followed: its pieces as the engine has them, and what was told of them."""

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
        """What was not told yet."""
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
        """All of it is to be told again."""
        self.unsent, self.told, self.end_told = list(self.shown), 0, False


class RunDeltas:
    """The texts of one run: what the engine says of them (`engine.ports.Live`)."""

    def __init__(self, sender: "Deltas", run: UUID, words: Callable[[], Words]) -> None:
        self.run = run
        self._sender = sender
        self._words = words
        self._open: dict[UUID, Sequence[str]] = {}
        self._texts: dict[UUID, _Text] = {}
        self._grown: set[UUID] = set()

    def began(self, event: UUID, pieces: Sequence[str]) -> None:
        """The text of an event begins; `pieces` is all of it at any time."""
        self._open[event] = pieces
        self.grew(event)

    def grew(self, event: UUID) -> None:
        """More of it has come."""
        if self.run in self._sender.followed:
            self._grown.add(event)
            self._sender.wake(self)

    def ended(self, event: UUID) -> None:
        """Its event is about to be closed: what was not told is told by that."""
        self._open.pop(event, None)
        self._texts.pop(event, None)

    def anew(self) -> None:
        """Somebody needs all texts from their beginning."""
        for text in self._texts.values():
            text.anew()
        self._grown.update(self._open)
        self._sender.wake(self)

    def forget(self) -> None:
        """Nobody reads along any more."""
        self._texts.clear()
        self._grown.clear()

    def deltas(self) -> list[Delta]:
        """What was not told yet, of all texts."""
        grown, self._grown = self._grown, set()
        found: list[Delta] = []
        for event in grown:
            if event not in self._texts and event in self._open:
                self._texts[event] = _Text(event, self._open[event], self._words())
            if event in self._texts:
                found += self._texts[event].deltas()
        return found


class Deltas:
    """Tells what the models of this process's runs say, from `run`."""

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
            hear: of a listener to FOLLOW_CHANNEL.
            tick_seconds: how long words are gathered after some were sent.
            keep_seconds: how long a run counts as followed after somebody said so.
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
        """Somebody said on FOLLOW_CHANNEL that they read along."""
        told = read_follow(payload)
        if told is None:
            return
        self._prune()
        run, anew = told
        new = run not in self.followed
        self.followed[run] = self._clock() + self._keep
        if (new or anew) and run in self._runs:
            self._runs[run].anew()

    @contextmanager
    def of(self, run: UUID, words: Callable[[], Words]) -> Iterator[RunDeltas]:
        """The texts of a run, for as long as this process runs it.

        Args:
            run: its id.
            words: what takes one text and says what of it may be shown.
        """
        mine = self._runs[run] = RunDeltas(self, run, words)
        try:
            yield mine
        finally:
            if self._runs.get(run) is mine:
                del self._runs[run]
            self._waiting.discard(mine)

    def wake(self, run: RunDeltas) -> None:
        """There is something to tell of a run."""
        self._waiting.add(run)
        self._some.set()

    async def run(self) -> None:
        """Tells until it is cancelled. What cannot be sent is dropped: the closed events have it."""
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
                await call(self._pool, "tell what models say", send)
        except (StoreError, TimeoutError) as error:
            _log.info("%d messages with words of models were not told, their events will be: %s", len(payloads), error)


def pack(run: UUID, deltas: Iterable[Delta]) -> Iterator[str]:
    """The deltas of a run as payloads, none of them over MAX_PAYLOAD bytes."""
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
    """Whose deltas a payload has: enough to leave it unread."""
    return payload[:_RUN]


def unpack(payload: str) -> list[Delta]:
    """The deltas of a payload; none of one that another version wrote and this one cannot read."""
    try:
        items = _ITEMS.validate_json(payload[_RUN:])
    except ValidationError:
        return []
    return [Delta(event, offset, text, truncated) for event, offset, text, truncated in items]
