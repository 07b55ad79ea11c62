"""The ledger of quotas: claims count runs, calls reserve their worst case and settle to what they used."""

import asyncio
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from integration.store.build import (
    BegunRun,
    begun_run,
    model_call,
    model_result,
    new_run,
    next_attempt,
    tool_call,
    tool_result,
    worker,
    writer,
)
from tarsy.controllers.investigation_quota import lift_deleted
from tarsy.controllers.machinery.cache import Cache
from tarsy.record.boundaries import ModelCallResult, ModelCallStart
from tarsy.record.quota import OnExceeded, Period, QuotaLimits, QuotaRefused, QuotaUsage
from tarsy.record.run import State
from tarsy.record.usage import Usage
from tarsy.store.database import open_pool
from tarsy.store.quotas import HOLD_SECONDS, Quotas
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import ClaimedRun, Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.wakeups import QUEUE_CHANNEL

LIMIT = 1000


async def publish(pool: asyncpg.Pool, name: str = "month", *, generation: int = 1, **limits: Any) -> None:
    values: dict[str, Any] = {"period": "month", "shares": {"questions": 50, "replays": 50, "schedules": 50}} | limits
    await Quotas(pool).publish(f"uid-{name}", "team-a", name, generation, QuotaLimits(**values))


async def usage(pool: asyncpg.Pool, name: str = "month", share: str = "all") -> QuotaUsage:
    return (await Quotas(pool).usage([f"uid-{name}"], share))[f"uid-{name}"]


async def reserved(pool: asyncpg.Pool) -> int:
    total: int = await pool.fetchval("SELECT coalesce(sum(tokens), 0)::bigint FROM quota_reservation")
    return total


def a_call(of: UUID, number: int = 0, tokens: int = 100, usd: str | None = None) -> ModelCallStart:
    dollars = None if usd is None else Decimal(usd)
    return replace(model_call(of, number), worst_tokens=tokens, worst_cost_usd=dollars)


def ended(of: UUID, number: int = 0, *, usage: Usage | None = None, estimated_tokens: int = 0) -> ModelCallResult:
    return replace(model_result(of, number), usage=usage, estimated_tokens=estimated_tokens)


async def claim(pool: asyncpg.Pool, free: int = 10, questions: int = 0) -> list[ClaimedRun]:
    return await Claims(pool).claim(await worker(pool), free, 1000, questions=questions)


async def accept(pool: asyncpg.Pool, count: int = 1, **changes: Any) -> list[UUID]:
    runs = [replace(new_run(), **changes) for _ in range(count)]
    for run in runs:
        assert await Runs(pool).accept(run)
    return [run.id for run in runs]


# Calls


@pytest.mark.parametrize(("tokens", "fits"), [(LIMIT - 1, True), (LIMIT, True), (LIMIT + 1, False)])
async def test_call_fits_up_to_the_limit_and_not_beyond(pool: asyncpg.Pool, tokens: int, fits: bool) -> None:
    await publish(pool, tokens=LIMIT)
    begun = await begun_run(pool)
    if fits:
        await begun.write.model_call_started(a_call(begun.agent.id, tokens=tokens))
        assert (await usage(pool)).reserved_tokens == tokens
        return
    with pytest.raises(QuotaRefused) as refused:
        await begun.write.model_call_started(a_call(begun.agent.id, tokens=tokens))
    assert refused.value.refusal.fits_never
    assert "Raise hard.tokens of the quota, or lower maxOutputTokens" in str(refused.value)
    assert await pool.fetchval("SELECT count(*) FROM llm_interaction") == 0
    found = await usage(pool)
    assert (found.spent_tokens, found.reserved_tokens, found.refusals) == (0, 0, 1)


@pytest.mark.parametrize(("usd", "fits"), [("0.99", True), ("1.00", True), ("1.01", False)])
async def test_dollars_are_kept_as_exactly(pool: asyncpg.Pool, usd: str, fits: bool) -> None:
    await publish(pool, cost_usd=Decimal(1))
    begun = await begun_run(pool)
    starting = begun.write.model_call_started(a_call(begun.agent.id, usd=usd))
    if fits:
        await starting
        assert (await usage(pool)).reserved_usd == Decimal(usd)
    else:
        with pytest.raises(QuotaRefused, match=r"allows US\$ 1 a month, US\$ 0 are spent or reserved"):
            await starting


