"""Tests slots of model calls: exact over several pools, released after any failure, in order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from e2e.waiting import until
from integration.store.build import claimed_run, expire, next_attempt
from tarsy.llm.limits import Permit
from tarsy.plan.model import CallLimits, ObjectRef, ProviderPlan
from tarsy.record.run import LeaseLost
from tarsy.runtime.rate_limiter import RateLimiters, RunRateLimiter
from tarsy.store.database import open_pool
from tarsy.store.errors import StoreUnavailable
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.rate_limit_slots import Held, ProviderSlots, SlotRequest
from tarsy.store.runs.wakeups import TURN_CHANNEL
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier

ADMITTED = SlotRequest(limited=True)
FREE = SlotRequest(limited=False)


def provider(generation: int = 1, uid: str = "u1", **limits: int) -> ProviderPlan:
    ref = ObjectRef(kind="LLMProvider", namespace="team-a", name="p", uid=uid, generation=generation)
    return ProviderPlan(ref=ref, type="openai", model="m", limits=CallLimits(**limits) if limits else None)


class Caller:
    """One run's way to the places."""

    def __init__(self, pool: asyncpg.Pool, run: UUID, worker: UUID, attempt: int = 1) -> None:
        self.slots = ProviderSlots(pool)
        self.run, self.worker, self.attempt = run, worker, attempt

    async def take(self, of: ProviderPlan, tokens: int = 10, ticket: UUID | None = None) -> tuple[UUID, SlotRequest]:
        named = ticket or uuid4()
        return named, await self.slots.take(named, of, tokens, self.run, self.attempt)

    async def admitted(self, of: ProviderPlan, tokens: int = 10) -> UUID:
        ticket, turn = await self.take(of, tokens)
        assert turn == ADMITTED
        return ticket

    async def held(self, of: ProviderPlan, tokens: int = 10) -> tuple[UUID, str]:
        ticket, turn = await self.take(of, tokens)
        assert turn.held is not None
        return ticket, turn.held.limit


async def caller(pool: asyncpg.Pool) -> Caller:
    return Caller(pool, *await claimed_run(pool, name=f"run-{uuid4().hex[:8]}"))


async def pass_seconds(pool: asyncpg.Pool, seconds: float) -> None:
    """Makes all that happened so far so much older."""
    await pool.execute("UPDATE provider_call SET admitted_at = admitted_at - make_interval(secs => $1)", seconds)
    await pool.execute("UPDATE provider_call SET finished_at = finished_at - make_interval(secs => $1)", seconds)


async def test_no_more_at_once_than_allowed_and_one_that_ends_makes_room(pool: asyncpg.Pool) -> None:
    one, two = await caller(pool), await caller(pool)
    of = provider(max_concurrent=2)
    first = await one.admitted(of)
    await two.admitted(of)
    ticket, limit = await two.held(of)
    assert limit == "maxConcurrent"
    await one.slots.release({first: None})
    assert (await two.take(of, ticket=ticket))[1] == ADMITTED
    assert (await two.take(of, ticket=ticket))[1] == ADMITTED, "asked twice, it has one place"
    assert (await one.held(of))[1] == "maxConcurrent"


async def test_no_more_in_any_minute_than_allowed(pool: asyncpg.Pool) -> None:
    one = await caller(pool)
    of = provider(requests_per_minute=2)
    await one.slots.release({await one.admitted(of): 0})
    await pass_seconds(pool, 30)
    await one.slots.release({await one.admitted(of): 0})
    ticket, turn = await one.take(of)
    assert turn.held is not None and turn.held.limit == "requestsPerMinute"
    assert 0 < turn.held.seconds <= 31, "when the first counts no more"
    await pass_seconds(pool, 31)
    assert (await one.take(of, ticket=ticket))[1] == ADMITTED
    assert (await one.held(of))[1] == "requestsPerMinute", "the second still counts"


