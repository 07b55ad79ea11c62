"""The lease as a process may believe in it, and what the world wants of a run."""

import asyncio
from uuid import UUID

import pytest

from tarsy.record.run import DesiredState, LeaseLost
from tarsy.runtime.run_control import LocalLease, RunControl
from tarsy.runtime.settings import WorkerSettings


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("elapsed", "held"), [(0.0, True), (14.9, True), (15.0, False), (1e6, False)])
def test_a_lease_lasts_as_long_as_it_was_asked_for(elapsed: float, held: bool) -> None:
    clock = Clock()
    lease = LocalLease(15.0, clock)
    clock.now += elapsed
    if held:
        lease.check()
    else:
        with pytest.raises(LeaseLost):
            lease.check()


def test_a_lease_counts_from_before_the_heartbeat_that_renewed_it() -> None:
    clock = Clock()
    lease = LocalLease(15.0, clock)
    clock.now += 5
    asked = lease.now()
    clock.now += 4  # the answer took its time
    lease.renewed(asked)
    clock.now += 10.9
    lease.check()
    clock.now += 0.2
    with pytest.raises(LeaseLost):
        lease.check()


async def stopped_by(change: str) -> RunControl:
    control = RunControl(LocalLease(15.0), DesiredState.RUNNING)

    async def work() -> None:
        await asyncio.Event().wait()

    control.task = asyncio.create_task(work())
    await asyncio.sleep(0)
    if change == "lose":
        control.lose()
    else:
        control.want(DesiredState(change))
    await asyncio.wait([control.task], timeout=0.1)
    return control


async def test_cancelling_stops_the_run_wherever_it_is() -> None:
    control = await stopped_by("Cancelled")

    assert control.task is not None and control.task.cancelled()
    assert control.cancelled and not control.concluding


async def test_concluding_lets_the_run_go_on_to_its_conclusion() -> None:
    control = await stopped_by("Concluded")

    assert control.task is not None and not control.task.done()
    assert control.concluding
    control.check()
    control.task.cancel()


def test_concluding_is_told_once_to_whoever_waits_for_it() -> None:
    control = RunControl(LocalLease(60), DesiredState.RUNNING)
    told: list[str] = []
    with control.when_concluding(lambda: told.append("gone")):
        pass
    with control.when_concluding(lambda: told.append("first")), control.when_concluding(lambda: told.append("second")):
        assert told == []
        control.want(DesiredState.CONCLUDED)
        control.want(DesiredState.CONCLUDED)
        assert told == ["first", "second"]
    with control.when_concluding(lambda: told.append("late")):
        assert told == ["first", "second", "late"], "it is told at once when that is so already"
    control.want(DesiredState.CANCELLED)
    with control.when_concluding(lambda: told.append("cancelled")):
        pass
    assert len(told) == 3


async def test_a_run_that_is_lost_is_stopped_and_may_not_act() -> None:
    control = await stopped_by("lose")

    assert control.task is not None and control.task.cancelled()
    with pytest.raises(LeaseLost):
        control.check()


@pytest.mark.parametrize(
    "bad", [{"places": 0}, {"global_limit": 0}, {"questions": -1}, {"lease_seconds": 9.9, "heartbeat_seconds": 5.0}]
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        WorkerSettings(**bad)  # type: ignore[arg-type]


class Run:
    """A run with its control, which does `steps` of an execution, one after the other, as the test lets them end."""

    def __init__(self, *steps: int) -> None:
        self.control = RunControl(LocalLease(15.0), DesiredState.RUNNING)
        self.begun: list[int] = []
        self.may_end = asyncio.Event()
        self.control.task = asyncio.create_task(self._do(steps))

    async def _do(self, steps: tuple[int, ...]) -> None:
        for step in steps:
            await self.control.begin(uuid(step), uuid(0))
            self.begun.append(step)
            await self.may_end.wait()
            self.control.end(uuid(step))

    @property
    async def stopped(self) -> bool:
        """Whether it was stopped, as far as it goes by itself."""
        assert self.control.task is not None
        await asyncio.wait([self.control.task], timeout=0.1)
        return self.control.task.cancelled()


def uuid(number: int) -> UUID:
    return UUID(int=number)


async def test_a_draining_run_is_stopped_at_once_where_no_step_is_under_way() -> None:
    run = Run()
    run.control.task = asyncio.create_task(asyncio.sleep(60))

    run.control.drain()

    assert await run.stopped


async def test_a_draining_run_ends_its_step_and_begins_no_other() -> None:
    run = Run(1, 2)
    assert not await run.stopped
    run.control.drain()
    assert not await run.stopped
    run.may_end.set()

    assert await run.stopped
    assert run.begun == [1]


async def test_a_draining_run_waits_for_all_of_its_agents() -> None:
    run = Run(1)
    await run.control.begin(uuid(7), uuid(70))  # another agent's
    assert not await run.stopped
    run.control.drain()
    run.may_end.set()
    assert not run.control.task.cancelling() if run.control.task else True
    run.control.task = asyncio.create_task(asyncio.sleep(60))
    assert not await run.stopped

    run.control.end(uuid(70))  # with its execution end all of its steps

    assert await run.stopped


async def test_the_end_of_a_run_is_written_although_its_worker_drains() -> None:
    run = Run(1)
    run.control.drain()
    assert await run.stopped
    run.control.task = asyncio.create_task(asyncio.sleep(60))

    run.control.hold(uuid(9), uuid(9))
    run.control.drain()

    assert not await run.stopped
    run.control.task.cancel()
