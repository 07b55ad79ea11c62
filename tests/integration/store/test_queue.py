"""Tests what people are told of workers and of runs that wait."""

from uuid import uuid4

import asyncpg
import pytest

from integration.store.build import claimed_run, expire, new_run, worker
from tarsy.record.reading.queue import WorkerOffer
from tarsy.record.reading.usage_report import QueueDepth
from tarsy.store.reading.queue import Queue
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs

OFFER = WorkerOffer(places=20, questions=10, global_limit=100, namespace_limit=5, version="1.2.3")


async def test_a_worker_tells_its_load_its_offer_and_that_it_drains(pool: asyncpg.Pool) -> None:
    owner = uuid4()
    await Claims(pool).register(owner, "tarsy-worker-1", 60, OFFER)
    await Runs(pool).accept(new_run())
    await Claims(pool).claim(owner, 1, 100)
    (told,) = await Queue(pool).workers(10)
    assert (told.host, told.alive, told.draining, told.runs, told.answers) == ("tarsy-worker-1", True, False, 1, 0)
    assert (told.places, told.questions, told.global_limit, told.namespace_limit) == (20, 10, 100, 5)
    assert told.version == "1.2.3" and told.beat_at is not None
    await Claims(pool).heartbeat(owner, 60, draining=True)
    (later,) = await Queue(pool).workers(10)
    assert later.draining and later.beat_at is not None and later.beat_at > told.beat_at
    await Claims(pool).register(owner, "tarsy-worker-1", 60, OFFER)
    assert not (await Queue(pool).workers(10))[0].draining


async def test_a_lost_worker_comes_last_and_an_older_release_tells_no_places(pool: asyncpg.Pool) -> None:
    lost = await worker(pool)
    alive = await worker(pool)
    await expire(pool, lost)
    told = await Queue(pool).workers(10)
    assert [(one.id, one.alive) for one in told] == [(alive, True), (lost, False)]
    assert told[0].places is None
    assert [one.id for one in await Queue(pool).workers(1)] == [alive]


async def test_runs_without_a_live_worker_wait_the_longest_first(pool: asyncpg.Pool) -> None:
    await claimed_run(pool, name="runs")
    lost, owner = await claimed_run(pool, name="lost")
    await expire(pool, owner)
    later = new_run(name="later", namespace_limit=1)
    elsewhere = new_run(namespace="team-b", name="elsewhere")
    for run in (later, elsewhere):
        await Runs(pool).accept(run)
    parked = new_run(name="parked")
    await Runs(pool).accept(parked)
    await pool.execute(
        "UPDATE investigation SET state = 'running', started_at = now(), parked_at = now() - interval '1 hour', "
        "parked_for = 'Approval', parked_note = 'A call waits.', wake_at = now() + interval '1 hour' WHERE id = $1",
        parked.id,
    )
    told = await Queue(pool).waiting(10)
    assert [one.name for one in told] == ["parked", "lost", "later", "elsewhere"]
    first, second, third, _ = told
    assert (first.parked_for, first.note, first.lost) == ("Approval", "A call waits.", False)
    assert first.until is not None and first.until > first.since
    assert (second.id, second.lost, second.parked_for) == (lost, True, None)
    assert (third.in_namespace, third.of_chain, third.namespace_limit, third.readable) == (1, 1, 1, True)
    assert await Reads(pool).queue_depth() == QueueDepth(pending=2, running=1, orphaned=1, parked=1)
    assert [one.name for one in await Queue(pool).waiting(10, ["uid-of-team-b"])] == ["elsewhere"]
    assert await Reads(pool).queue_depth(["uid-of-team-b"]) == QueueDepth(pending=1, running=0, orphaned=0)
    assert len(await Queue(pool).waiting(2)) == 2


async def test_a_run_that_was_woken_waits_for_a_worker_since_then(pool: asyncpg.Pool) -> None:
    run = new_run()
    await Runs(pool).accept(run)
    await pool.execute(
        "UPDATE investigation SET state = 'running', started_at = now(), parked_at = now() - interval '1 hour', "
        "parked_for = 'Approval', parked_note = 'A call waits.', wake_at = now() - interval '1 minute' WHERE id = $1",
        run.id,
    )
    (told,) = await Queue(pool).waiting(10)
    assert (told.parked_for, told.note, told.lost) == (None, None, False)
    assert await Reads(pool).queue_depth() == QueueDepth(pending=1, running=0, orphaned=0)


@pytest.mark.parametrize(("seconds", "note"), [(20, "Quota day is used up."), (-1, None)])
async def test_a_quota_holds_a_run_until_it_is_looked_at_again(
    pool: asyncpg.Pool, seconds: int, note: str | None
) -> None:
    run = new_run()
    await Runs(pool).accept(run)
    await pool.execute(
        "UPDATE investigation SET held_for = 'Quota day is used up.', "
        "held_until = now() + $2 * interval '1 second' WHERE id = $1",
        run.id,
        float(seconds),
    )
    (told,) = await Queue(pool).waiting(10)
    assert told.note == note
    assert not told.readable  # no worker is alive
