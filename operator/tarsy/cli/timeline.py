"""`tarsy timeline`: the record of an investigation, as it is or as it grows."""

import asyncio
from uuid import UUID

from rich.console import Console

from tarsy.cli.console import new_console
from tarsy.cli.render import event_block, outcome_block, status_line
from tarsy.record.run import InvestigationRecord
from tarsy.record.timeline import EventStatus, TimelineEvent
from tarsy.store.database import open_pool
from tarsy.store.errors import StoreError
from tarsy.store.reads import Reads
from tarsy.store.wakeups import RUN_CHANNEL
from tarsy.stream.listener import Listener, Subscription

_PAGE = 500


async def show_timeline(database_url: str, namespace: str, name: str, *, follow: bool) -> int:
    """Prints the timeline, then those of its questions; with `follow` until all have ended. Returns the exit status.

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
        console = new_console()
        if not follow:
            for one in (record, *await reads.answers(record.id)):
                for event in await _all_events(reads, one.id):
                    console.print(event_block(event, full=True))
                console.print(outcome_block(one) if one.state.finished else status_line(one))
            return 0
        await follow_timeline(console, reads, database_url, record.id, full=True)
        for answer in await reads.answers(record.id):
            await follow_timeline(console, reads, database_url, answer.id, full=True)
        return 0
    finally:
        await pool.close()


async def follow_timeline(
    console: Console, reads: Reads, database_url: str, run: UUID, *, full: bool = False
) -> InvestigationRecord:
    """Prints events as they close, with a line that says where the run is; returns its final record."""
    listener = Listener(database_url, (RUN_CHANNEL,))
    listening = asyncio.create_task(listener.run())
    try:
        with listener.subscribe(RUN_CHANNEL, str(run)) as changes:
            record = await _follow(console, reads, run, changes, full)
    finally:
        listening.cancel()
        await asyncio.wait([listening])
    console.print(outcome_block(record))
    return record


async def _follow(console: Console, reads: Reads, run: UUID, changes: Subscription, full: bool) -> InvestigationRecord:
    shown: set[UUID] = set()
    after = 0
    with console.status("waiting") as line:
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
                        console.print(event_block(event, full=full))
            line.update(status_line(record))
            if record.state.finished:
                return record
            await changes.wait()


async def _all_events(reads: Reads, run: UUID) -> list[TimelineEvent]:
    events: dict[UUID, TimelineEvent] = {}
    after = 0
    while page := await reads.timeline(run, after, _PAGE):
        after = max(event.revision for event in page)
        events |= {event.id: event for event in page}
    return sorted(events.values(), key=lambda e: e.seq)
