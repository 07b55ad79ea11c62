"""Implements a queue that serves namespaces in turn, so that much work of one does not delay that of others."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Holds items by namespace; each namespace has its turn, and its own items leave in the order of their arrival."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        self._count = asyncio.Semaphore(0)

    def put(self, namespace: str, item: T) -> None:
        """Adds an item of a namespace."""
        self._waiting.setdefault(namespace, deque()).append(item)
        self._count.release()

    async def get(self) -> T:
        """Waits for an item, and removes it."""
        await self._count.acquire()
        namespace = next(iter(self._waiting))
        waiting = self._waiting.pop(namespace)
        item = waiting.popleft()
        if waiting:
            self._waiting[namespace] = waiting  # now the last in turn
        return item