async def test_call_settles_to_what_it_used(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT, cost_usd=Decimal(1))
    begun = await begun_run(pool)
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=900, usd="0.9"))
    await begun.write.model_call_finished(model_result(begun.agent.id, cost_usd=Decimal("0.1")))
    found = await usage(pool)
    assert (found.spent_tokens, found.reserved_tokens) == (120, 0)
    assert (found.spent_usd, found.reserved_usd) == (Decimal("0.1"), 0)
    await begun.write.model_call_started(a_call(begun.agent.id, 1, tokens=880, usd="0.9"))
    assert (await usage(pool)).reserved_tokens == 880


async def test_call_of_unknown_usage_counts_as_its_budget_counts_it(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT)
    begun = await begun_run(pool)
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=900))
    await begun.write.model_call_finished(ended(begun.agent.id, estimated_tokens=300))
    assert (await usage(pool)).spent_tokens == 300


async def test_call_of_a_dead_worker_stays_reserved_and_then_counts_in_full(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT)
    begun = await begun_run(pool)
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=700))
    attempt = await next_attempt(pool, begun.run, begun.owner)
    assert (await usage(pool)).reserved_tokens == 700
    again = writer(pool, begun.run, attempt)
    await again.begin_execution(begun.agent)
    found = await usage(pool)
    assert (found.spent_tokens, found.reserved_tokens, await reserved(pool)) == (700, 0, 0)
    with pytest.raises(QuotaRefused):
        await again.model_call_started(a_call(begun.agent.id, 1, tokens=301))
    await again.model_call_started(a_call(begun.agent.id, 1, tokens=300))


async def test_run_that_the_sweep_ends_settles_its_calls(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT)
    begun = await begun_run(pool)
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=700))
    await pool.execute("UPDATE investigation SET deadline = now() - interval '1 hour'")
    await pool.execute("UPDATE worker SET expires_at = now() - interval '1 second'")
    assert await Runs(pool).expire_overdue(0) == [begun.run]
    assert ((await usage(pool)).spent_tokens, await reserved(pool)) == (700, 0)


async def test_step_that_is_written_twice_reserves_once(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT)
    begun = await begun_run(pool)
    for _ in range(2):
        await begun.write.model_call_started(a_call(begun.agent.id, tokens=600))
    for _ in range(2):
        await begun.write.model_call_finished(model_result(begun.agent.id))
    found = await usage(pool)
    assert (found.spent_tokens, found.reserved_tokens) == (120, 0)


async def test_refused_call_keeps_the_step_that_was_held_before_it(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT)
    begun = await begun_run(pool)
    async with begun.write.holding():
        await begun.write.model_call_started(a_call(begun.agent.id, tokens=900))
        await begun.write.model_call_finished(model_result(begun.agent.id))
        with pytest.raises(QuotaRefused):
            await begun.write.model_call_started(a_call(begun.agent.id, 1, tokens=900))
        await begun.write.tool_call_started(tool_call(begun.agent.id))
        await begun.write.tool_call_finished(tool_result(begun.agent.id))
        with pytest.raises(QuotaRefused):
            await begun.write.model_call_started(a_call(begun.agent.id, 1, tokens=900))
    record = await Reads(pool).record(begun.run)
    assert record is not None
    assert (record.model_calls, record.usage.total_tokens, record.tool_calls) == (1, 120, 1)
    assert (await usage(pool)).refusals == 2


async def test_dollars_cannot_be_kept_without_a_price(pool: asyncpg.Pool) -> None:
    await publish(pool, cost_usd=Decimal(100))
    begun = await begun_run(pool)
    with pytest.raises(QuotaRefused, match=r"its LLMProvider declares no rates\. Set spec\.rates of the LLMProvider"):
        await begun.write.model_call_started(a_call(begun.agent.id))


async def test_every_quota_of_the_namespace_must_allow_a_call(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT)
    await publish(pool, "hour", period="hour", tokens=100)
    begun = await begun_run(pool)
    with pytest.raises(QuotaRefused, match="InvestigationQuota hour allows 100 tokens an hour"):
        await begun.write.model_call_started(a_call(begun.agent.id, tokens=101))
    assert (await usage(pool)).reserved_tokens == 0
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=100))
    assert ((await usage(pool)).reserved_tokens, (await usage(pool, "hour")).reserved_tokens) == (100, 100)


