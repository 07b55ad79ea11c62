"""Tests that claims are exact and fair, leases expire, and another worker claims orphaned runs."""

import asyncio
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.store.build import claimed_run, expire, new_run, next_attempt, worker
from tarsy.record.reading.usage_report import QueueDepth
from tarsy.record.run import DesiredState, RunOutcome, State
from tarsy.store.errors import WorkerLost
from tarsy.store.migrate import plan_version
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import CLAIM_LOCK, ClaimedRun, Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.wakeups import QUEUE_CHANNEL

_WAITING_FOR_LOCK = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


async def _accept(pool: asyncpg.Pool, count: int, namespace: str = "team-a", **of_run: object) -> list[UUID]:
    runs = [new_run(namespace=namespace, name=f"alert-{n}", **of_run) for n in range(count)]  # type: ignore[arg-type]
    for run in runs:
        await Runs(pool).accept(run)
    return [run.id for run in runs]


async def _race(pool: asyncpg.Pool, *, claimers: int, free: int, limit: int) -> list[ClaimedRun]:
    workers = [await worker(pool) for _ in range(claimers)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(Claims(pool).claim(w, free, limit)) for w in workers]
    return [claimed for task in tasks for claimed in task.result()]


@pytest.mark.parametrize(
    "limits",
    [{"global": 3}, {"namespace_limit": 3}, {"chain_limit": 3}],
    ids=["global", "namespace", "chain"],
)
async def test_racing_claimers_take_exactly_as_many_runs_as_the_limit_allows(
    pool: asyncpg.Pool, limits: dict[str, int]
) -> None:
    of_plan = {name: value for name, value in limits.items() if name != "global"}
    await _accept(pool, 20, **of_plan)
    for _ in range(3):
        claimed = await _race(pool, claimers=8, free=2, limit=limits.get("global", 100))
        assert len(claimed) == 3
        assert len({run.id for run in claimed}) == 3
        await pool.execute("DELETE FROM lease")
        await pool.execute("UPDATE investigation SET state = 'completed' WHERE state = 'running'")


async def test_racing_claimers_never_take_one_run_twice(pool: asyncpg.Pool) -> None:
    accepted = await _accept(pool, 12)
    claimed = await _race(pool, claimers=8, free=3, limit=100)
    assert sorted(run.id for run in claimed) == sorted(accepted)
    assert {run.attempt for run in claimed} == {1}


async def test_claimed_run_carries_what_was_accepted(pool: asyncpg.Pool) -> None:
    run = new_run(seconds=600.0)
    await Runs(pool).accept(run)
    (claimed,) = await Claims(pool).claim(await worker(pool), 5, 5)
    assert claimed.plan == run.plan
    assert (claimed.alert_data, claimed.runbook, claimed.author) == (run.alert_data, run.runbook, run.author)
    assert (claimed.namespace, claimed.name, claimed.attempt) == ("team-a", "alert-1", 1)
    assert claimed.desired_state is DesiredState.RUNNING
    assert 590 < claimed.seconds_left <= 600


async def test_namespaces_take_turns_and_priority_goes_first(pool: asyncpg.Pool) -> None:
    busy = await _accept(pool, 5, "team-a")
    calm = await _accept(pool, 2, "team-b")
    (urgent,) = await _accept(pool, 1, "team-a", priority=10)
    owner = await worker(pool)
    order = [(await Claims(pool).claim(owner, 1, 100))[0].id for _ in range(5)]
    assert order == [urgent, calm[0], busy[0], calm[1], busy[1]]


async def test_many_critical_runs_of_one_namespace_do_not_starve_another(pool: asyncpg.Pool) -> None:
    """One place in all, and each run ends before the next is claimed."""
    await _accept(pool, 150, "team-a", priority=10)
    await _accept(pool, 1, "team-b")
    owner, order = await worker(pool), []
    for _ in range(4):
        (run,) = await Claims(pool).claim(owner, 1, 1)
        order.append(run.namespace)
        await Runs(pool).finish(run.id, run.attempt, RunOutcome(State.COMPLETED))
    assert order == ["team-a", "team-b", "team-a", "team-a"]


@pytest.mark.parametrize(("limit", "taken"), [(2, 2), (3, 3), (9, 4), (None, 4)])
async def test_limit_of_every_namespace_is_exact(pool: asyncpg.Pool, limit: int | None, taken: int) -> None:
    await _accept(pool, 4, "team-a")
    owner = await worker(pool)
    claimed = [await Claims(pool).claim(owner, 3, 100, namespace_limit=limit) for _ in range(2)]
    assert sum(map(len, claimed)) == taken


