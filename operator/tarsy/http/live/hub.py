"""Distributes changes of the record to all streams of this process.

Each followed investigation has one reader, whatever the number of its followers. Wake-ups (NOTIFY) are passed to the
stream of the run that they name. Decision: a wake-up is only a hint. One query each poll interval reads the revisions
of all followed runs, so a lost wake-up or an outage of Postgres delays followers by one interval at most.
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
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.run_heads import Head, Heads
from tarsy.store.runs.wakeups import DELTA_CHANNEL, RUN_CHANNEL
from tarsy.stream.deltas import run_of_payload, unpack
from tarsy.stream.follow_requests import Following
from tarsy.stream.listener import Listener, Subscription
from tarsy.stream.notifier import Notifier

CHANNELS = (RUN_CHANNEL, DELTA_CHANNEL)
"""Channels that the listener of a hub subscribes to."""
_POLL_SECONDS = 2.0
CHECK_SECONDS = 25.0
_CONNECTIONS = 2_000
CONNECTIONS_OF_ONE = 20
"""Maximum concurrent streams of one caller."""
_GATHER_SECONDS = 0.05
_QUESTIONS_EVERY = 15  # polls
_STRANGERS = 20_000
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Shared:
    """A stream, the task that drives it, and the number of its followers."""

    feed: InvestigationStream
    task: asyncio.Task[None]
    followers: int = 0


@dataclass(frozen=True, slots=True)
class FollowLimits:
    """Intervals and limits of the connections that follow.

    Attributes:
        poll_seconds: poll interval: maximum delay after a lost wake-up.
        check_seconds: interval between authorization checks of a stream.
        of_one: maximum concurrent connections of one caller.
        of_all: maximum concurrent connections of all callers.
    """

    poll_seconds: float = _POLL_SECONDS
    check_seconds: float = CHECK_SECONDS
    of_one: int = CONNECTIONS_OF_ONE
    of_all: int = _CONNECTIONS


class Hub:
    """Reads changes for all followers, while `run` runs.

    Args:
        pool: connections to Postgres.
        listener: subscribed to CHANNELS; the hub runs it.
        notifier: announces followed runs to workers; the hub runs it.
        limits: intervals, and limits to its connections.
        calibration_floor: of `Reads`.
    """

    def __init__(
        self,
        pool: asyncpg.Pool,
        listener: Listener,
        notifier: Notifier,
        *,
        limits: FollowLimits | None = None,
        calibration_floor: float | None = None,
    ) -> None:
        self._reads = Reads(pool, calibration_floor)
        self._heads = Heads(pool)
        self._listener = listener
        self._notifier = notifier
        self._following = Following(notifier.notify)
        self._limits = limits or FollowLimits()
        self.check_seconds = self._limits.check_seconds
        self.lists = Lists(pool, self._heads, calibration_floor)
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
        """Provides the stream of an investigation while it is followed.

        Raises:
            Unavailable: the hub is not running.
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

    @contextlib.contextmanager
    def wakeups(self, run: UUID) -> Iterator[Subscription]:
        """Provides the wake-ups of a run while entered; waiting for one ends after the poll interval at the latest."""
        with self._listener.subscribe(RUN_CHANNEL, str(run)) as changes:
            yield changes

    def known(self, run: UUID) -> InvestigationRecord | None:
        """Returns an investigation that is already followed, as last read."""
        shared = self._feeds.get(run)
        return None if shared is None or shared.feed.gone.is_set() else shared.feed.runs[0]

    @contextlib.contextmanager
    def admit(self, caller: str) -> Iterator[None]:
        """Counts a connection of a caller while entered.

        Raises:
            TooManyRequests: the caller has reached its limit.
            Unavailable: the limit of all callers is reached.
        """
        if self.connections(caller) >= self._limits.of_one:
            raise TooManyRequests(f"{caller} already has {self._limits.of_one} open streams; close one")
        if self.open_connections >= self._limits.of_all:
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
        """Number of connections of all callers."""
        return sum(self._callers.values())

    def connections(self, caller: str) -> int:
        """Returns the number of connections of a caller."""
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
                await asyncio.sleep(self._limits.poll_seconds)
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
        """Handles a wake-up of a run, or of all runs if the payload is empty."""
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
        """Polls for missed changes, and finds the investigations of unknown runs."""
        clock = asyncio.get_running_loop().time
        due, polls = clock() + self._limits.poll_seconds, 0
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
                due = clock() + self._limits.poll_seconds
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