WORK = {
    "replays": "UPDATE investigation SET replay = true",
    "questions": "UPDATE investigation SET parent = id",
    "schedules": "UPDATE investigation SET scheduled = true",
}
"""Makes runs of a kind that has a share."""


@pytest.mark.parametrize("share", WORK)
@pytest.mark.parametrize("tokens", [LIMIT // 2 - 1, LIMIT // 2, LIMIT // 2 + 1])
async def test_work_that_can_wait_gets_half_of_the_tokens_and_not_one_more(
    pool: asyncpg.Pool, share: str, tokens: int
) -> None:
    await publish(pool, tokens=LIMIT)
    begun = await begun_run(pool)
    await pool.execute(WORK[share])
    starting = begun.write.model_call_started(a_call(begun.agent.id, tokens=tokens))
    if tokens > LIMIT // 2:
        with pytest.raises(QuotaRefused, match=f"allows {share} 500 tokens a month"):
            await starting
        assert ((await usage(pool, share=share)).reserved_tokens, (await usage(pool)).reserved_tokens) == (0, 0)
        return
    await starting
    assert ((await usage(pool, share=share)).reserved_tokens, (await usage(pool)).reserved_tokens) == (tokens, tokens)
    await begun.write.model_call_finished(model_result(begun.agent.id))
    assert ((await usage(pool, share=share)).spent_tokens, (await usage(pool)).spent_tokens) == (120, 120)


@pytest.mark.parametrize("share", WORK)
@pytest.mark.parametrize(("usd", "fits"), [("0.49", True), ("0.50", True), ("0.51", False)])
async def test_work_that_can_wait_gets_half_of_the_dollars_and_not_a_cent_more(
    pool: asyncpg.Pool, share: str, usd: str, fits: bool
) -> None:
    await publish(pool, cost_usd=Decimal(1))
    begun = await begun_run(pool)
    await pool.execute(WORK[share])
    starting = begun.write.model_call_started(a_call(begun.agent.id, usd=usd))
    if fits:
        await starting
        assert (await usage(pool, share=share)).reserved_usd == Decimal(usd)
    else:
        with pytest.raises(QuotaRefused, match=f"allows {share} US"):
            await starting


async def test_other_namespaces_are_not_limited(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=1)
    begun = await begun_run(pool, namespace="team-b")
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=10**9))
    assert (await usage(pool)).reserved_tokens == 0


async def test_code_before_quotas_reserves_its_estimate_and_is_not_refused(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=10)
    begun = await begun_run(pool)
    await pool.execute(
        """INSERT INTO llm_interaction (id, execution, number, kind, provider, model, strategy, message_count,
        estimated_tokens) VALUES (gen_random_uuid(), $1, 0, 'iteration', 'local', 'm', 'langchain', 0, 50)""",
        begun.agent.id,
    )
    assert (await usage(pool)).reserved_tokens == 50


# Periods


async def test_next_period_begins_with_nothing_spent_and_old_calls_settle_where_they_began(pool: asyncpg.Pool) -> None:
    await publish(pool, period="hour", tokens=LIMIT)
    begun = await begun_run(pool)
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=LIMIT))
    with pytest.raises(QuotaRefused):
        await begun.write.model_call_started(a_call(begun.agent.id, 1, tokens=1))
    await an_hour_passes(pool)
    assert (await usage(pool)).reserved_tokens == 0
    await begun.write.model_call_started(a_call(begun.agent.id, 1, tokens=LIMIT))
    await begun.write.model_call_finished(model_result(begun.agent.id))
    assert (await usage(pool)).spent_tokens == 0
    row = await pool.fetchrow("SELECT * FROM quota_usage WHERE share = 'all' ORDER BY starts_at LIMIT 1")
    assert (row["spent_tokens"], row["reserved_tokens"]) == (120, 0)


async def an_hour_passes(pool: asyncpg.Pool) -> None:
    """Moves what is counted to the hour before."""
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")  # without the foreign key
        await connection.execute("UPDATE quota_usage SET starts_at = starts_at - interval '1 hour'")
        await connection.execute("UPDATE quota_reservation SET starts_at = starts_at - interval '1 hour'")


