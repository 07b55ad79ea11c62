"""Streams changes of the list of investigations, reading the record once for all watchers.

Decision: lists do not support catch-up. A client subscribes first, then reads the list with REST; a change received
twice is the same item at the same revision.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from tarsy.http.live.messages import ItemMessage, written
from tarsy.http.live.send_queue import QueuedMessage, SendQueue
from tarsy.http.views.investigations import InvestigationItem
from tarsy.record.reading.listing import InvestigationListItem
from tarsy.store.reading.search import Filters, Search
from tarsy.store.runs.run_heads import Head, Heads

_KNOWN = 20_000  # maximum number of remembered revisions
_PAGE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Watcher:
    """A watcher of a list: of the namespace with that name and uid, or of all namespaces."""

    outbox: SendQueue
    namespace: str | None = None
    namespace_uid: str = ""

    @property
    def channel(self) -> str:
        """Name of its channel."""
        return list_channel(self.namespace)

    def sees(self, namespace: str, uid: str) -> bool:
        """Returns whether the list contains a namespace."""
        return self.namespace is None or (self.namespace == namespace and self.namespace_uid == uid)


def list_channel(namespace: str | None) -> str:
    """Returns the name of the channel of a list."""
    return "investigations" if namespace is None else f"investigations:{namespace}"


class Lists:
    """Sends changed items to watchers; the hub reports possible changes.

    Args:
        pool: connections to Postgres.
        heads: reads revisions.
        calibration_floor: of `Reads`.
    """

    def __init__(self, pool: asyncpg.Pool, heads: Heads, calibration_floor: float | None = None) -> None:
        self._search = Search(pool, calibration_floor)
        self._heads = heads
        self._watchers: set[Watcher] = set()
        self._revisions: dict[UUID, int] = {}
        self._open: set[UUID] = set()

    @property
    def watched(self) -> bool:
        """Whether there are watchers."""
        return bool(self._watchers)

    async def add(self, watcher: Watcher) -> None:
        """Adds a watcher.

        Raises:
            StoreError: Postgres is unavailable.
        """
        if not self._watchers:
            self._revisions.clear()
            self._note(await self._heads.stirring(()))
        self._watchers.add(watcher)

    def remove(self, watcher: Watcher) -> None:
        """Removes a watcher."""
        self._watchers.discard(watcher)

    async def look(self) -> None:
        """Polls for changes, because wake-ups may be lost.

        Raises:
            StoreError: Postgres is unavailable.
        """
        if self._watchers:
            await self.tell(await self._heads.stirring(self._open))

    async def tell(self, heads: Collection[Head]) -> None:
        """Sends the runs whose revision is later than the last sent one.

        Raises:
            StoreError: Postgres is unavailable; unsent changes are sent by the next `look`.
        """
        changed = [head for head in heads if head.parent is None and head.revision > self._revisions.get(head.id, 0)]
        wanted = [head.id for head in changed if self._seen(head.namespace, head.namespace_uid)]
        for start in range(0, len(wanted), _PAGE):
            ids = wanted[start : start + _PAGE]
            page = await self._search.page(Filters(ids=ids), "oldest", len(ids))
            for item in page.items:
                self._tell(item)
        self._note(changed)

    def _seen(self, namespace: str, uid: str) -> bool:
        return any(watcher.sees(namespace, uid) for watcher in self._watchers)

    def _tell(self, item: InvestigationListItem) -> None:
        notes: dict[str, QueuedMessage] = {}
        view = InvestigationItem.of(item)
        for watcher in self._watchers:
            if watcher.sees(item.namespace, item.namespace_uid):
                if watcher.channel not in notes:
                    message = ItemMessage(channel=watcher.channel, item=view)
                    notes[watcher.channel] = QueuedMessage(message.type, written(message))
                watcher.outbox.offer(notes[watcher.channel])

    def _note(self, heads: Iterable[Head]) -> None:
        for head in heads:
            self._revisions.pop(head.id, None)
            self._revisions[head.id] = head.revision
            (self._open.discard if head.finished else self._open.add)(head.id)
        while len(self._revisions) > _KNOWN:
            self._revisions.pop(next(iter(self._revisions)))
