"""What is to be sent to one client, bounded: whoever does not read in time is dropped, and nobody waits for them.

Decision: two ways in. What happens now is offered and never waits; a client for whom there is no room any more is
overrun and has to come again, unless who offers asks for room first and has a better way. What a client is told of the
past waits for room, because it can be read again.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

MESSAGES = 1_000
CHARACTERS = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message as JSON, with what is said beside it: `place` tells the investigation (0) and its questions apart."""

    type: str
    data: str
    id: str | None = None
    place: int | None = None


class SendQueue:
    """The notes for one client.

    Args:
        messages: notes at most.
        characters: of all of them at most; a single note may be longer.
    """

    def __init__(self, messages: int = MESSAGES, characters: int = CHARACTERS) -> None:
        self._messages = messages
        self._characters = characters
        self._notes: deque[QueuedMessage] = deque()
        self._size = 0
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.overrun = asyncio.Event()

    def has_room(self, note: QueuedMessage) -> bool:
        """Whether a note can be taken now."""
        return len(self._notes) < self._messages and (
            not self._notes or self._size + len(note.data) <= self._characters
        )

    def offer(self, note: QueuedMessage, *, dispensable: bool = False) -> None:
        """Takes a note, or notes that the client is overrun; one that is `dispensable` only while half is free."""
        if self.overrun.is_set():
            return
        if dispensable and (2 * len(self._notes) >= self._messages or 2 * self._size >= self._characters):
            return
        if not self.has_room(note):
            self.overrun.set()
            self._some.set()
            return
        self._take(note)

    async def put(self, note: QueuedMessage) -> None:
        """Takes a note when half of the room is free."""
        await self._room.wait()
        self._take(note)

    async def take(self) -> list[QueuedMessage]:
        """All notes there are; waits for one. None any more for a client that is overrun."""
        await self._some.wait()
        if self.overrun.is_set():
            return []
        notes = list(self._notes)
        self._notes.clear()
        self._size = 0
        self._some.clear()
        self._room.set()
        return notes

    def _take(self, note: QueuedMessage) -> None:
        self._notes.append(note)
        self._size += len(note.data)
        self._some.set()
        if 2 * len(self._notes) >= self._messages or 2 * self._size >= self._characters:
            self._room.clear()