@pytest.mark.parametrize(
    ("period", "starts"),
    [
        ("hour", "date_trunc('hour', now() AT TIME ZONE 'UTC')"),
        ("day", "(now() AT TIME ZONE 'UTC')::date::timestamp"),
        ("week", "(now() AT TIME ZONE 'UTC')::date - (extract(isodow FROM now() AT TIME ZONE 'UTC')::integer - 1)"),
        ("month", "date_trunc('month', now() AT TIME ZONE 'UTC')"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/New_York"])
async def test_periods_follow_utc_whatever_the_session(
    pool: asyncpg.Pool, period: Period, starts: str, zone: str
) -> None:
    await publish(pool, period=period, tokens=LIMIT)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SET LOCAL TIME ZONE '{zone}'")
        opened = await connection.fetchval("SELECT quota_open(q, 'all') FROM quota q")
        assert opened == await connection.fetchval(f"SELECT ({starts})::timestamp AT TIME ZONE 'UTC'")
        lasts = await connection.fetchval("SELECT ends_at - starts_at FROM quota_usage")
    days = {"hour": (0, 0), "day": (1, 1), "week": (7, 7), "month": (28, 31)}[period]
    assert days[0] <= lasts.days <= days[1]


@pytest.mark.parametrize(
    ("period", "at", "starts", "ends"),
    [
        ("hour", "2026-10-25 00:59:59.999999", "2026-10-25 00:00", "2026-10-25 01:00"),  # clocks of Berlin go back
        ("hour", "2026-10-25 01:00", "2026-10-25 01:00", "2026-10-25 02:00"),
        ("day", "2026-12-31 23:59:59.999999", "2026-12-31", "2027-01-01"),
        ("day", "2027-01-01 00:00", "2027-01-01", "2027-01-02"),
        ("week", "2027-01-03 23:59:59.999999", "2026-12-28", "2027-01-04"),
        ("week", "2027-01-04 00:00", "2027-01-04", "2027-01-11"),
        ("month", "2028-02-29 23:59:59.999999", "2028-02-01", "2028-03-01"),
        ("month", "2028-03-01 00:00", "2028-03-01", "2028-04-01"),
    ],
)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Pacific/Auckland"])
async def test_period_ends_at_its_last_microsecond_in_utc(
    pool: asyncpg.Pool, period: Period, at: str, starts: str, ends: str, zone: str
) -> None:
    await publish(pool, period=period, tokens=LIMIT)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("CREATE SCHEMA clock")
        await connection.execute(
            "CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
            f"$$ SELECT timestamptz '{at}+00' $$"
        )
        await connection.execute(f"SET LOCAL TIME ZONE '{zone}'")
        await connection.execute("SET LOCAL search_path = clock, pg_catalog, tarsy")
        opened = await connection.fetchval("SELECT quota_open(q, 'all') FROM quota q")
        last = await connection.fetchval("SELECT ends_at FROM quota_usage")
    assert (opened, last) == tuple(datetime.fromisoformat(one).replace(tzinfo=UTC) for one in (starts, ends))


# Properties


@pytest.mark.sweep("another order")
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("limit", [LIMIT - 1, LIMIT, LIMIT + 1])
async def test_no_interleaving_exceeds_the_limit_or_loses_a_token(pool: asyncpg.Pool, seed: int, limit: int) -> None:
    """Four runs reserve, settle, fail and crash at random; calls of 250 tokens, so that four reach the limit."""
    chance = random.Random(f"{seed}/{limit}")
    await publish(pool, tokens=limit)
    runs = [await begun_run(pool) for _ in range(4)]
    writes, owners = {run.run: run.write for run in runs}, {run.run: run.owner for run in runs}
    open_calls: dict[UUID, list[int]] = {run.run: [] for run in runs}
    numbers, spent = dict.fromkeys(open_calls, 0), 0
    for _ in range(40):
        run = chance.choice(runs)
        calls, of = open_calls[run.run], run.agent.id
        match chance.choice(["start", "start", "finish", "lose", "crash"]):
            case "start":
                number, numbers[run.run] = numbers[run.run], numbers[run.run] + 1
                room = limit - spent - 250 * sum(map(len, open_calls.values()))
                try:
                    await writes[run.run].model_call_started(a_call(of, number, tokens=250))
                except QuotaRefused:
                    assert room < 250
                else:
                    assert room >= 250
                    calls.append(number)
            case "finish" if calls:
                used = chance.choice([0, 1, 249, 250])
                result = ended(of, calls.pop(), usage=Usage(input_tokens=used, output_tokens=0))
                await writes[run.run].model_call_finished(result)
                spent += used
            case "lose" if calls:
                await writes[run.run].model_call_finished(ended(of, calls.pop(), estimated_tokens=90))
                spent += 90
            case "crash" if calls:
                await pool.execute(
                    "UPDATE worker SET expires_at = now() - interval '1 s' WHERE id = $1", owners[run.run]
                )
                (claimed,) = [one for one in await claim(pool) if one.id == run.run]
                owners[run.run] = await pool.fetchval("SELECT worker FROM lease WHERE investigation = $1", run.run)
                writes[run.run] = writer(pool, run.run, claimed.attempt)
                await writes[run.run].begin_execution(run.agent)
                spent += 250 * len(calls)
                calls.clear()
        found = await usage(pool)
        assert found.spent_tokens == spent
        assert found.reserved_tokens == await reserved(pool) == 250 * sum(map(len, open_calls.values()))
        assert found.spent_tokens + found.reserved_tokens <= limit


@pytest.mark.parametrize("limit", [LIMIT - 1, LIMIT, LIMIT + 1])
async def test_calls_side_by_side_share_the_last_tokens(pool: asyncpg.Pool, limit: int) -> None:
    await publish(pool, tokens=limit)
    await publish(pool, "day", period="day", tokens=limit)
    runs = [await begun_run(pool) for _ in range(6)]

    async def spend(begun: BegunRun) -> int:
        made = 0
        for number in range(20):
            try:
                await begun.write.model_call_started(a_call(begun.agent.id, number, tokens=100))
            except QuotaRefused:
                continue
            found = await usage(pool)
            assert found.spent_tokens + found.reserved_tokens <= limit
            used = Usage(input_tokens=40, output_tokens=10)
            await begun.write.model_call_finished(ended(begun.agent.id, number, usage=used))
            made += 1
        return made

    made = sum(await asyncio.gather(*map(spend, runs)))
    for name in ("month", "day"):
        found = await usage(pool, name)
        assert (found.spent_tokens, found.reserved_tokens) == (50 * made, 0)
        assert limit - 100 < found.spent_tokens <= limit


# Runs


@pytest.mark.parametrize(("limit", "started"), [(2, 2), (3, 3), (4, 4), (5, 4)])
async def test_runs_are_counted_exactly_over_claims(pool: asyncpg.Pool, limit: int, started: int) -> None:
    await publish(pool, investigations=limit)
    await accept(pool, 4)
    claimed = [await claim(pool, free=3), await claim(pool, free=3)]
    assert sum(map(len, claimed)) == started
    assert (await usage(pool)).investigations == started


async def test_workers_side_by_side_start_no_run_too_many(pool: asyncpg.Pool) -> None:
    await publish(pool, investigations=7)
    await accept(pool, 20)
    claimed = await asyncio.gather(*(claim(pool, free=3) for _ in range(6)))
    assert sum(map(len, claimed)) == 7


async def test_run_that_resumes_is_counted_once(pool: asyncpg.Pool) -> None:
    await publish(pool, investigations=1)
    begun = await begun_run(pool)
    await next_attempt(pool, begun.run, begun.owner)
    assert (await usage(pool)).investigations == 1


async def test_held_run_says_why_and_starts_when_the_limit_is_raised(pool: asyncpg.Pool) -> None:
    await publish(pool, investigations=1)
    first, second = await accept(pool, 2)
    assert [run.id for run in await claim(pool, free=1)] == [first]
    assert await claim(pool) == []
    record = await Reads(pool).record(second)
    assert record is not None
    assert record.state is State.PENDING
    assert record.held_for is not None
    assert record.held_for.startswith(
        "InvestigationQuota month allows 1 investigation a month, and 1 has started. The next period begins at "
    )
    assert await claim(pool) == []
    again = await Reads(pool).record(second)
    assert again is not None
    assert again.revision == record.revision
    await publish(pool, investigations=2, generation=2)
    assert [run.id for run in await claim(pool)] == [second]
    started = await Reads(pool).record(second)
    assert started is not None
    assert started.held_for is None


async def test_held_run_is_looked_at_again_after_a_while_and_does_not_keep_workers_busy(pool: asyncpg.Pool) -> None:
    await publish(pool, investigations=1)
    await accept(pool, 2)
    await claim(pool, free=1)
    await claim(pool)
    left = await pool.fetchval("SELECT held_until - now() FROM investigation WHERE held_until IS NOT NULL")
    assert 0 < left.total_seconds() <= HOLD_SECONDS
    await pool.execute("UPDATE quota_usage SET investigations = 0")
    assert await claim(pool) == []
    await pool.execute("UPDATE investigation SET held_until = now()")
    assert len(await claim(pool)) == 1


async def test_schedules_that_are_held_let_alerts_pass(pool: asyncpg.Pool) -> None:
    await publish(pool, investigations=2)
    await accept(pool, 3, scheduled=True, priority=50)
    (alert,) = await accept(pool)
    claimed = [run.id for _ in range(5) for run in await claim(pool, free=1)]
    assert (len(claimed), claimed[-1]) == (2, alert)
    assert (await usage(pool, share="schedules")).investigations == 1


@pytest.mark.parametrize("share", ["schedules", "replays"])
@pytest.mark.parametrize(("limit", "started"), [(1, 0), (3, 1), (4, 2), (5, 2)])
async def test_half_of_the_investigations_is_rounded_down_for_work_that_can_wait(
    pool: asyncpg.Pool, share: str, limit: int, started: int
) -> None:
    await publish(pool, investigations=limit)
    await accept(pool, 5)
    await pool.execute(WORK[share])
    claimed = [run for _ in range(5) for run in await claim(pool, free=1)]
    assert (len(claimed), (await usage(pool, share=share)).investigations) == (started, started)


async def test_rejected_run_ends_with_reason_and_remedy(pool: asyncpg.Pool) -> None:
    await publish(pool, investigations=1, on_exceeded="Reject")
    _, second = await accept(pool, 2)
    await claim(pool, free=1)
    await claim(pool)
    record = await Reads(pool).record(second)
    assert record is not None
    assert record.outcome is not None
    assert record.outcome.failure is not None
    assert (record.state, record.outcome.failure.reason) == (State.FAILED, "QuotaExceeded")
    assert "hard.investigations of the quota can be raised" in record.outcome.failure.message


async def test_run_to_be_triaged_starts_without_being_counted(pool: asyncpg.Pool) -> None:
    await publish(pool, investigations=1, on_exceeded="TriageOnly")
    await accept(pool, 2)
    (first,) = await claim(pool, free=1)
    (second,) = await claim(pool)
    assert first.triage_for is None
    assert second.triage_for is not None
    assert second.triage_for.startswith("InvestigationQuota month allows 1 investigation a month, and 1 has started.")
    assert (await usage(pool)).investigations == 1


@pytest.mark.parametrize("on_exceeded", ["Queue", "Reject", "TriageOnly"])
async def test_no_run_is_started_whose_call_would_not_fit(pool: asyncpg.Pool, on_exceeded: OnExceeded) -> None:
    await publish(pool, tokens=LIMIT, on_exceeded=on_exceeded)
    begun = await begun_run(pool)
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=800))
    with pytest.raises(QuotaRefused):
        await begun.write.model_call_started(a_call(begun.agent.id, 1, tokens=300))
    (second,) = await accept(pool)
    claimed = await claim(pool)
    record = await Reads(pool).record(second)
    assert record is not None
    match on_exceeded:
        case "Queue":
            assert (claimed, record.state) == ([], State.PENDING)
        case "Reject":
            assert (claimed, record.state) == ([], State.FAILED)
        case _:
            assert [run.triage_for is not None for run in claimed] == [True]
    await begun.write.model_call_finished(model_result(begun.agent.id))  # used 120 of 800: there is room again
    await accept(pool)
    assert [run.triage_for for run in await claim(pool)] == [None]


async def test_strictest_of_several_quotas_decides(pool: asyncpg.Pool) -> None:
    await publish(pool, "hour", period="hour", investigations=0, on_exceeded="Queue")
    await publish(pool, "day", period="day", investigations=0, on_exceeded="Reject")
    (run,) = await accept(pool)
    assert await claim(pool) == []
    record = await Reads(pool).record(run)
    assert record is not None
    assert record.state is State.FAILED


# Publication


async def test_new_quota_counts_what_its_period_has_seen(pool: asyncpg.Pool) -> None:
    begun = await begun_run(pool)
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=900))
    await begun.write.model_call_finished(model_result(begun.agent.id, cost_usd=Decimal("0.5")))
    await begun.write.model_call_started(a_call(begun.agent.id, 1, tokens=300))
    await publish(pool, tokens=LIMIT)
    found = await usage(pool)
    assert (found.investigations, found.spent_tokens, found.spent_usd) == (1, 120, Decimal("0.5"))
    assert found.reserved_tokens == 300
    await begun.write.model_call_finished(model_result(begun.agent.id, 1))
    found = await usage(pool)
    assert (found.spent_tokens, found.reserved_tokens) == (240, 0)


