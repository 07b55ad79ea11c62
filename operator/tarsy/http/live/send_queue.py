"""Queues messages to one client, within limits; a client that does not read in time is disconnected.

Decision: live messages are offered and never wait; if the queue is full, the client is overrun and must reconnect,
unless the sender checks `has_room` first. Messages of the past wait for room, because they can be read again.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

MESSAGES = 1_000
CHARACTERS = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message as JSON with its metadata; `place` is 0 for the investigation, 1 and up for questions."""

    type: str
    data: str
    id: str | None = None
    place: int | None = None


class SendQueue:
    """The queue of messages to one client.

    Args:
        messages: maximum number of messages.
        characters: maximum length of all messages; a single message may be longer.
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
        """Returns whether a message can be queued now."""
        return len(self._notes) < self._messages and (
            not self._notes or self._size + len(note.data) <= self._characters
        )

    def offer(self, note: QueuedMessage, *, dispensable: bool = False) -> None:
        """Queues a message; marks the client as overrun if the queue is full.

        Args:
            note: the message.
            dispensable: drop the message instead if the queue is more than half full.
        """
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
        """Queues a message, after waiting until the queue is at most half full."""
        await self._room.wait()
        self._take(note)

    async def take(self) -> list[QueuedMessage]:
        """Waits for messages and returns all of them; none if the client is overrun."""
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
