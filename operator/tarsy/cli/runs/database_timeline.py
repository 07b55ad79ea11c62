"""Reads timelines from the database, for administrators (`timeline --database-url`)."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

from rich.console import Console

from tarsy.cli.output import Output
from tarsy.cli.runs.render import RunSummary, outcome_block
from tarsy.cli.runs.timeline import Follow, RunTeller, ScreenTeller, Timeline, show_timeline
from tarsy.http.views.timeline import EventView, TimelineView
from tarsy.record.run import InvestigationRecord
from tarsy.record.timeline import EventStatus, TimelineEvent
from tarsy.store.database import open_pool
from tarsy.store.errors import StoreError
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.wakeups import RUN_CHANNEL
from tarsy.stream.listener import Listener, Subscription

_PAGE = 500


class DatabaseTimeline:
    """Reads and follows the timelines of a recorded investigation and of the answers about it."""

    def __init__(self, reads: Reads, database_url: str, record: InvestigationRecord) -> None:
        self._reads, self._database_url, self._record = reads, database_url, record
        self.namespace, self.name = record.namespace, record.name

    async def timelines(self) -> list[Timeline]:
        records = [self._record, *await self._reads.answers(self._record.id)]
        return [(await self._view(record), RunSummary.of_record(record)) for record in records]

    async def runs(self) -> AsyncIterator[Follow]:
        yield self._follower(self._record.id)
        for answer in await self._reads.answers(self._record.id):
            yield self._follower(answer.id)

    def _follower(self, run: UUID) -> Follow:
        async def follow(teller: RunTeller) -> RunSummary:
            return RunSummary.of_record(await follow_record(self._reads, self._database_url, run, teller))

        return follow

    async def _view(self, record: InvestigationRecord) -> TimelineView:
        events: dict[UUID, TimelineEvent] = {}
        after = 0
        while page := await self._reads.timeline(record.id, after, _PAGE):
            after = max(event.revision for event in page)
            events |= {event.id: event for event in page}
        return TimelineView.of(record, events.values(), max(after, record.revision), more=False)


async def show_recorded_timeline(
    database_url: str, namespace: str, name: str, output: Output, *, following: bool
) -> int:
    """Prints the timeline of an investigation out of the database; returns the exit status.

    Args:
        database_url: the database.
        namespace: of the investigation.
        name: of the investigation.
        output: text (wide: with the ids of calls), or a format for programs.
        following: go on until the investigation and the answers have ended.

    Raises:
        StoreError: there is no such investigation in the record, or the record cannot be read.
    """
    pool = await open_pool(database_url, max_size=2, application="tarsy timeline")
    try:
        reads = Reads(pool)
        record = await reads.find(namespace, name)
        if record is None:
            raise StoreError(
                f"there is no investigation {namespace}/{name} in the record; "
                "see `kubectl get inv -A`, and give its namespace with -n"
            )
        return await show_timeline(DatabaseTimeline(reads, database_url, record), output, following=following)
    finally:
        await pool.close()


async def follow_timeline(console: Console, reads: Reads, database_url: str, run: UUID) -> InvestigationRecord:
    """Prints the first lines of each event of a run as they close, and how the run ended; returns its final record.

    Args:
        console: the console to print to.
        reads: the record.
        database_url: the database, for LISTEN.
        run: the run.
    """
    with console.status("waiting") as line:
        record = await follow_record(reads, database_url, run, ScreenTeller(console, line, full=False))
    console.print(outcome_block(RunSummary.of_record(record)))
    return record


async def follow_record(reads: Reads, database_url: str, run: UUID, teller: RunTeller) -> InvestigationRecord:
    """Shows the events of a run as they close, until it has ended; returns its final record.

    Args:
        reads: the record.
        database_url: the database, for LISTEN.
        run: the run.
        teller: shows them.
    """
    listener = Listener(database_url, (RUN_CHANNEL,))
    listening = asyncio.create_task(listener.run())
    try:
        with listener.subscribe(RUN_CHANNEL, str(run)) as changes:
            return await _follow(reads, run, changes, teller)
    finally:
        listening.cancel()
        await asyncio.wait([listening])


async def _follow(reads: Reads, run: UUID, changes: Subscription, teller: RunTeller) -> InvestigationRecord:
    shown: set[UUID] = set()
    after = 0
    while True:
        # The record is read before the events: when it says finished, all events are there.
        record = await reads.record(run)
        if record is None:
            raise StoreError(f"investigation {run} is gone from the record")
        while events := await reads.timeline(run, after, _PAGE):
            after = max(event.revision for event in events)
            for event in sorted(events, key=lambda e: e.seq):
                if event.status is not EventStatus.STREAMING and event.id not in shown:
                    shown.add(event.id)
                    teller.closed(EventView.of(event), truncated=False)
        teller.recorded(record)
        if record.state.finished:
            return record
        await changes.wait()