@pytest.mark.parametrize(
    ("used", "left"),
    [
        pytest.param(100, 900, id="as expected"),
        pytest.param(10, 990, id="fewer, and the rest is given back"),
        pytest.param(400, 600, id="more, and the excess counts"),
        pytest.param(0, 1000, id="refused"),
        pytest.param(None, 900, id="unknown, so as expected"),
    ],
)
async def test_tokens_are_kept_free_before_a_call_and_corrected_after_it(
    pool: asyncpg.Pool, used: int | None, left: int
) -> None:
    one = await caller(pool)
    of = provider(tokens_per_minute=1000)
    first = await one.admitted(of, 100)
    assert (await one.held(of, 901))[1] == "tokensPerMinute", "before it has used any"
    await pool.execute("DELETE FROM provider_call WHERE admitted_at IS NULL")
    await one.slots.release({first: used})
    ticket, turn = await one.take(of, left + 1)
    assert (turn.held is None) is (left == 1000), "alone it may be as large as it likes"
    await one.slots.release({ticket: 0})
    await one.admitted(of, left)


async def test_an_excess_counts_for_a_minute_from_when_it_was_known(pool: asyncpg.Pool) -> None:
    one = await caller(pool)
    of = provider(tokens_per_minute=1000)
    long = await one.admitted(of, 100)
    await pass_seconds(pool, 120)
    await one.slots.release({long: 600})
    ticket, turn = await one.take(of, 501)
    assert turn.held is not None and 0 < turn.held.seconds <= 61
    await pass_seconds(pool, 61)
    assert (await one.take(of, 1000, ticket))[1] == ADMITTED


async def test_a_call_of_more_than_a_minutes_tokens_goes_alone(pool: asyncpg.Pool) -> None:
    one = await caller(pool)
    of = provider(tokens_per_minute=1000)
    await one.admitted(of, 1)
    ticket, limit = await one.held(of, 5000)
    assert limit == "tokensPerMinute"
    await pass_seconds(pool, 61)
    assert (await one.take(of, 5000, ticket))[1] == ADMITTED
    assert (await one.held(of, 1))[1] == "tokensPerMinute"


async def test_first_come_first_served_though_a_later_one_would_fit(pool: asyncpg.Pool) -> None:
    one, two = await caller(pool), await caller(pool)
    of = provider(tokens_per_minute=1000)
    await one.admitted(of, 600)
    large, _ = await one.held(of, 500)
    small, turn = await two.take(of, 10)
    assert turn.held == Held("tokensPerMinute", 1000)
    await one.slots.release({large: None})
    assert (await two.take(of, 10, small))[1] == ADMITTED, "whoever gives up holds up nobody"


@pytest.mark.parametrize("waiting", [False, True], ids=["at the provider", "in the line"])
async def test_what_a_dead_worker_held_is_free_when_its_lease_has_lapsed(pool: asyncpg.Pool, waiting: bool) -> None:
    dead, one = await caller(pool), await caller(pool)
    of = provider(max_concurrent=1)
    if waiting:
        first = await one.admitted(of)
        await dead.held(of)
        await one.slots.release({first: None})
    else:
        await dead.admitted(of)
    ticket, _ = await one.held(of)
    await expire(pool, dead.worker)
    assert (await one.take(of, ticket=ticket))[1] == ADMITTED


async def test_what_an_earlier_attempt_held_is_free_and_it_gets_no_more(pool: asyncpg.Pool) -> None:
    old = await caller(pool)
    of = provider(max_concurrent=1)
    await old.admitted(of)
    attempt = await next_attempt(pool, old.run, old.worker)
    await Caller(pool, old.run, old.worker, attempt).admitted(of)
    with pytest.raises(LeaseLost):
        await old.take(of)


async def test_a_run_that_is_handed_back_keeps_no_place(pool: asyncpg.Pool) -> None:
    old, one = await caller(pool), await caller(pool)
    of = provider(max_concurrent=1)
    await old.admitted(of)
    assert await Claims(pool).release(old.worker, old.run, 1)
    await one.admitted(of)


