"""Streams one investigation and its questions, reading the record once for all followers.

The stream reads the changes after its last sent revision, and sends them to its live followers. A new follower first
catches up: it reads the changes it has not seen, page by page, until it has reached the stream; then it is live.
Decision: the switch depends on revisions alone and happens without an await, so no change is lost or sent twice, and a
follower needs no buffer while it catches up. A slow follower falls back to catching up.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from tarsy.http.live.cursor import Cursor
from tarsy.http.live.message_factory import MessageFactory
from tarsy.http.live.messages import in_change_order, with_last
from tarsy.http.live.send_queue import QueuedMessage, SendQueue
from tarsy.record.run import InvestigationRecord
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.run_heads import Heads
from tarsy.stream.deltas import Delta
from tarsy.stream.follow_requests import Following

CATCH_UP = 200
"""Maximum number of past changes sent to a new follower; it reads more with REST."""
_PAGE = 200
_TEXTS = 64  # maximum number of open texts of a run
_ASKS = 5  # maximum number of requests for lost deltas of a text
_WITH_WORDS = (EventType.LLM_RESPONSE, EventType.LLM_THINKING, EventType.FINAL_ANALYSIS, EventType.EXECUTIVE_SUMMARY)


class RecordGone(Exception):
    """The record of the investigation was deleted."""


@dataclass(slots=True, eq=False)
class StreamFollower:
    """A follower of a stream: its queue and position; `behind` is set when it must catch up."""

    outbox: SendQueue
    cursor: Cursor = field(default_factory=Cursor)
    live: bool = False
    behind: asyncio.Event = field(default_factory=asyncio.Event)

    def give(self, note: QueuedMessage) -> bool:
        """Queues a message; returns False, and makes the follower catch up, if the queue is full."""
        if not self.outbox.has_room(note):
            self.live = False
            self.behind.set()
            return False
        self.outbox.offer(note)
        return True


@dataclass(slots=True)
class _Text:
    """The text of an open event.

    `seen`: the event itself was sent. `missing`: deltas before the last one were lost. `asks`: number of requests for
    lost deltas.
    """

    seen: bool = False
    has_words: bool = True
    words: list[str] = field(default_factory=list)
    length: int = 0
    truncated: bool = False
    missing: bool = False
    asks: int = 0

    @property
    def lost(self) -> bool:
        """Whether deltas may be lost and should be requested again."""
        silent = self.seen and self.has_words and not self.length and not self.truncated
        return (self.missing or silent) and self.asks < _ASKS


@dataclass(slots=True)
class _Run:
    """The run of the investigation (place 0), or of the answer to a question.

    `read`: revision up to which events were read; `told`: revision of the last sent event.
    """

    place: int
    record: InvestigationRecord
    read: int
    told: int = 0
    texts: dict[UUID, _Text] = field(default_factory=dict)
    stale: bool = True


class InvestigationStream:
    """The stream of one investigation. Its owner calls `look` in a loop, in one task.

    Args:
        record: the investigation, as last read.
        reads: reads the record.
        heads: reads revisions.
        following: requests deltas from the workers that run it.
        found: called with each run before its deltas can arrive, so that they are routed to `said`.
    """

    def __init__(
        self,
        record: InvestigationRecord,
        reads: Reads,
        heads: Heads,
        following: Following,
        found: Callable[[UUID], None],
    ) -> None:
        self.id = record.id
        self.notes = MessageFactory(record)
        self._reads = reads
        self._heads = heads
        self._following = following
        self._found = found
        self._announced: set[UUID] = set()
        self._runs: dict[int, _Run] = {0: _Run(0, record, record.revision)}
        self._followers: set[StreamFollower] = set()
        self._asked = True
        self._woken = asyncio.Event()
        self._woken.set()
        self._begun = asyncio.Event()
        self.gone = asyncio.Event()

    @property
    def runs(self) -> Sequence[InvestigationRecord]:
        """The investigation and its answers, as last read."""
        return [run.record for run in self._runs.values()]

    def add(self, follower: StreamFollower) -> None:
        """Adds a follower; it must `catch_up` next."""
        self._followers.add(follower)

    def remove(self, follower: StreamFollower) -> None:
        """Removes a follower."""
        self._followers.discard(follower)

    def wake(self, run: UUID, revision: int | None = None) -> None:
        """Marks a run as changed, unless it was read at `revision` already."""
        for one in self._runs.values():
            if one.record.id == run and (revision is None or one.record.revision < revision):
                one.stale = True
                self._woken.set()

    def look_for_questions(self) -> None:
        """Makes the next `look` search for new questions."""
        self._asked = True
        self._woken.set()

    def look_again(self) -> None:
        """Makes the next `look` read everything, after a failed one."""
        for run in self._runs.values():
            run.stale = True
        self.look_for_questions()

    def ask_for_lost_words(self) -> None:
        """Requests lost deltas again: NOTIFY may lose them."""
        for run in self._runs.values():
            lost = [text for text in run.texts.values() if text.lost]
            for text in lost:
                text.asks += 1
            if lost:
                self._following.anew(run.record.id)

    def end(self) -> None:
        """Stops requesting deltas, after the last follower has left."""
        for run in self._announced:
            self._following.end(run)
        self._announced.clear()

    async def look(self) -> None:
        """Waits for a possible change, and sends the changes.

        Raises:
            StoreError: Postgres is unavailable.
            RecordGone: the record was deleted.
        """
        await self._woken.wait()
        self._woken.clear()
        if not self._begun.is_set():
            await self._begin()
        if self._asked:
            await self._find_answers()
        for run in list(self._runs.values()):
            if run.stale:
                await self._read(run)
        self._announce()

    async def catch_up(self, follower: StreamFollower, limit: int | None = CATCH_UP) -> None:
        """Sends a follower the changes it has not seen, at its own pace; then the follower is live.

        Args:
            follower: the follower; its cursor is the position to start from.
            limit: maximum number of changes; beyond it, an overflow message is sent instead. None: unlimited.

        Raises:
            StoreError: Postgres is unavailable; call it again.
        """
        follower.live = False
        await self._begun.wait()
        known = {run.place: run.record for run in self._runs.values()}
        for place, record in known.items():
            for note in self._state_notes(place, record):
                await follower.outbox.put(note)
        while True:
            seen: dict[int, int] = {}
            for run in list(self._runs.values()):
                seen[run.place] = run.told
                while True:
                    after = follower.cursor.of(run.place)
                    page = in_change_order(await self._reads.timeline(run.record.id, after, _PAGE + 1))
                    if limit is not None and len(page) > limit:
                        await self._overflow(follower)
                        seen = {one.place: one.told for one in self._runs.values()}
                        break
                    limit = None if limit is None else limit - len(page)
                    await self._tell_past(follower, run, page)
                    if len(page) <= _PAGE:
                        break
            if all(run.told <= max(follower.cursor.of(place), seen.get(place, 0)) for place, run in self._runs.items()):
                break
        follower.live = True  # no await since the check above
        self._tell_present(follower, known)

    async def _tell_past(self, follower: StreamFollower, run: _Run, page: Sequence[TimelineEvent]) -> None:
        for event, last in with_last(page):
            cursor = follower.cursor.at(run.place, event.revision)
            await follower.outbox.put(self.notes.event(run.place, run.record, event, cursor if last else None))
            if last:
                follower.cursor = cursor

    async def _overflow(self, follower: StreamFollower) -> None:
        before, follower.cursor = follower.cursor, self._cursor()
        await follower.outbox.put(self.notes.overflow(before, follower.cursor))

    def _tell_present(self, follower: StreamFollower, known: dict[int, InvestigationRecord]) -> None:
        """Sends the states that changed during catch-up, and the text of open events."""
        for place, run in self._runs.items():
            if run.record != known.get(place):
                for note in self._state_notes(place, run.record):
                    follower.give(note)
            for event, text in run.texts.items():
                if text.seen and (text.words or text.truncated):
                    follower.outbox.offer(self._text_note(run, event, text), dispensable=True)
        follower.give(self.notes.caught_up(follower.cursor))

    async def _begin(self) -> None:
        """Reads the current state; earlier events are read by each follower, open texts continue."""
        answers = await self._reads.answers(self.id)
        self._runs |= {place: _Run(place, answer, answer.revision) for place, answer in enumerate(answers, 1)}
        for run in self._runs.values():
            if not run.record.state.finished:  # later changes are read by their revision
                run.record = await self._reads.record(run.record.id) or run.record
                run.read = run.record.revision
                texts = await self._heads.streaming(run.record.id)
                run.texts = {event: _Text(seen=True) for event, revision in texts.items() if revision <= run.read}
        self._asked = False
        self._announce()
        self._begun.set()

    async def _find_answers(self) -> None:
        answers = await self._reads.answers(self.id)
        self._asked = False
        for place, answer in enumerate(answers, 1):
            if place not in self._runs:
                self._runs[place] = _Run(place, replace(answer, stages=()), 0)
                self._tell(self.notes.run(place, answer))

    def _announce(self) -> None:
        """Requests deltas of running runs from their workers."""
        running = {run.record.id for run in self._runs.values() if not run.record.state.finished}
        for run in running - self._announced:
            self._found(run)
            self._following.begin(run)
        for run in self._announced - running:
            self._following.end(run)
        self._announced = running

    async def _read(self, run: _Run) -> None:
        run.stale = False
        record = await self._reads.record(run.record.id)  # before the events: if it is finished, they are complete
        if record is None:
            raise RecordGone
        while page := await self._reads.timeline(run.record.id, run.read, _PAGE):
            self._tell_events(run, in_change_order(page))
        known, run.record = run.record, record
        for stage in record.stages:
            if stage not in known.stages:
                self._tell(self.notes.stage(run.place, record, stage))
        if _state(record) != _state(known):
            self._tell(self.notes.run(run.place, record))
        if record.attempt != known.attempt and run.record.id in self._announced:
            self._following.anew(run.record.id)  # a new worker runs it, which may have missed the request
        if record.state.finished:
            run.texts.clear()

    def _tell_events(self, run: _Run, events: Sequence[TimelineEvent]) -> None:
        for event, last in with_last(events):
            run.told = event.revision
            if last:
                run.read = event.revision
            note = self.notes.event(run.place, run.record, event, self._cursor() if last else None)
            for follower in self._followers:
                new = follower.live and event.revision > follower.cursor.of(run.place)
                if new and follower.give(note) and last:
                    follower.cursor = follower.cursor.at(run.place, event.revision)
            self._know_text(run, event)

    def _know_text(self, run: _Run, event: TimelineEvent) -> None:
        """Starts sending deltas of an event after the event was sent, and stops when it is closed."""
        if event.status is not EventStatus.STREAMING:
            run.texts.pop(event.id, None)
            return
        text = run.texts.setdefault(event.id, _Text())
        if not text.seen:
            text.seen, text.has_words = True, event.type in _WITH_WORDS
            if text.words or text.truncated:
                self._tell(self._text_note(run, event.id, text), dispensable=True)

    def said(self, run: UUID, deltas: Iterable[Delta]) -> None:
        """Handles deltas of a run."""
        for one in self._runs.values():
            if one.record.id == run and not one.record.state.finished:
                for delta in deltas:
                    self._say(one, delta)

    def _say(self, run: _Run, delta: Delta) -> None:
        text = run.texts.get(delta.event)
        if text is None:
            if len(run.texts) >= _TEXTS:
                return
            text = run.texts[delta.event] = _Text()
            self.wake(run.record.id)  # its event is in the record, or soon will be
        if delta.offset > text.length:
            if not text.missing:
                text.missing = True
                self._following.anew(run.record.id)
            return
        text.missing = False
        new, start = delta.text[text.length - delta.offset :], text.length
        if not new and (not delta.truncated or text.truncated):
            return
        text.words.append(new)
        text.length += len(new)
        text.truncated = text.truncated or delta.truncated
        if text.seen:
            told = Delta(delta.event, start, new, delta.truncated)
            self._tell(self.notes.delta(run.place, run.record, told), dispensable=True)

    def _text_note(self, run: _Run, event: UUID, text: _Text) -> QueuedMessage:
        text.words = ["".join(text.words)]
        return self.notes.delta(run.place, run.record, Delta(event, 0, text.words[0], text.truncated))

    def _state_notes(self, place: int, record: InvestigationRecord) -> list[QueuedMessage]:
        stages = [self.notes.stage(place, record, stage) for stage in record.stages]
        return [self.notes.run(place, record), *stages]

    def _tell(self, note: QueuedMessage, *, dispensable: bool = False) -> None:
        for follower in self._followers:
            if not follower.live:
                continue
            if dispensable:
                follower.outbox.offer(note, dispensable=True)
            else:
                follower.give(note)

    def _cursor(self) -> Cursor:
        return Cursor({place: run.read for place, run in self._runs.items() if run.read or not place})


def _state(record: InvestigationRecord) -> tuple[object, ...]:
    """Returns the fields whose change is sent as a new state of the run."""
    return record.state, record.desired_state, record.attempt, record.started_at, record.finished_at, record.outcome
