"""Defines the places that are watched: a kind in a namespace, with the state of its watch."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from tarsy.evidence.changes.change import TYPES, ChangeType
from tarsy.evidence.reading import ReadKind
from tarsy.record.reading.object_history import WatchState


@dataclass(slots=True)
class KnownState:
    """The last recorded state of an object, as far as it is needed to see whether another one differs."""

    name: str
    digest: bytes
    resource_version: str = ""


@dataclass(eq=False, slots=True)
class Place:
    """A kind in a namespace.

    Attributes:
        namespace_uid: uid of the namespace.
        namespace: its name.
        kind: the kind.
        values: whether masked values are recorded.
        known: the recorded objects by uid.
        state: whether it is watched.
        since: from when on all changes were seen; None: not yet.
        heard_at: when the watch was heard last.
        shed_at: when the first change was shed since the last listing; None: none was.
        listings: number of listings that have begun.
        again: set when the kind is to be listed again.
    """

    namespace_uid: str
    namespace: str
    kind: ReadKind
    values: bool
    known: dict[str, KnownState] = field(default_factory=dict)
    state: WatchState = WatchState.UNAVAILABLE
    since: datetime | None = None
    heard_at: datetime | None = None
    shed_at: datetime | None = None
    listings: int = 0
    again: asyncio.Event = field(default_factory=asyncio.Event)

    def __str__(self) -> str:
        return f"{self.kind.kind} in namespace {self.namespace}"

    @property
    def lane(self) -> ChangeType:
        """Type of most changes of the kind, by whose value they are shed."""
        return ChangeType.RESTART if self.kind.kind == "Pod" else TYPES.get(self.kind.kind, ChangeType.CONFIG)