async def test_the_newest_generation_that_anybody_knows_counts(pool: asyncpg.Pool) -> None:
    one = await caller(pool)
    await one.admitted(provider(1, max_concurrent=1))
    ticket, _ = await one.held(provider(1, max_concurrent=1))
    await one.slots.publish(provider(2).ref, CallLimits(max_concurrent=2))
    assert (await one.take(provider(1, max_concurrent=1), ticket=ticket))[1] == ADMITTED, "raised, for all plans"
    assert (await one.held(provider(3, max_concurrent=1)))[1] == "maxConcurrent", "a plan knows newer ones"
    await one.slots.publish(provider(2).ref, None)
    assert (await one.held(provider(1)))[1] == "maxConcurrent", "an older one changes nothing"
    await one.slots.publish(provider(4).ref, None)
    assert (await one.take(provider(3, max_concurrent=1)))[1] == FREE, "taken away"


async def test_providers_do_not_count_for_each_other_and_without_limits_nothing_is_kept(pool: asyncpg.Pool) -> None:
    one = await caller(pool)
    await one.admitted(provider(max_concurrent=1))
    await one.admitted(provider(uid="u2", max_concurrent=1))
    assert (await one.take(provider(uid="u3")))[1] == FREE
    assert await pool.fetchval("SELECT count(*) FROM provider_call") == 2


async def test_what_counts_no_more_is_deleted(pool: asyncpg.Pool) -> None:
    one, dead = await caller(pool), await caller(pool)
    of = provider(max_concurrent=10)
    await one.slots.release({await one.admitted(of): 5 for _ in range(3)})
    await dead.admitted(of)
    alive = await one.admitted(of)
    await expire(pool, dead.worker)
    await pass_seconds(pool, 61)
    last = await one.admitted(of)
    assert {row["id"] for row in await pool.fetch("SELECT id FROM provider_call")} == {alive, last}


@asynccontextmanager
async def turnstiles(dsn: str, *, poll_seconds: float = 30.0) -> AsyncIterator[tuple[ProviderSlots, RateLimiters]]:
    """What a worker process has: a pool, a listener, a notifier, and one task that gives places back."""
    pool = await open_pool(dsn, max_size=8)
    listener, notifier = Listener(dsn, (TURN_CHANNEL,), poll_seconds=poll_seconds), Notifier(pool)
    slots = ProviderSlots(pool, notifier.notify)
    made = RateLimiters(slots, listener.subscribe)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(service.run()) for service in (listener, notifier, made)]
        try:
            yield slots, made
        finally:
            for task in tasks:
                task.cancel()
    await pool.close()


def of_run(of: RateLimiters, of_caller: Caller) -> RunRateLimiter:
    return of.of(of_caller.run, of_caller.attempt, lambda: 60.0)


async def waiting_calls(pool: asyncpg.Pool) -> int:
    """How many calls have been told to wait."""
    return int(await pool.fetchval("SELECT count(*) FROM provider_call WHERE admitted_at IS NULL"))


async def pass_through(ticket: Permit) -> bool:
    """Waits for the turn; whether that was needed."""
    wait = await ticket.ask()
    if wait is not None:
        await ticket.turn()
    return wait is not None


async def test_calls_of_two_processes_never_exceed_what_they_share_and_all_have_their_turn(
    dsn: str, pool: asyncpg.Pool
) -> None:
    of, now, most, waited = provider(max_concurrent=3), 0, 0, 0
    asked = asyncio.Event()

    async def all_others_wait() -> bool:
        return await waiting_calls(pool) == 27

    async def call(turnstile: RunRateLimiter) -> None:
        nonlocal now, most, waited
        with turnstile.ticket(of, 10) as ticket:
            had_to = await pass_through(ticket)
            now, waited = now + 1, waited + had_to
            most = max(most, now)
            await asked.wait()
            await asyncio.sleep(0.01)
            now -= 1

    one, two = await caller(pool), await caller(pool)
    async with turnstiles(dsn) as (_, here), turnstiles(dsn) as (_, there), asyncio.timeout(120):
        async with asyncio.TaskGroup() as group:
            for _ in range(15):
                group.create_task(call(of_run(here, one)))
                group.create_task(call(of_run(there, two)))
            await until("all others wait", all_others_wait)
            asked.set()
        assert (most, now, waited) == (3, 0, 27)
    assert await pool.fetchval("SELECT count(*) FROM provider_call WHERE finished_at IS NULL") == 0


