"""Records the observations of watches: one batch at a time, away from the event loop."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from tarsy.controllers.history.buffer import ChangeBuffer, PendingChange
from tarsy.controllers.history.observations import LISTED, Batch, SeenObject, decided, learn, missing, observed
from tarsy.controllers.history.places import KnownState, Place
from tarsy.evidence.history.form import FormRules
from tarsy.evidence.history.versions import Observation
from tarsy.observe.metric_table import HISTORY_CHANGES, HISTORY_SHED
from tarsy.observe.metrics import Metrics
from tarsy.record.reading.object_history import HistoryStep, ObjectHead, Unwatched, WatchState
from tarsy.store.errors import StoreError
from tarsy.store.history.object_history import ObjectHistory

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

BATCH_OBJECTS = 50
BATCH_BYTES = 512 * 1024
NOTE_SECONDS = 10.0
"""Seconds between two notes of how far each watch is."""

_RETRY_SECONDS = 2.0
_REASON_LENGTH = 300


class Recording:
    """Records changes of objects. Implements `WatchListener`.

    Args:
        history: the history in Postgres.
        rules: how values are replaced; `values` is set by each namespace.
        metrics: the metrics of the process.
        thread: one thread, which parses, masks and compares: with several, each keeps memory of its own.
        buffer_size: maximum changes that wait.
    """

    def __init__(
        self,
        history: ObjectHistory,
        rules: FormRules,
        metrics: Metrics,
        thread: Executor,
        *,
        buffer_size: int,
    ) -> None:
        self._thread = thread
        self._history = history
        self._rules = rules
        self._metrics = metrics
        self._places: dict[Place, None] = {}
        self._buffer = ChangeBuffer(self._shed, most=buffer_size)
        self._one = asyncio.Lock()
        self._in_work: datetime | None = None

    def add(self, place: Place) -> None:
        """Takes a kind in a namespace into the notes of how far watches are."""
        self._places[place] = None

    def remove(self, place: Place) -> None:
        """Forgets a kind in a namespace, which is not watched any more."""
        self._places.pop(place, None)
        self._buffer.drop(place)

    async def stopped(self, namespace_uid: str) -> None:
        """Notes that a namespace has no history any more; call it before its kinds are forgotten. Raises StoreError."""
        found = [place for place in self._places if place.namespace_uid == namespace_uid]
        await self._note([(place, place.heard_at, WatchState.STOPPED) for place in found])

    def states(self) -> Mapping[WatchState, int]:
        """Returns the number of kinds in namespaces by the state of their watch."""
        return Counter(place.state for place in self._places)

    async def listing_begins(self, place: Place) -> None:
        """Reads what is recorded of a kind when it is listed for the first time."""
        place.listings += 1
        self._buffer.drop(place)
        if place.since is None:
            async with self._one:
                known = await self._history.known(place.namespace_uid, place.kind.kind)
                before = await self._history.watched(place.namespace_uid, place.kind.kind)
            key = self._rules.digests.key_id
            place.known = {one.uid: KnownState(one.name, one.digest if one.key_id == key else b"") for one in known}
            place.heard_at = before.until if before is not None and before.state is not WatchState.NOT_SERVED else None

    async def listed(self, place: Place, objects: Sequence[Mapping[str, Any]]) -> None:
        """Records the objects of a page that have changed since they were recorded."""
        seen = [SeenObject(LISTED, _now(), raw=raw) for raw in objects]
        for start in range(0, len(seen), BATCH_OBJECTS):
            async with self._one:
                await self._observe(place, seen[start : start + BATCH_OBJECTS], self._unseen_since(place))

    async def listing_ended(self, place: Place, uids: set[str]) -> None:
        """Records the window that was not watched, and deletions; from now on the kind is watched."""
        since, now = self._unseen_since(place), _now()
        if since is not None:
            why = "changes arrived faster than they could be recorded" if place.shed_at is not None else _why(place)
            window = Unwatched(place.kind.kind, since, now, why)
            # Before the deletions: who reads one of them is told that its time is not exact.
            await self._history.note_unwatched(place.namespace_uid, place.namespace, window)
        async with self._one:
            await self._write(place, missing(place, uids, now, since, self._rules.digests.key_id))
        place.shed_at, place.since, place.heard_at = None, place.since or now, now
        place.state = WatchState.WATCHING
        await self._note([(place, now, WatchState.WATCHING)])

    def changed(self, place: Place, action: str, document: bytes) -> None:
        """Takes an event of a watch: its `action` and its object as JSON."""
        self._buffer.put(place, action, document, _now())

    def opened(self, place: Place) -> None:
        """Notes that a watch was opened; how far it is, its first event tells."""
        place.state = WatchState.WATCHING

    def heard(self, place: Place) -> None:
        """Notes that all changes until now have come."""
        place.heard_at = _now()

    async def lost(self, place: Place, state: WatchState, told: str) -> None:
        """Notes the `state` of a kind that is not watched; why, as `told` by the API, is logged once."""
        if place.state is not state or place.since is None:
            level = logging.INFO if state is WatchState.NOT_SERVED else logging.WARNING
            if place.state is not state:
                _log.log(level, "the history recorder does not watch %s: %s", place, told[:_REASON_LENGTH])
        place.state = state
        await self._note([(place, place.heard_at, state)])

    async def run(self) -> None:
        """Records buffered changes until cancelled; a batch that cannot be written is tried again."""
        while True:
            await self._buffer.filled.wait()
            batch = self._buffer.take(BATCH_OBJECTS, BATCH_BYTES)
            self._in_work = batch[0].seen_at if batch else None
            of_place: dict[Place, list[PendingChange]] = {}
            for change in batch:  # only changes of one object have an order
                of_place.setdefault(change.place, []).append(change)
            for place, changes in of_place.items():
                await self._record(place, changes)
            self._in_work = None
            if not len(self._buffer):
                for place in self._places:
                    if place.shed_at is not None:
                        place.again.set()

    async def note_progress(self) -> None:
        """Notes how far each watch is: until the oldest change that is not recorded yet."""
        waits = [at for at in (self._in_work, self._buffer.oldest()) if at is not None]
        found = []
        for place in self._places:
            if place.state is WatchState.WATCHING and place.heard_at is not None:
                until = min([place.heard_at, *waits, *([place.shed_at] if place.shed_at is not None else [])])
                found.append((place, until, WatchState.WATCHING))
        await self._note(found)

    async def _record(self, place: Place, changes: Sequence[PendingChange]) -> None:
        while place in self._places:
            try:
                async with self._one:
                    # What came before the last listing began is in it, or is gone.
                    seen = [_seen(change) for change in changes if change.listing == place.listings]
                    return await self._observe(place, seen, place.since)
            except StoreError as error:
                _log.warning("changes of %s could not be recorded; retrying in %g s: %s", place, _RETRY_SECONDS, error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _observe(self, place: Place, seen: Sequence[SeenObject], since: datetime | None) -> None:
        rules = replace(self._rules, values=place.values)
        await self._write(place, await self._in_thread(partial(observed, place, seen, rules, since)))

    async def _write(self, place: Place, batch: Batch) -> None:
        for uid, version in batch.versions.items():
            if (known := place.known.get(uid)) is not None:
                known.resource_version = version
        for observations in batch.rounds:
            for start in range(0, len(observations), BATCH_OBJECTS):
                some = observations[start : start + BATCH_OBJECTS]
                for step in await self._history.record([one.object.uid for one in some], partial(self._decide, some)):
                    if step.version is not None:
                        self._metrics.add(HISTORY_CHANGES, type=str(step.version.type))
                learn(place, batch, some)

    async def _decide(
        self, observations: Sequence[Observation], heads: Mapping[str, ObjectHead]
    ) -> Sequence[HistoryStep]:
        return await self._in_thread(partial(decided, heads, observations))

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _note(self, watches: Sequence[tuple[Place, datetime | None, WatchState]]) -> None:
        rows = [
            (place.namespace_uid, place.namespace, place.kind.kind, until or _now(), state)
            for place, until, state in watches
        ]
        if rows:
            await self._history.note_watches(rows)

    def _shed(self, change: PendingChange) -> None:
        self._metrics.add(HISTORY_SHED, type=str(change.place.lane))
        if change.place.shed_at is None:
            change.place.shed_at = change.seen_at

    def _unseen_since(self, place: Place) -> datetime | None:
        """Returns from when on changes of a kind may not have been seen; None: it was never watched."""
        return place.shed_at or place.heard_at


def _why(place: Place) -> str:
    if place.since is None:
        return "TARSy was not running, or did not record this namespace"
    return "the watch was interrupted and could not resume at its last position"


def _seen(change: PendingChange) -> SeenObject:
    return SeenObject(change.action, change.seen_at, change.document)


def _now() -> datetime:
    return datetime.now(UTC)
