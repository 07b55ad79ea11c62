"""Tests what becomes of the calls of a judge that no quota has room for."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from tarsy.controllers.evals.judge_queue import JudgeOrder, JudgeQueue
from tarsy.controllers.machinery.cache import Key
from tarsy.evals.cases import FrozenJudge
from tarsy.plan.model import ObjectRef, ProviderPlan
from tarsy.record.quota import OnExceeded, QuotaRefusal, QuotaRefused
from tarsy.resources.v1alpha1.judge import ChecklistQuestion
from tarsy.store.judging.judge_calls import JudgeItem, JudgeUsage
from tarsy.store.judging.judge_spending import JudgeSpending

KEY, ITEM = Key("EvalRun", "shop", "one"), JudgeItem("oom", "sample", 0)
PROVIDER = ProviderPlan(
    ref=ObjectRef(kind="LLMProvider", namespace="shop", name="judge", uid="u", generation=1),
    type="openai",
    model="judge-1",
)
JUDGE = FrozenJudge(provider=PROVIDER, checklist=(ChecklistQuestion(name="limit", question="Is it the limit?"),))


def refusal(on_exceeded: OnExceeded, need: int) -> QuotaRefused:
    now = datetime.now(UTC)
    return QuotaRefused(
        QuotaRefusal(
            "uid", "month", "month", on_exceeded, "tokens", "replays", now, now + timedelta(days=1), Decimal(500),
            used=Decimal(400), need=Decimal(need),
        )
    )  # fmt: skip


@dataclass
class FullLedger:
    """Stored calls without room for another."""

    refused: QuotaRefused
    begun: list[JudgeSpending] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    async def usage(self, run: UUID) -> JudgeUsage:
        return JudgeUsage()

    async def begin(self, run: UUID, item: JudgeItem, spending: JudgeSpending) -> int | None:
        self.begun.append(spending)
        raise self.refused

    async def refuse(self, run: UUID, item: JudgeItem, problem: str) -> None:
        self.problems.append(problem)


@pytest.mark.parametrize(
    ("on_exceeded", "need", "waits"),
    [("Queue", 500, True), ("Queue", 501, False), ("Reject", 200, False), ("TriageOnly", 200, False)],
)
async def test_a_call_without_room_waits_or_has_failed(on_exceeded: OnExceeded, need: int, waits: bool) -> None:
    calls, active, run, woken = FullLedger(refusal(on_exceeded, need)), asyncio.Event(), uuid4(), asyncio.Event()
    active.set()
    queue = JudgeQueue(cast("Any", object()), cast("Any", calls), active, lambda key: woken.set(), lambda text: text)
    working = asyncio.create_task(queue.run())
    try:
        async with asyncio.timeout(10):
            queue.ask(JudgeOrder(KEY, run, ITEM, JUDGE, "The limit is too low."))
            await woken.wait()
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
    (asked,) = calls.begun
    assert (asked.namespace, asked.provider, asked.model) == ("shop", "judge", "judge-1")
    assert asked.worst_tokens > 500
    if waits:
        told = queue.waits(run)
        assert told is not None and told.startswith(
            "The judge waits. InvestigationQuota month allows replays 500 tokens"
        )
        assert calls.problems == []
        queue.ask(JudgeOrder(KEY, run, ITEM, JUDGE, "The limit is too low."))
        assert len(calls.begun) == 1
    else:
        assert queue.waits(run) is None
        assert [one.startswith("InvestigationQuota month allows replays 500") for one in calls.problems] == [True]