async def test_who_waits_is_woken_and_need_not_poll(dsn: str, pool: asyncpg.Pool) -> None:
    one = await caller(pool)
    async with turnstiles(dsn, poll_seconds=600.0) as (slots, gate), asyncio.timeout(120):
        turnstile = of_run(gate, one)

        async def waiting(of: ProviderPlan) -> asyncio.Task[bool]:
            """A call that has been told to wait."""
            before = await waiting_calls(pool)

            async def call() -> bool:
                with turnstile.ticket(of, 10) as ticket:
                    return await pass_through(ticket)

            async def has_asked() -> bool:
                return await waiting_calls(pool) > before

            task = asyncio.create_task(call())
            await until("it has asked", has_asked)
            assert not task.done()
            return task

        of = provider(max_concurrent=1)
        with turnstile.ticket(of, 10) as ticket:
            assert not await pass_through(ticket)
            others = [await waiting(of) for _ in range(2)]
        assert all(await asyncio.gather(*others)), "one after the other"

        raised = provider(uid="u2", max_concurrent=1)
        with turnstile.ticket(raised, 10) as ticket:
            assert not await pass_through(ticket)
            others = [await waiting(raised) for _ in range(2)]
            await slots.publish(raised.ref.model_copy(update={"generation": 2}), CallLimits(max_concurrent=3))
            assert all(await asyncio.gather(*others)), "the first wakes the next"

        per_minute = provider(uid="u3", requests_per_minute=1)
        with turnstile.ticket(per_minute, 10) as ticket:
            assert not await pass_through(ticket)
        await pass_seconds(pool, 55)
        assert await (await waiting(per_minute)), "by the clock"


async def test_a_place_that_cannot_be_given_back_now_is_given_back_later(
    dsn: str, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await caller(pool)
    of, refused = provider(max_concurrent=1), 0
    release = ProviderSlots.release

    async def away(self: ProviderSlots, used: Any) -> None:
        nonlocal refused
        refused += 1
        if refused < 2:
            raise StoreUnavailable("Postgres is away")
        await release(self, used)

    monkeypatch.setattr(ProviderSlots, "release", away)
    async with turnstiles(dsn) as (_, gate), asyncio.timeout(60):
        turnstile = of_run(gate, one)
        with turnstile.ticket(of, 10) as ticket:
            assert not await pass_through(ticket)
        with turnstile.ticket(of, 10) as ticket:
            await pass_through(ticket)
    assert refused >= 2


async def test_a_call_that_is_cut_off_while_it_asks_keeps_no_place(dsn: str, pool: asyncpg.Pool) -> None:
    one = await caller(pool)
    of = provider(max_concurrent=1)
    async with turnstiles(dsn) as (_, gate), asyncio.timeout(60):
        turnstile = of_run(gate, one)
        for delay in (0.0, 0.001, 0.002, 0.004):

            async def call() -> None:
                with turnstile.ticket(of, 10) as ticket:
                    await pass_through(ticket)
                    await asyncio.sleep(60)

            task = asyncio.create_task(call())
            await asyncio.sleep(delay)
            task.cancel()
            await asyncio.wait([task])
        with turnstile.ticket(of, 10) as ticket:
            await pass_through(ticket)


async def test_judges_wait_for_the_same_places_and_their_leases_end(dsn: str, pool: asyncpg.Pool) -> None:
    of, one = provider(max_concurrent=1), await caller(pool)
    async with turnstiles(dsn, poll_seconds=600.0) as (slots, gate), asyncio.timeout(120):
        judge = gate.of_judges(60.0)
        with of_run(gate, one).ticket(of, 10) as ticket:
            assert not await pass_through(ticket)
            with judge.ticket(of, 10) as waiting:
                assert (await waiting.ask()) is not None
                assert await waiting_calls(pool) == 1
        with judge.ticket(of, 10) as first:
            await pass_through(first)
            ticket_of_run = uuid4()
            taken = await slots.take(ticket_of_run, of, 10, one.run, one.attempt)
            assert taken.held is not None and taken.held.limit == "maxConcurrent"
            await pool.execute("UPDATE provider_call SET expires_at = now() WHERE investigation IS NULL")
            assert (await slots.take(ticket_of_run, of, 10, one.run, one.attempt)).held is None