async def test_namespace_that_was_not_served_for_a_day_is_as_one_that_never_was(pool: asyncpg.Pool) -> None:
    await _accept(pool, 2, "team-a")
    owner = await worker(pool)
    await Claims(pool).claim(owner, 1, 100)
    await pool.execute("UPDATE namespace_turn SET claimed_at = now() - interval '2 days'")
    await _accept(pool, 1, "team-b")
    await Claims(pool).claim(owner, 1, 100)
    assert [row["namespace"] for row in await pool.fetch("SELECT namespace FROM namespace_turn")] == ["team-b"]
    await pool.execute("UPDATE namespace_turn SET claimed_at = now() - interval '2 days'")
    (again,) = await Claims(pool).claim(owner, 1, 100)
    assert again.namespace == "team-a"


async def test_limit_of_one_chain_does_not_hold_up_the_others(pool: asyncpg.Pool) -> None:
    await _accept(pool, 30, chain="slow", chain_limit=1)
    (other,) = await _accept(pool, 1, chain="quick")
    claimed = await Claims(pool).claim(await worker(pool), 5, 100)
    assert [run.plan.chain.name for run in claimed] == ["slow", "quick"]
    assert claimed[1].id == other


async def test_run_of_a_dead_worker_is_claimed_again_and_keeps_its_deadline(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    assert await Claims(pool).claim(await worker(pool), 5, 5) == []
    before = await Reads(pool).record(run)
    assert await next_attempt(pool, run, owner) == 2
    after = await Reads(pool).record(run)
    assert before is not None and after is not None
    assert (after.attempt, after.deadline, after.started_at) == (2, before.deadline, before.started_at)
    assert after.revision > before.revision


async def test_run_of_a_dead_worker_holds_no_place(pool: asyncpg.Pool) -> None:
    orphan, owner = await claimed_run(pool)
    await expire(pool, owner)
    (urgent,) = await _accept(pool, 1, priority=1)
    heir = await worker(pool)
    assert [run.id for run in await Claims(pool).claim(heir, 5, 1)] == [urgent]
    assert await Claims(pool).claim(heir, 5, 1) == []
    assert await Reads(pool).queue_depth() == QueueDepth(pending=0, running=1, orphaned=1)
    assert [run.id for run in await Claims(pool).claim(heir, 5, 2)] == [orphan]


async def test_heartbeat_keeps_leases_and_brings_desired_states(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    claims = Claims(pool)
    await Runs(pool).set_desired_state(run, DesiredState.CONCLUDED)
    assert await claims.heartbeat(owner, 60) == {run: (1, DesiredState.CONCLUDED)}
    assert await claims.heartbeat(await worker(pool), 60) == {}


async def test_paused_worker_learns_that_it_expired_even_before_anybody_took_its_runs(pool: asyncpg.Pool) -> None:
    _, owner = await claimed_run(pool)
    await expire(pool, owner)
    with pytest.raises(WorkerLost, match="register again"):
        await Claims(pool).heartbeat(owner, 60)
    with pytest.raises(WorkerLost):
        await Claims(pool).claim(owner, 1, 10)


async def test_worker_that_registers_again_does_not_get_its_old_leases_back(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    await expire(pool, owner)
    await Claims(pool).register(owner, "node-1", 60)
    assert await Claims(pool).heartbeat(owner, 60) == {}
    (claimed,) = await Claims(pool).claim(owner, 1, 10)
    assert (claimed.id, claimed.attempt) == (run, 2)


async def test_unknown_worker_cannot_claim(pool: asyncpg.Pool) -> None:
    await _accept(pool, 1)
    with pytest.raises(WorkerLost):
        await Claims(pool).claim(uuid4(), 1, 10)


async def test_a_worker_that_expired_learns_it_though_nothing_waits(pool: asyncpg.Pool) -> None:
    owner = await worker(pool)
    assert await Claims(pool).claim(owner, 1, 10) == []
    await expire(pool, owner)
    with pytest.raises(WorkerLost):
        await Claims(pool).claim(owner, 1, 10)


async def test_a_claim_waits_for_the_lock_of_claims_only_where_a_run_waits(pool: asyncpg.Pool) -> None:
    await claimed_run(pool)
    claims, other = Claims(pool), await worker(pool)
    async with pool.acquire() as holder, holder.transaction():
        await holder.execute("SELECT pg_advisory_xact_lock($1)", CLAIM_LOCK)
        async with asyncio.timeout(10):
            assert await claims.claim(other, 1, 10) == []
        (run,) = await _accept(pool, 1, namespace="team-b")
        claiming = asyncio.create_task(claims.claim(other, 1, 10))
        async with asyncio.timeout(10):
            while not await pool.fetchval(_WAITING_FOR_LOCK):  # noqa: ASYNC110 - another session
                await asyncio.sleep(0.01)
        assert not claiming.done()
    assert [claimed.id for claimed in await claiming] == [run]


async def test_released_run_is_claimable_at_once(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    told: list[str] = []
    claims = Claims(pool, lambda channel, _: told.append(channel))
    assert not await claims.release(owner, run, 7)
    assert await claims.release(owner, run, 1)
    assert told == ["tarsy_queue"]
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 10)
    assert (claimed.id, claimed.attempt) == (run, 2)


async def test_worker_that_leaves_gives_all_its_runs_back(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    await Claims(pool).deregister(owner)
    assert await Reads(pool).queue_depth() == QueueDepth(pending=0, running=0, orphaned=1)
    assert [claimed.id for claimed in await Claims(pool).claim(await worker(pool), 1, 10)] == [run]


async def test_run_past_its_deadline_is_left_to_the_sweep(pool: asyncpg.Pool) -> None:
    run, owner = await claimed_run(pool)
    await expire(pool, owner)
    await pool.execute("UPDATE investigation SET deadline = now() - interval '1 second' WHERE id = $1", run)
    assert await Claims(pool).claim(await worker(pool), 1, 10) == []


async def test_run_with_a_plan_of_another_version_fails_and_says_so(pool: asyncpg.Pool) -> None:
    (bad,) = await _accept(pool, 1)
    (good,) = await _accept(pool, 1)
    await pool.execute("""UPDATE investigation_input SET plan = '{"version": 9}' WHERE investigation = $1""", bad)
    assert [run.id for run in await Claims(pool).claim(await worker(pool), 5, 10)] == [good]
    record = await Reads(pool).record(bad)
    assert record is not None and record.outcome is not None and record.outcome.failure is not None
    assert (record.state, record.outcome.failure.reason) == (State.FAILED, "PlanUnreadable")


async def test_a_run_is_left_to_workers_that_know_its_plan_until_none_has_come_for_long(pool: asyncpg.Pool) -> None:
    (run,) = await _accept(pool, 1)
    older = Claims(pool, knows=plan_version() - 1)
    holder = uuid4()
    await older.register(holder, "node-1", 60.0)
    assert await older.claim(holder, 1, 10) == []
    await pool.execute("UPDATE investigation SET accepted_at = now() - interval '601 seconds'")
    newer = await worker(pool)
    assert await older.claim(holder, 1, 10) == []
    await Claims(pool).deregister(newer)
    assert [claimed.id for claimed in await older.claim(holder, 1, 10)] == [run]


async def test_a_run_is_claimed_by_a_worker_that_knows_no_migration_without_change_of_plans(pool: asyncpg.Pool) -> None:
    (run,) = await _accept(pool, 1)
    older = Claims(pool, knows=plan_version())  # the last migration that changed plans; others may follow
    holder = uuid4()
    await older.register(holder, "node-1", 60.0)
    assert [claimed.id for claimed in await older.claim(holder, 1, 10)] == [run]


async def test_a_run_of_an_older_plan_is_claimed_by_a_newer_worker(pool: asyncpg.Pool) -> None:
    (run,) = await _accept(pool, 1)
    await pool.execute("UPDATE investigation SET reader = 4")
    assert [claimed.id for claimed in await Claims(pool).claim(await worker(pool), 1, 10)] == [run]


async def test_the_next_lapse_is_that_of_another_worker_that_holds_runs(pool: asyncpg.Pool) -> None:
    claims, me, other = Claims(pool), await worker(pool), uuid4()
    assert await claims.seconds_to_next_lapse(me) is None
    await claims.register(other, "other", 10.0)
    assert await claims.seconds_to_next_lapse(me) is None, "it holds no run"

    await _accept(pool, 2)
    await claims.claim(other, 1, 100)
    await claims.claim(me, 1, 100)
    seconds = await claims.seconds_to_next_lapse(me)
    assert seconds is not None and 0 < seconds <= 10.0

    await expire(pool, other)
    seconds = await claims.seconds_to_next_lapse(me)
    assert seconds is not None and seconds <= 0
    assert len(await claims.claim(me, 1, 100)) == 1
    assert await claims.seconds_to_next_lapse(me) is None


@pytest.mark.parametrize(
    ("waiting", "free", "ended", "told"),
    [
        (0, 5, 3, []),  # nothing waits
        (3, 5, 3, []),  # all that waited is taken
        (5, 2, 2, []),  # each place is taken again; what waits is beyond the limits
        (5, 2, 0, []),
        (5, 1, 2, ["claimable"]),
        (5, 0, 1, ["claimable"]),  # a worker that drains
    ],
)
async def test_places_that_a_worker_leaves_are_told_to_others(
    pool: asyncpg.Pool, waiting: int, free: int, ended: int, told: list[str]
) -> None:
    await _accept(pool, waiting)
    heard: list[str] = []
    claims = Claims(pool, lambda channel, payload: heard.append(payload) if channel == QUEUE_CHANNEL else None)
    await claims.claim(await worker(pool), free, 10, ended=ended)
    assert heard == told


async def test_a_place_that_no_limit_lets_a_worker_take_is_told_to_others(pool: asyncpg.Pool) -> None:
    await _accept(pool, 1)
    heard: list[str] = []
    claims = Claims(pool, lambda channel, payload: heard.append(channel))
    assert await claims.claim(await worker(pool), 1, 0, ended=1) == []
    assert heard == [QUEUE_CHANNEL]