async def test_older_generation_changes_nothing_and_a_newer_one_keeps_what_is_spent(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT, generation=2)
    begun = await begun_run(pool)
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=400))
    await publish(pool, tokens=1, generation=1)
    await publish(pool, tokens=500, generation=3)
    assert (await usage(pool)).reserved_tokens == 400
    with pytest.raises(QuotaRefused, match="allows 500 tokens"):
        await begun.write.model_call_started(a_call(begun.agent.id, 1, tokens=101))
    await publish(pool, period="day", tokens=500, generation=4)
    assert (await usage(pool)).reserved_tokens == 400


async def test_deleted_quota_limits_nothing(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=1, investigations=1)
    begun = await begun_run(pool)
    (held,) = await accept(pool)
    await claim(pool)
    await Quotas(pool).delete("uid-month")
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=10**6))
    assert [run.id for run in await claim(pool)] == [held]
    assert await Quotas(pool).published() == {}


@dataclass
class Api:
    """A Kubernetes API that has quotas with these uids, by name."""

    there: dict[str, str]

    async def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        assert (kind, namespace) == ("InvestigationQuota", "team-a")
        uid = self.there.get(name)
        return None if uid is None else {"metadata": {"uid": uid}}


@pytest.mark.parametrize(
    ("there", "lifted"),
    [({}, True), ({"month": "uid-of-another"}, True), ({"month": "uid-month"}, False)],
)
async def test_quota_that_was_deleted_unseen_lifts_what_waits_for_it(
    pool: asyncpg.Pool, there: dict[str, str], lifted: bool
) -> None:
    await publish(pool, investigations=1)
    await accept(pool, 2)
    await claim(pool, free=1)
    assert await claim(pool) == []
    woken: list[str] = []
    quotas = Quotas(pool, lambda channel, payload: woken.append(channel))
    await lift_deleted(quotas, Cache(), Api(there))  # type: ignore[arg-type]
    assert (await quotas.published() == {}) is lifted
    assert len(await claim(pool)) == lifted
    assert woken == [QUEUE_CHANNEL] * lifted


# Cost


async def test_call_takes_one_statement_a_boundary_with_and_without_a_quota(dsn: str) -> None:
    async with await open_pool(dsn, max_size=1) as pool:
        begun = await begun_run(pool)
        await begun.write.model_call_started(a_call(begun.agent.id, 0))  # asyncpg asks for types at first
        await begun.write.model_call_finished(model_result(begun.agent.id, 0))
        for number, tokens in enumerate((None, 10**6), 1):
            if tokens is not None:
                await publish(pool, tokens=tokens)
            async with pool.acquire() as connection:
                seen: list[str] = []
                connection.add_query_logger(lambda query, seen=seen: seen.append(query.query))
            await begun.write.model_call_started(a_call(begun.agent.id, number))
            await begun.write.model_call_finished(model_result(begun.agent.id, number))
            await asyncio.sleep(0)  # asyncpg tells its loggers in the next turn of the loop
            assert len(seen) == 2
