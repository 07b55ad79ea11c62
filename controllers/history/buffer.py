"""Holds changes until they are recorded; sheds the least valuable ones when too many come.

Changes leave in the order in which they came. When the buffer is full, the oldest change of the least valuable type
goes (restarts first, rollouts and configuration last): a later change of the same object has its state as well, and
its kind is listed again when the storm is over.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tarsy.controllers.history.places import Place
from tarsy.evidence.changes.change import ChangeType
from tarsy.evidence.changes.ranking import TYPE_WEIGHTS

MOST_CHANGES = 2_000
MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PendingChange:
    """An event of a watch that is not recorded yet.

    Attributes:
        place: where it came from.
        number: its place in the order.
        listing: number of the listing that it came after.
        action: ADDED, MODIFIED or DELETED.
        document: the event as JSON.
        seen_at: when it came.
    """

    place: Place
    number: int
    listing: int
    action: str
    document: bytes
    seen_at: datetime


class ChangeBuffer:
    """Holds changes in one lane a type.

    Args:
        shed: is told of each change that is dropped.
        most: maximum changes.
        most_bytes: maximum bytes of their JSON.
    """

    def __init__(
        self,
        shed: Callable[[PendingChange], None],
        *,
        most: int = MOST_CHANGES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._shed = shed
        self._most = most
        self._most_bytes = most_bytes
        self._lanes: dict[ChangeType, deque[PendingChange]] = {
            lane: deque() for lane in sorted(TYPE_WEIGHTS, key=lambda lane: TYPE_WEIGHTS[lane])
        }
        self._count = 0
        self._bytes = 0
        self._number = 0
        self.filled = asyncio.Event()
        """Set while there are changes."""

    def __len__(self) -> int:
        return self._count

    def put(self, place: Place, action: str, document: bytes, seen_at: datetime) -> None:
        """Adds a change, and drops the least valuable ones if there are too many.

        Args:
            place: kind and namespace.
            action: ADDED, MODIFIED or DELETED.
            document: the object as JSON.
            seen_at: when the event came.
        """
        self._number += 1
        self._lanes[place.lane].append(PendingChange(place, self._number, place.listings, action, document, seen_at))
        self._count += 1
        self._bytes += len(document)
        while self._count > self._most or self._bytes > self._most_bytes:
            lane = next(lane for lane in self._lanes.values() if lane)
            self._shed(self._left(lane.popleft()))
        if self._count:
            self.filled.set()

    def take(self, most: int, most_bytes: int) -> list[PendingChange]:
        """Removes the oldest changes and returns them: at most `most` of at most `most_bytes`, but at least one."""
        taken: list[PendingChange] = []
        size = 0
        while self._count and len(taken) < most:
            lane = min((lane for lane in self._lanes.values() if lane), key=lambda lane: lane[0].number)
            size += len(lane[0].document)
            if taken and size > most_bytes:
                break
            taken.append(self._left(lane.popleft()))
        if not self._count:
            self.filled.clear()
        return taken

    def drop(self, place: Place) -> None:
        """Removes the changes of a kind that is about to be listed: the listing has all of them."""
        lane = self._lanes[place.lane]
        kept = [change for change in lane if change.place is not place or not self._left(change)]
        lane.clear()
        lane.extend(kept)
        if not self._count:
            self.filled.clear()

    def oldest(self) -> datetime | None:
        """Returns when the oldest change came; None: there is none."""
        return min((lane[0].seen_at for lane in self._lanes.values() if lane), default=None)

    def _left(self, change: PendingChange) -> PendingChange:
        self._count -= 1
        self._bytes -= len(change.document)
        return change
