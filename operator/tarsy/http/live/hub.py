"""All who follow something in this process, and the one place that hears of changes for them.

One reader an investigation, however many follow it, and none for what nobody follows: wake-ups are handed to feeds by
the run that they name. Decision: a wake-up is a hint. Every poll interval one statement asks how far all followed runs
are, so a lost wake-up, or a Postgres that was away, costs that long, and nobody who follows notices more of it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from tarsy.http.errors import TooManyRequests, Unavailable
from tarsy.http.live.investigation_stream import InvestigationStream, RecordGone
from tarsy.http.live.lists import Lists
from tarsy.record.run import InvestigationRecord
from tarsy.store.errors import StoreError
from tarsy.store.reads import Reads
from tarsy.store.run_heads import Head, Heads
from tarsy.store.wakeups import DELTA_CHANNEL, RUN_CHANNEL
from tarsy.stream.deltas import run_of_payload, unpack
from tarsy.stream.follow_requests import Following
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier

CHANNELS = (RUN_CHANNEL, DELTA_CHANNEL)
"""What the listener of a hub listens to."""
_POLL_SECONDS = 2.0
CHECK_SECONDS = 25.0
_CONNECTIONS = 2_000
CONNECTIONS_OF_ONE = 20
"""Sockets and streams of this process, and of one caller, at once."""
_GATHER_SECONDS = 0.05
_QUESTIONS_EVERY = 15  # polls
_STRANGERS = 20_000
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Shared:
    """A feed, the task that drives it, and how many follow it."""

    feed: InvestigationStream
    task: asyncio.Task[None]
    followers: int = 0


class Hub:
    """Follows for all; serve from `run`.

    Args:
        pool: what is read from.
        listener: of CHANNELS; run by the hub.
        notifier: says what is followed; run by the hub.
        poll_seconds: what a lost wake-up costs.
        check_seconds: how often the right of who follows is looked at.
        of_one: connections of one caller at once.
        of_all: of all callers.
    """

    def __init__(
        self,
        pool: asyncpg.Pool,
        listener: Listener,
        notifier: Notifier,
        *,
        poll_seconds: float = _POLL_SECONDS,
        check_seconds: float = CHECK_SECONDS,
        of_one: int = CONNECTIONS_OF_ONE,
        of_all: int = _CONNECTIONS,
    ) -> None:
        self._reads = Reads(pool)
        self._heads = Heads(pool)
        self._listener = listener
        self._notifier = notifier
        self._following = Following(notifier.notify)
        self._poll = poll_seconds
        self.check_seconds = check_seconds
        self._of_one = of_one
        self._of_all = of_all
        self.lists = Lists(pool, self._heads)
        self._group: asyncio.TaskGroup | None = None
        self._feeds: dict[UUID, _Shared] = {}
        self._of_run: dict[UUID, InvestigationStream] = {}
        self._changed: set[UUID] = set()
        self._strangers: dict[UUID, None] = {}
        self._some = asyncio.Event()
        self._callers: dict[str, int] = {}

    async def run(self) -> None:
        """Follows until it is cancelled."""
        with (
            self._listener.hear(RUN_CHANNEL, self._heard),
            self._listener.hear(DELTA_CHANNEL, self._said),
        ):
            try:
                async with asyncio.TaskGroup() as group:
                    self._group = group
                    group.create_task(self._listener.run())
                    group.create_task(self._notifier.run())
                    group.create_task(self._following.run())
                    group.create_task(self._look())
            finally:
                self._group = None

    @contextlib.asynccontextmanager
    async def follow(self, record: InvestigationRecord) -> AsyncIterator[InvestigationStream]:
        """The feed of an investigation, for as long as somebody follows it.

        Raises:
            Unavailable: the hub does not run.
        """
        shared = self._feeds.get(record.id)
        if shared is None or shared.feed.gone.is_set():
            if self._group is None:
                raise Unavailable("streaming is unavailable now; try again")
            feed = InvestigationStream(
                record, self._reads, self._heads, self._following, lambda run: self._found(run, feed)
            )
            shared = self._feeds[record.id] = _Shared(feed, self._group.create_task(self._drive(feed)))
            self._of_run[record.id] = feed
        shared.followers += 1
        try:
            yield shared.feed
        finally:
            shared.followers -= 1
            if not shared.followers:
                self._close(shared)

    def known(self, run: UUID) -> InvestigationRecord | None:
        """An investigation that is followed here already, as it was last read."""
        shared = self._feeds.get(run)
        return None if shared is None or shared.feed.gone.is_set() else shared.feed.runs[0]

    @contextlib.contextmanager
    def admit(self, caller: str) -> Iterator[None]:
        """A place for a connection of a caller.

        Raises:
            TooManyRequests: the caller has as many as one may have.
            Unavailable: all places are taken.
        """
        if self.connections(caller) >= self._of_one:
            raise TooManyRequests(f"{caller} already has {self._of_one} open streams; close one")
        if self.open_connections >= self._of_all:
            raise Unavailable("too many streams are open; try again")
        self._callers[caller] = self.connections(caller) + 1
        try:
            yield
        finally:
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]

    @property
    def open_connections(self) -> int:
        """How many all callers have now."""
        return sum(self._callers.values())

    def connections(self, caller: str) -> int:
        """How many a caller has now."""
        return self._callers.get(caller, 0)

    def _close(self, shared: _Shared) -> None:
        shared.task.cancel()
        shared.feed.end()
        if self._feeds.get(shared.feed.id) is shared:
            del self._feeds[shared.feed.id]
        for run in [run for run, feed in self._of_run.items() if feed is shared.feed]:
            del self._of_run[run]

    async def _drive(self, feed: InvestigationStream) -> None:
        while True:
            try:
                await feed.look()
            except StoreError as error:
                _log.info("cannot read a followed investigation, trying again: %s", error)
                feed.look_again()
                await asyncio.sleep(self._poll)
            except RecordGone:
                feed.gone.set()
                return
            except Exception:
                _log.exception("the stream of an investigation failed; its clients must reconnect")
                feed.gone.set()
                return
            for record in feed.runs:
                self._of_run[record.id] = feed

    def _found(self, run: UUID, of: InvestigationStream) -> None:
        self._of_run[run] = of

    def _heard(self, payload: str) -> None:
        """A wake-up of a run; of all of them where it names none."""
        if not payload:
            for shared in self._feeds.values():
                shared.feed.look_again()
            return
        try:
            run = UUID(payload)
        except ValueError:
            return
        if feed := self._of_run.get(run):
            feed.wake(run)
        if self.lists.watched or (self._feeds and run not in self._of_run and run not in self._strangers):
            self._changed.add(run)
            self._some.set()

    def _said(self, payload: str) -> None:
        try:
            feed = self._of_run.get(UUID(run_of_payload(payload)))
        except ValueError:
            return
        if feed is not None:
            feed.said(UUID(run_of_payload(payload)), unpack(payload))

    async def _look(self) -> None:
        """Looks at what changed unheard, and whose the runs are that nobody here knows."""
        clock = asyncio.get_running_loop().time
        due, polls = clock() + self._poll, 0
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._some.wait()
            self._some.clear()
            changed, self._changed = self._changed, set()
            try:
                if clock() >= due:
                    polls += 1
                    if not polls % _QUESTIONS_EVERY:
                        for shared in self._feeds.values():
                            shared.feed.look_for_questions()
                    for shared in self._feeds.values():
                        shared.feed.ask_for_lost_words()
                    changed |= {
                        record.id
                        for shared in self._feeds.values()
                        for record in shared.feed.runs
                        if not record.state.finished
                    }
                    await self.lists.look()
                if changed:
                    await self._tell(await self._heads.of(changed))
            except StoreError as error:
                _log.info("cannot poll the followed investigations, trying again: %s", error)
            if clock() >= due:
                due = clock() + self._poll
            await asyncio.sleep(_GATHER_SECONDS)

    async def _tell(self, heads: list[Head]) -> None:
        for head in heads:
            if feed := self._of_run.get(head.id):
                feed.wake(head.id, head.revision)
            elif head.parent in self._feeds:
                self._feeds[head.parent].feed.look_for_questions()
            else:
                self._strangers[head.id] = None
        while len(self._strangers) > _STRANGERS:
            self._strangers.pop(next(iter(self._strangers)))
        if self.lists.watched:
            await self.lists.tell(heads)
