"""Tests when tool servers are checked, and after how many failures one counts as away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.readiness.server_checks import FAILURES, RETRY_SECONDS, STDIO_SECONDS, Health, ServerChecks
from tarsy.mcp.connection import Policy
from tarsy.mcp.health import Look
from tarsy.plan.model import HttpTransport, ObjectRef, ServerPlan, StdioTransport

KEY = Key("MCPServer", "team-a", "tools")
ANSWER = Look(digests={"look": "1"})
SILENCE = Look(reason="Timeout", failure="no answer")


def server(url: str = "http://tools/mcp", uid: str = "u", **rest: Any) -> ServerPlan:
    ref = ObjectRef(kind="MCPServer", namespace="team-a", name="tools", uid=uid)
    return ServerPlan(ref=ref, name="tools", **{"transport": HttpTransport(url=url), **rest})


class Bed:
    """Checks with a clock and answers of the test."""

    def __init__(self, interval: float = 60.0) -> None:
        self.now = 1000.0
        self.answers: list[Look | Exception] = []
        self.asked: list[tuple[str, float]] = []
        self.woken: asyncio.Queue[Key] = asyncio.Queue()
        self.under_way = 0
        self.most = 0
        self.gate: asyncio.Event | None = None
        policy = Policy(None, None)  # type: ignore[arg-type]
        self.checks = ServerChecks(
            policy, self.mask, interval=interval, ask=self.ask, clock=lambda: self.now, chance=lambda: 0.5
        )

    def mask(self, text: str) -> str:
        if "unmaskable" in text:
            raise ValueError(text)
        return text.replace("hunter22", "[MASKED]")

    async def ask(self, plan: ServerPlan, policy: Policy, seconds: float) -> Look:
        self.asked.append((plan.ref.uid, seconds))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if self.gate is not None:
                await self.gate.wait()
            answer = self.answers.pop(0) if self.answers else ANSWER
        finally:
            self.under_way -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def looked(self, plan: ServerPlan | None = None) -> tuple[Health, float | None]:
        """What is known when the look that is due has been made."""
        plan = plan or server()
        self.checks.health(KEY, plan)
        assert await asyncio.wait_for(self.woken.get(), 60) == KEY
        return self.checks.health(KEY, plan)


@asynccontextmanager
async def running(bed: Bed) -> AsyncIterator[Bed]:
    task = asyncio.create_task(bed.checks.run(bed.woken.put_nowait))
    try:
        yield bed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_new_server_is_looked_at_beside_the_reconcile_and_its_key_is_woken() -> None:
    async with running(Bed()) as bed:
        assert bed.checks.health(KEY, server()) == (Health(), None)
        assert bed.checks.health(KEY, server()) == (Health(), None), "one look at a time"
        await bed.woken.get()
        assert bed.checks.health(KEY, server()) == (Health(found=ANSWER), 60.0)
    assert bed.asked == [("u", 30.0)]


async def test_a_server_that_answers_is_looked_at_again_at_the_interval_only() -> None:
    async with running(Bed()) as bed:
        await bed.looked()
        bed.now += 59.9
        assert bed.checks.health(KEY, server())[1] == pytest.approx(0.1)
        bed.now += 0.2
        await bed.looked()
    assert len(bed.asked) == 2


async def test_failures_in_a_row_and_not_one_make_a_server_away_and_one_answer_brings_it_back() -> None:
    async with running(Bed()) as bed:
        await bed.looked()
        for failure in range(1, FAILURES + 2):
            bed.now += 100
            bed.answers = [SILENCE]
            health, again = await bed.looked()
            assert (health.failures, health.away, health.found) == (failure, failure >= FAILURES, ANSWER)
            assert again == (60.0 if failure >= FAILURES else RETRY_SECONDS)
        bed.now += 100
        health, _ = await bed.looked()
        assert health == Health(found=ANSWER)


async def test_an_answer_between_failures_begins_the_count_anew() -> None:
    async with running(Bed()) as bed:
        for answer in (SILENCE, SILENCE, ANSWER, SILENCE, SILENCE):
            bed.answers = [answer]
            health, _ = await bed.looked()
            bed.now += 100
        assert health.failures == 2 and not health.away


async def test_a_server_that_is_started_by_a_look_is_looked_at_rarely() -> None:
    async with running(Bed()) as bed:
        _, again = await bed.looked(server(transport=StdioTransport(command="tools")))
    assert again == STDIO_SECONDS


async def test_a_changed_server_is_looked_at_at_once_and_nothing_of_the_old_one_is_known() -> None:
    async with running(Bed()) as bed:
        await bed.looked()
        assert bed.checks.health(KEY, server("http://elsewhere/mcp")) == (Health(), None)
        await bed.woken.get()
    assert len(bed.asked) == 2


async def test_what_a_look_finds_after_its_server_changed_does_not_count() -> None:
    async with running(Bed()) as bed:
        bed.gate = asyncio.Event()
        bed.answers = [SILENCE, ANSWER]
        bed.checks.health(KEY, server())
        await asyncio.sleep(0)
        bed.checks.health(KEY, server("http://elsewhere/mcp"))
        bed.gate.set()
        await bed.woken.get()
        await bed.woken.get()
        assert bed.checks.health(KEY, server("http://elsewhere/mcp"))[0] == Health(found=ANSWER)


async def test_hundreds_of_silent_servers_are_looked_at_a_few_at_a_time() -> None:
    async with running(Bed()) as bed:
        bed.gate = asyncio.Event()
        for number in range(200):
            bed.checks.health(KEY, server(uid=str(number)))
        for _ in range(100):
            await asyncio.sleep(0)
        assert bed.under_way == 8
        bed.gate.set()
        for _ in range(200):
            await asyncio.wait_for(bed.woken.get(), 60)
    assert bed.most == 8 and len(bed.asked) == 200


async def test_a_look_that_breaks_counts_as_a_failure_and_the_others_go_on() -> None:
    async with running(Bed()) as bed:
        bed.answers = [RuntimeError("inside")]
        health, _ = await bed.looked()
        assert health.failures == 1 and health.failed is not None and "inside" not in health.failed.failure
        bed.now += 100
        assert (await bed.looked())[0] == Health(found=ANSWER)


@pytest.mark.parametrize(("own", "asked"), [(5.0, 5.0), (30.0, 30.0), (31.0, 30.0), (3600.0, 30.0)])
async def test_a_look_takes_no_longer_than_the_server_may_and_never_longer_than_half_a_minute(
    own: float, asked: float
) -> None:
    async with running(Bed()) as bed:
        await bed.looked(server(init_seconds=own))
    assert bed.asked == [("u", asked)]


@pytest.mark.parametrize(
    ("said", "kept"), [("it said: password hunter22", "it said: password [MASKED]"), ("unmaskable hunter22", "")]
)
async def test_what_is_said_of_a_failure_is_masked_or_not_said(said: str, kept: str) -> None:
    async with running(Bed()) as bed:
        bed.answers = [Look(reason="OpenFailed", failure=said)]
        health, _ = await bed.looked()
    assert health.failed is not None and kept in health.failed.failure
    assert "hunter22" not in health.failed.failure
