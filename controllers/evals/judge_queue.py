"""Calls the judges of EvalRuns, in the background.

Watches: nothing of its own. Decides: which calls are made, a few at a time, while this replica is active. Writes: each
call into the database before it is made, and its answers and usage after it; then it queues the EvalRun. Namespaces
have their turns.

Decision: a judge is called here and not by a worker. It needs no tools, no lease and no record of a run. Its calls
count against the quotas of the namespace, in the share of replays, and toward the limits of the LLMProvider.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.fair_queue import FairQueue
from tarsy.engine.ports import Models
from tarsy.evals.agreement import judge_budget_spent
from tarsy.evals.cases import FrozenJudge
from tarsy.record.quota import QuotaRefused
from tarsy.runtime.judge_call import call_judge, judge_spending
from tarsy.store.errors import StoreError
from tarsy.store.judging.judge_calls import JudgeCalls, JudgeItem
from tarsy.store.quotas import HOLD_SECONDS

_log = logging.getLogger(__name__)

_AT_ONCE = 2
_STORE_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class JudgeOrder:
    """A call to make: for an EvalRun, about an item, with the text of the finding."""

    key: Key
    run: UUID
    item: JudgeItem
    judge: FrozenJudge
    text: str


class JudgeQueue:
    """Calls judges, each item once at a time.

    Args:
        models: clients for LLMProviders; None: no judge is called.
        calls: the stored calls; None: no judge is called.
        active: set while this replica is active.
        wake: is called with an EvalRun's key when a call has ended.
        mask: takes secrets out of what is said of failures.
    """

    def __init__(
        self,
        models: Models | None,
        calls: JudgeCalls | None,
        active: asyncio.Event,
        wake: Callable[[Key], None],
        mask: Callable[[str], str],
    ) -> None:
        self._models = models
        self.calls = calls
        self._active = active
        self._wake = wake
        self._mask = mask
        self._queue: FairQueue[JudgeOrder] = FairQueue()
        self._asked: set[tuple[UUID, JudgeItem]] = set()
        self._held: dict[UUID, tuple[float, str]] = {}

    def ask(self, order: JudgeOrder) -> None:
        """Makes a call, unless one about the same item waits or is under way, or a quota holds those of its run."""
        place = (order.run, order.item)
        if place not in self._asked and self.waits(order.run) is None:
            self._asked.add(place)
            self._queue.put(order.key.namespace, order)

    def waits(self, run: UUID) -> str | None:
        """Returns why a quota holds the calls of an EvalRun, for a while; None: none does."""
        until, sentence = self._held.get(run, (0.0, ""))
        if until > asyncio.get_running_loop().time():
            return sentence
        self._held.pop(run, None)
        return None

    async def run(self) -> None:
        """Calls until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            order = await self._queue.get()
            try:
                if self._active.is_set():
                    await self._call(order)
            except StoreError as error:
                _log.warning("a call of the judge of %s is not made: %s", order.key, error)
            finally:
                self._asked.discard((order.run, order.item))
            self._wake(order.key)

    async def _call(self, order: JudgeOrder) -> None:
        if self.calls is None or self._models is None:
            return
        if judge_budget_spent(order.judge.budget, await self.calls.usage(order.run)) is not None:
            return
        spending = judge_spending(order.key.namespace, order.judge, order.text)
        try:
            attempt = await self.calls.begin(order.run, order.item, spending)
        except QuotaRefused as refused:
            return await self._without_room(order, refused, self.calls)
        if attempt is None:
            return
        ended = await call_judge(order.judge, order.text, self._models, self._mask)
        while True:
            with suppress(StoreError):
                return await self.calls.end(order.run, order.item, attempt, ended, spending.id)
            await asyncio.sleep(_STORE_RETRY_SECONDS)

    async def _without_room(self, order: JudgeOrder, refused: QuotaRefused, calls: JudgeCalls) -> None:
        """Holds the calls of a run where the quota says Queue; otherwise the attempt has failed."""
        refusal = refused.refusal
        if refusal.on_exceeded != "Queue" or refusal.fits_never:
            return await calls.refuse(order.run, order.item, str(refused))
        until = asyncio.get_running_loop().time() + HOLD_SECONDS
        self._held[order.run] = (until, f"The judge waits. {refused}")
