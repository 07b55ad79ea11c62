"""Tests that deltas reach followers, whatever is lost or read meanwhile."""

import asyncio
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

from tarsy.http.live.investigation_stream import InvestigationStream, StreamFollower
from tarsy.http.live.send_queue import SendQueue
from tarsy.record.run import InvestigationRecord
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent
from tarsy.stream.deltas import Delta
from unit.controllers.builders import NOW, record

WORDS = "The disk is full."


@dataclass
class Record:
    """A record that changes while it is read; what a feed calls on its readers is written down in `calls`."""

    run: InvestigationRecord
    events: dict[UUID, TimelineEvent] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def write(self, event: UUID, status: EventStatus) -> None:
        self.run = replace(self.run, revision=self.run.revision + 1)
        self.events[event] = TimelineEvent(
            event, EventType.LLM_RESPONSE, status, seq=len(self.events), revision=self.run.revision, created_at=NOW
        )

    # of Reads
    async def record(self, run: UUID) -> InvestigationRecord | None:
        self.calls.append("record")
        return self.run

    async def answers(self, run: UUID) -> list[InvestigationRecord]:
        return []

    async def timeline(self, run: UUID, after: int, limit: int) -> list[TimelineEvent]:
        return [event for event in self.events.values() if event.revision > after][:limit]

    # of Heads
    async def streaming(self, run: UUID) -> dict[UUID, int]:
        self.calls.append("streaming")
        found = {e.id: e.revision for e in self.events.values() if e.status is EventStatus.STREAMING}
        self.on_streaming()
        return found

    def on_streaming(self) -> None:
        """What happens right after the open texts were read."""

    # of Following
    def begin(self, run: UUID) -> None:
        self.calls.append("begin")

    def end(self, run: UUID) -> None:
        self.calls.append("end")

    def anew(self, run: UUID) -> None:
        self.calls.append("anew")


def feed_of(of: Record) -> InvestigationStream:
    return InvestigationStream(of.run, of, of, of, lambda run: of.calls.append("found"))  # type: ignore[arg-type]


async def follow(feed: InvestigationStream) -> StreamFollower:
    follower = StreamFollower(SendQueue())
    feed.add(follower)
    await asyncio.gather(feed.look(), feed.catch_up(follower))
    return follower


async def told(follower: StreamFollower, kind: str) -> list[str]:
    return [note.data for note in await follower.outbox.take() if note.type == kind]


async def test_words_of_a_text_that_begins_while_the_feed_begins_are_told() -> None:
    source, event = Record(record()), uuid4()
    source.on_streaming = lambda: None if source.events else source.write(event, EventStatus.STREAMING)  # type: ignore[method-assign]
    feed = feed_of(source)
    follower = await follow(feed)
    feed.said(source.run.id, [Delta(event, 0, WORDS)])
    assert any(WORDS in data for data in await told(follower, "delta"))


async def test_words_of_a_text_that_was_open_before_are_told() -> None:
    source, event = Record(record()), uuid4()
    source.write(event, EventStatus.STREAMING)
    feed = feed_of(source)
    follower = await follow(feed)
    feed.said(source.run.id, [Delta(event, 0, WORDS)])
    assert any(WORDS in data for data in await told(follower, "delta"))


async def test_a_run_can_be_told_of_before_anybody_is_asked_for_its_words() -> None:
    source = Record(record())
    await follow(feed_of(source))
    assert source.calls.index("found") < source.calls.index("begin")


async def test_words_that_were_lost_are_asked_for_again_until_they_come() -> None:
    source, event = Record(record()), uuid4()
    source.write(event, EventStatus.STREAMING)
    feed = feed_of(source)
    follower = await follow(feed)
    for _ in range(2):
        feed.ask_for_lost_words()
    assert source.calls.count("anew") == 2
    feed.said(source.run.id, [Delta(event, 0, WORDS)])
    feed.ask_for_lost_words()
    assert source.calls.count("anew") == 2
    feed.said(source.run.id, [Delta(event, len(WORDS) + 1, "lost before this")])
    feed.ask_for_lost_words()
    assert source.calls.count("anew") == 4, "once for the gap, once more since nothing came"
    source.write(event, EventStatus.COMPLETED)
    feed.look_again()
    await feed.look()
    feed.ask_for_lost_words()
    assert source.calls.count("anew") == 4, "the event has the whole"
    assert await told(follower, "timelineEvent.closed")
