"""The list of investigations as it changes, for all who watch it: read once, told by namespace.

Decision: a list has no past to catch up with. Who watches subscribes first and reads the list by REST then; what is
told twice so is the same item at the same revision.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from tarsy.http.live.messages import ItemMessage, written
from tarsy.http.live.send_queue import QueuedMessage, SendQueue
from tarsy.http.views.investigations import InvestigationItem
from tarsy.record.listing import InvestigationListItem
from tarsy.store.run_heads import Head, Heads
from tarsy.store.search import Filters, Search

_KNOWN = 20_000  # investigations whose revisions are kept
_PAGE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Watcher:
    """One who watches a list: of the namespace of that name and uid, or of all."""

    outbox: SendQueue
    namespace: str | None = None
    namespace_uid: str = ""

    @property
    def channel(self) -> str:
        """The name of its channel."""
        return list_channel(self.namespace)

    def sees(self, namespace: str, uid: str) -> bool:
        """Whether it is told of what is in a namespace."""
        return self.namespace is None or (self.namespace == namespace and self.namespace_uid == uid)


def list_channel(namespace: str | None) -> str:
    """The name of a list's channel."""
    return "investigations" if namespace is None else f"investigations:{namespace}"


class Lists:
    """Tells watchers; its owner says what may have changed.

    Args:
        pool: of Postgres.
        heads: how far runs are.
    """

    def __init__(self, pool: asyncpg.Pool, heads: Heads) -> None:
        self._search = Search(pool)
        self._heads = heads
        self._watchers: set[Watcher] = set()
        self._revisions: dict[UUID, int] = {}
        self._open: set[UUID] = set()

    @property
    def watched(self) -> bool:
        """Whether anybody watches."""
        return bool(self._watchers)

    async def add(self, watcher: Watcher) -> None:
        """Somebody watches from now on.

        Raises:
            StoreError: Postgres is away.
        """
        if not self._watchers:
            self._revisions.clear()
            self._note(await self._heads.stirring(()))
        self._watchers.add(watcher)

    def remove(self, watcher: Watcher) -> None:
        """Somebody watches no more."""
        self._watchers.discard(watcher)

    async def look(self) -> None:
        """Looks at all that may have changed without a word: a wake-up may be lost.

        Raises:
            StoreError: Postgres is away.
        """
        if self._watchers:
            await self.tell(await self._heads.stirring(self._open))

    async def tell(self, heads: Collection[Head]) -> None:
        """Tells of those that are further than was told.

        Raises:
            StoreError: Postgres is away; what was not told is told at the next look.
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
