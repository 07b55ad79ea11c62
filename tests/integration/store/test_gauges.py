"""Tests the gauges that are read from the record: queue, runs, workers, overdue work."""

import asyncpg

from integration.store.build import new_run, worker
from tarsy.observe import metric_table as table
from tarsy.observe.metrics import Metrics
from tarsy.record.run import DesiredState, RunOutcome, State
from tarsy.store.reading.gauges import Gauges, watch_pool
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs


async def test_an_empty_record_has_nothing_waiting_and_nothing_late(pool: asyncpg.Pool) -> None:
    told = await Gauges(pool).read()
    assert {value for values in told.values() for value in values.values()} == {0}


async def test_what_waits_and_runs_is_counted_with_the_age_of_the_oldest(pool: asyncpg.Pool) -> None:
    for number in range(3):
        await Runs(pool).accept(new_run(name=f"alert-{number}"))
    await pool.execute("UPDATE investigation SET accepted_at = now() - interval '1 hour' WHERE name = 'alert-2'")
    await pool.execute("UPDATE investigation SET priority = 5 WHERE name = 'alert-1'")
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 10)
    assert claimed.name == "alert-1"

    told = await Gauges(pool).read()

    assert (told[table.QUEUED][()], told[table.RUNNING][()], told[table.WORKERS][()]) == (2, 1, 1)
    assert 3600 <= told[table.OLDEST_QUEUED][()] < 7200
    assert told[table.QUESTIONS] == {("queued",): 0, ("running",): 0}
    assert told[table.UNPUBLISHED][()] == 3 and told[table.PROJECTION_LAG][()] == 0


async def test_an_end_that_its_object_does_not_tell_is_late_until_it_does(pool: asyncpg.Pool) -> None:
    run = new_run()
    await Runs(pool).accept(run)
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 10)
    await Runs(pool).finish(run.id, claimed.attempt, RunOutcome(State.COMPLETED))
    await pool.execute("UPDATE investigation SET finished_at = now() - interval '10 minutes'")

    told = await Gauges(pool).read()
    assert told[table.RUNNING][()] == 0 and 600 <= told[table.PROJECTION_LAG][()] < 1200

    await pool.execute("UPDATE investigation SET published_revision = revision, settled = true")
    told = await Gauges(pool).read()
    assert (told[table.UNPUBLISHED][()], told[table.PROJECTION_LAG][()]) == (0, 0)


async def test_a_worker_that_is_dead_does_not_count(pool: asyncpg.Pool) -> None:
    await worker(pool)
    await pool.execute("UPDATE worker SET expires_at = now() - interval '1 second'")
    assert (await Gauges(pool).read())[table.WORKERS][()] == 0


async def test_what_begins_and_ends_without_a_worker_is_counted_once(pool: asyncpg.Pool) -> None:
    metrics = Metrics()
    runs, run = Runs(pool, metrics=metrics), new_run()
    assert await runs.accept(run) and not await runs.accept(run)
    assert await runs.set_desired_state(run.id, DesiredState.CANCELLED)
    assert not await runs.set_desired_state(run.id, DesiredState.CANCELLED)
    assert metrics.value(table.ACCEPTED, kind="investigation") == 1
    assert metrics.value(table.TERMINAL, kind="investigation", state="cancelled") == 1

    running = new_run(name="alert-2")
    await runs.accept(running)
    await Claims(pool).claim(await worker(pool), 1, 10)
    await runs.set_desired_state(running.id, DesiredState.CONCLUDED)  # its worker ends it
    assert sum(metrics.value(table.TERMINAL, kind="investigation", state=s) for s in table.ENDS.values or ()) == 1


async def test_a_plan_that_nobody_can_read_ends_its_run_and_is_counted(pool: asyncpg.Pool) -> None:
    metrics, run = Metrics(), new_run()
    await Runs(pool).accept(run)
    await pool.execute("UPDATE investigation_input SET plan = '{}'")
    assert await Claims(pool, metrics=metrics).claim(await worker(pool), 1, 10) == []
    assert metrics.value(table.TERMINAL, kind="investigation", state="failed") == 1


async def test_a_run_says_how_long_it_waited_and_says_the_same_when_it_is_claimed_again(pool: asyncpg.Pool) -> None:
    await Runs(pool).accept(new_run())
    await pool.execute("UPDATE investigation SET accepted_at = now() - interval '90 seconds'")
    first = await worker(pool)
    (claimed,) = await Claims(pool).claim(first, 1, 10)
    assert 90 <= claimed.waited_seconds < 900
    await Claims(pool).release(first, claimed.id, claimed.attempt)
    (again,) = await Claims(pool).claim(first, 1, 10)
    assert (again.attempt, again.waited_seconds) == (2, claimed.waited_seconds)


async def test_a_pool_tells_its_connections(pool: asyncpg.Pool) -> None:
    metrics = Metrics()
    watch_pool(metrics, pool, "runs")
    async with pool.acquire():
        text = (await metrics.text()).decode()
    assert 'tarsy_postgres_connections{pool="runs",state="used"} 1.0' in text
    assert 'tarsy_postgres_slow_calls_total{pool="runs"} 0.0' in text
