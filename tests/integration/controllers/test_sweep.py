"""Tests the sweep: the active controller ends and counts runs that no worker will end."""

from uuid import UUID

import pytest

from integration.controllers.desk import Desk
from tarsy.observe.metric_table import SWEPT, TERMINAL
from tarsy.observe.metrics import Metrics
from tarsy.record.run import LeaseLost, RunOutcome, State


async def test_a_run_without_a_worker_and_without_time_ends_and_is_counted(desk: Desk) -> None:
    await desk.configure()
    metrics = Metrics()
    async with desk.controller(metrics=metrics):
        made = await desk.put("Investigation", "mine", {"alert": {"alertType": "PodCrash", "data": "x"}})
        await desk.reason("Investigation", "mine", "Accepted", "True", "Planned")
        claimed = await desk.claim()
        await desk.pool.execute("UPDATE worker SET expires_at = now() - interval '1 second'")
        await desk.pool.execute("UPDATE investigation SET deadline = now() - interval '1 hour'")

        await desk.reason("Investigation", "mine", "Finished", "True", "DeadlineExceeded")

    assert metrics.value(SWEPT) == 1
    assert metrics.value(TERMINAL, kind="investigation", state="timed_out") == 1
    record = await desk.reads.record(UUID(made["metadata"]["uid"]))
    assert record is not None and record.state is State.TIMED_OUT
    with pytest.raises(LeaseLost):
        await desk.runs.finish(record.id, claimed.attempt, RunOutcome(State.COMPLETED))
