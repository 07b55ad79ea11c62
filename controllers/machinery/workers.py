"""Runs the reconcile workers: they take keys from the queue while this replica holds the Lease.

Decision: nothing is reconciled before the configuration was listed once. A plan made from a cache that lacks the
defaults of a namespace would silently lack its budget and its masking.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.queue import KeyedQueue
from tarsy.kube.client import ApiError
from tarsy.kube.lease import LeaderElection
from tarsy.store.errors import StoreError

_log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
WORKERS = 8


class ReconcileWorkers:
    """Reconciles the keys of a queue, each key by one worker at a time.

    Args:
        queue: the keys.
        election: whether this replica is active.
        learn: lists the configuration; called until it succeeds, before the first reconcile.
        learned: is set when it has succeeded.
        reconcile: reconciles the object of a key; returns the seconds until the next look, None when none is needed.
    """

    def __init__(
        self,
        queue: KeyedQueue[Key],
        election: LeaderElection,
        learn: Callable[[], Awaitable[None]],
        learned: asyncio.Event,
        reconcile: Callable[[Key], Awaitable[float | None]],
    ) -> None:
        self._queue = queue
        self._election = election
        self._learn = learn
        self._learned = learned
        self._reconcile = reconcile

    async def run(self) -> None:
        """Runs until cancelled."""
        await self._learn_configuration()
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _learn_configuration(self) -> None:
        while True:
            await self._election.active.wait()
            try:
                await self._learn()
                return self._learned.set()
            except ApiError as error:
                _log.warning("the configuration could not be listed; retrying in %g s: %s", RETRY_SECONDS, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _work(self) -> None:
        while True:
            await self._election.active.wait()
            key = await self._queue.get()
            if not self._election.active.is_set():
                self._queue.failed(key)
                continue
            try:
                again = await self._reconcile(key)
            except (ApiError, StoreError) as error:
                delay = self._queue.failed(key)
                level = logging.INFO if isinstance(error, ApiError) and error.reason == "Conflict" else logging.WARNING
                _log.log(level, "%s could not be reconciled; retrying in %.1f s: %s", key, delay, error)
            except Exception:
                delay = self._queue.failed(key)
                _log.exception("%s could not be reconciled; retrying in %.1f s", key, delay)
            else:
                self._queue.done(key)
                if again is not None:
                    self._queue.add_after(key, again)
