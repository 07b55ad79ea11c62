"""A worker: places, heartbeats, lost registrations, what it holds and does not run, and how it stops."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from tarsy.record.run import DesiredState, RunOutcome, State
from tarsy.runtime.run_control import RunControl
from tarsy.runtime.settings import WorkerSettings
from tarsy.runtime.worker import Worker, WorkerWakeups
from tarsy.store.errors import StoreUnavailable
from tarsy.store.runs.claims import ClaimedRun
from unit.engine.clock import in_virtual_time
from unit.runtime.fakes import FakeQueue, FakeRunner, run_id

DONE = RunOutcome(State.COMPLETED)


class House:
    """A worker over a queue, driven for some seconds of virtual time."""

    def __init__(self, *waiting: int, places: int = 20) -> None:
        self.queue = FakeQueue(list(waiting))
        self.runner = FakeRunner(self.hang)
        self.wake = WorkerWakeups()
        self.settings = WorkerSettings(places=places)
        self.task: asyncio.Task[None] | None = None

    async def hang(self, claimed: ClaimedRun, control: RunControl) -> None:
        await asyncio.Event().wait()

    def finishing_after(self, seconds: float) -> Callable[[ClaimedRun, RunControl], Awaitable[None]]:
        async def act(claimed: ClaimedRun, control: RunControl) -> None:
            await asyncio.sleep(seconds)
            await self.queue.finish(claimed.id, claimed.attempt, DONE)

        return act

    async def start(self) -> None:
        worker = Worker(self.queue, self.runner, self.settings, self.wake)  # type: ignore[arg-type]
        self.task = asyncio.create_task(worker.run())

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait([self.task])
        assert self.task.cancelled()

    def live(self, *steps: tuple[float, Callable[[], object]], seconds: float) -> None:
        """Runs the worker for `seconds`, with a step at each of the given times, then stops it."""

        async def main() -> None:
            await self.start()
            for at, step in steps:
                await asyncio.sleep(at - asyncio.get_running_loop().time())
                step()
            await asyncio.sleep(seconds - asyncio.get_running_loop().time())
            assert self.task is not None and not self.task.done()
            await self.stop()

        in_virtual_time(main())


def test_a_worker_never_has_more_runs_than_places_and_takes_the_next_when_one_ends() -> None:
    house = House(*range(10), places=3)
    house.runner.act = house.finishing_after(1)

    house.live(seconds=4.5)  # ten runs of a second, three at a time, no waiting for a poll in between

    assert house.runner.most == 3
    assert len(house.queue.ended) == 10


def test_a_wake_up_claims_at_once() -> None:
    house = House()
    seen: list[int] = []

    def accept() -> None:
        house.queue.waiting.append(1)
        house.wake.set()

    house.live((0.1, accept), (0.2, lambda: seen.append(len(house.runner.now))), seconds=1)

    assert seen == [1]


def test_a_lost_wake_up_delays_a_claim_by_one_poll() -> None:
    house = House()
    seen: list[int] = []

    house.live(
        (0.1, lambda: house.queue.waiting.append(1)),
        (1.9, lambda: seen.append(len(house.runner.now))),
        (2.1, lambda: seen.append(len(house.runner.now))),
        seconds=3,
    )

    assert seen == [0, 1]


def test_runs_of_a_dead_worker_are_claimed_as_soon_as_its_lease_ends() -> None:
    house = House()
    seen: list[int] = []
    house.queue.lapses_at = 4.5  # between two polls

    def lapse() -> None:
        house.queue.lapses_at = None
        house.queue.waiting.extend([1, 2])

    house.live(
        (4.49, lapse),
        (4.5, lambda: seen.append(len(house.runner.now))),
        (4.7, lambda: seen.append(len(house.runner.now))),
        seconds=5,
    )

    assert seen == [0, 2]


def test_runs_of_two_dead_workers_are_claimed_as_each_lease_ends() -> None:
    house = House()
    seen: list[int] = []
    house.queue.lapses_at = 4.5

    def first() -> None:
        house.queue.lapses_at = 5.1
        house.queue.waiting.append(1)

    def second() -> None:
        house.queue.lapses_at = None
        house.queue.waiting.append(2)

    house.live(
        (4.49, first),
        (4.7, lambda: seen.append(len(house.runner.now))),
        (5.09, second),
        (5.3, lambda: seen.append(len(house.runner.now))),
        seconds=5.5,
    )

    assert seen == [1, 2]


def test_wake_ups_do_not_ask_for_the_next_lapse_each_time() -> None:
    house = House()
    house.live(*[(at / 10, house.wake.set) for at in range(1, 100)], seconds=10)
    assert house.queue.lapse_reads <= 6, "one at the start and one for each poll of 2 s"


def test_a_lease_that_has_ended_and_is_not_taken_over_causes_no_storm_of_claims() -> None:
    house = House()
    house.queue.lapses_at = -1.0
    claims = 0
    original = house.queue.claim

    async def claim(*args: object, **limits: object) -> list[ClaimedRun]:
        nonlocal claims
        claims += 1
        return await original(*args, **limits)  # type: ignore[arg-type]

    house.queue.claim = claim  # type: ignore[method-assign]
    house.live(seconds=11)

    assert claims == 6, "one at the start and one for each poll of 2 s"


def test_an_error_that_leaves_a_runner_ends_nothing_else() -> None:
    house = House(1, 2)

    async def act(claimed: ClaimedRun, control: RunControl) -> None:
        if claimed.name == "inv-1":
            raise ValueError("a bug")
        await house.hang(claimed, control)

    house.runner.act = act

    house.live(seconds=30)

    assert house.runner.cancelled == ["inv-2"]  # by the stop


def test_a_run_that_is_held_but_not_run_is_handed_back() -> None:
    house = House(1)

    async def leave(claimed: ClaimedRun, control: RunControl) -> None:
        return

    house.runner.act = leave

    house.live(seconds=12)

    assert house.queue.released[0] == (run_id(1), 1)


def test_a_claim_whose_answer_was_lost_is_handed_back() -> None:
    house = House()

    def lease() -> None:
        house.queue.leases[run_id(7)] = (house.queue.workers[0], 3)

    house.live((1.0, lease), seconds=12)

    assert house.queue.released == [(run_id(7), 3)]


def test_a_run_that_another_attempt_owns_is_stopped_and_the_others_go_on() -> None:
    house = House(1, 2)
    alive: list[int] = []

    def take() -> None:
        house.queue.leases[run_id(1)] = (run_id(99), 2)

    house.live((1.0, take), (8.0, lambda: alive.append(len(house.runner.now))), seconds=9)

    assert alive == [1]
    assert house.runner.cancelled == ["inv-1", "inv-2"]
    assert house.queue.released == []


def test_a_cancelled_run_is_stopped_within_a_moment_of_its_wake_up() -> None:
    house = House(1)
    alive: list[int] = []

    def cancel() -> None:
        house.queue.desired[run_id(1)] = DesiredState.CANCELLED
        house.wake.set()

    house.live((1.0, cancel), (1.2, lambda: alive.append(len(house.runner.now))), seconds=2)

    assert alive == [0]


def test_a_wish_that_comes_while_a_heartbeat_is_answered_is_not_forgotten() -> None:
    house = House(1)
    alive: list[int] = []

    def during() -> None:
        house.queue.on_beat = None
        house.queue.desired[run_id(1)] = DesiredState.CANCELLED  # after the answer was made
        house.wake.set()

    async def slow_beat() -> None:
        await asyncio.sleep(0.5)

    original = house.queue.heartbeat

    async def heartbeat(worker: object, ttl: float, *, draining: bool) -> object:
        held = await original(worker, ttl, draining=draining)  # type: ignore[arg-type]
        await slow_beat()
        return held

    house.queue.heartbeat = heartbeat  # type: ignore[method-assign,assignment]
    house.queue.on_beat = during

    house.live((7.0, lambda: alive.append(len(house.runner.now))), seconds=8)

    assert alive == [0]


def test_concluding_reaches_the_run_without_stopping_it() -> None:
    house = House(1)
    seen: list[bool] = []

    def conclude() -> None:
        house.queue.desired[run_id(1)] = DesiredState.CONCLUDED
        house.wake.set()

    house.live((1.0, conclude), (1.2, lambda: seen.append(house.runner.now[run_id(1)].concluding)), seconds=2)

    assert seen == [True]


def test_a_worker_that_has_expired_stops_its_runs_and_registers_anew() -> None:
    house = House(1, 2)
    seen: list[tuple[int, int]] = []

    def expire() -> None:
        house.queue.gone.add(house.queue.workers[0])
        house.queue.leases.clear()
        house.queue.waiting = [1, 2]

    house.live((1.0, expire), (8.0, lambda: seen.append((len(house.runner.now), len(house.queue.workers)))), seconds=9)

    assert seen == [(2, 2)]
    assert sorted(house.runner.seen) == [("inv-1", 1), ("inv-1", 2), ("inv-2", 1), ("inv-2", 2)]
    assert house.queue.workers[0] != house.queue.workers[1]


def test_a_database_that_is_away_at_the_start_is_waited_for() -> None:
    house = House(1)
    house.queue.away = True

    house.live((10.0, lambda: setattr(house.queue, "away", False)), seconds=15)

    assert house.runner.seen == [("inv-1", 1)]


def test_a_heartbeat_that_fails_stops_no_run_and_the_next_one_renews() -> None:
    house = House(1)

    house.live(
        (4.0, lambda: setattr(house.queue, "away", True)),
        (6.0, lambda: setattr(house.queue, "away", False)),
        seconds=30,
    )

    assert house.runner.seen == [("inv-1", 1)]
    assert house.queue.beats >= 5


def test_a_claim_that_hangs_does_not_keep_the_heartbeat_from_renewing() -> None:
    house = House(1)
    beats: list[int] = []

    house.live(
        (1.0, lambda: setattr(house.queue, "claim_hangs", True)),
        (4.0, lambda: beats.append(house.queue.beats)),
        (19.0, lambda: beats.append(house.queue.beats)),  # a lease is 15 seconds
        seconds=20,
    )

    assert beats[1] > beats[0]
    assert house.runner.seen == [("inv-1", 1)]


def test_a_heartbeat_that_hangs_is_given_up_in_time_for_another_before_the_lease_ends() -> None:
    house = House(1)

    house.live(
        (4.0, lambda: setattr(house.queue, "beat_hangs", True)),
        (6.0, lambda: setattr(house.queue, "beat_hangs", False)),
        (14.9, lambda: house.runner.seen.append(("beats", house.queue.beats))),
        seconds=20,
    )

    assert house.runner.seen[-1][1] >= 2


def test_a_run_claimed_again_while_its_old_attempt_still_closes_is_kept() -> None:
    house = House(1)

    async def slow_to_close(claimed: ClaimedRun, control: RunControl) -> None:
        try:
            await house.hang(claimed, control)
        finally:
            await asyncio.sleep(3)

    house.runner.act = slow_to_close

    def take() -> None:
        house.queue.leases[run_id(1)] = (run_id(99), 2)
        house.queue.attempts[run_id(1)] = 2
        house.wake.set()

    def give_back() -> None:
        del house.queue.leases[run_id(1)]
        house.queue.waiting.append(1)
        house.wake.set()

    house.live((1.0, take), (2.0, give_back), seconds=20)

    assert house.runner.seen == [("inv-1", 1), ("inv-1", 3)]
    assert house.queue.released == []


def test_stopping_stops_every_run_and_hands_back_what_is_held() -> None:
    house = House(1, 2)

    house.live(seconds=3)

    assert sorted(house.runner.cancelled) == ["inv-1", "inv-2"]
    assert house.queue.leases == {}
    assert house.queue.gone == set(house.queue.workers)
    assert house.queue.ended == {}


def test_stopping_while_the_database_is_away_takes_no_more_than_its_time() -> None:
    house = House(1)

    async def main() -> float:
        await house.start()
        await asyncio.sleep(3)
        house.queue.away = True
        started = asyncio.get_running_loop().time()
        await house.stop()
        return asyncio.get_running_loop().time() - started

    assert in_virtual_time(main()) < 6


def test_stopping_while_it_waits_for_the_database_is_a_plain_cancellation() -> None:
    house = House()
    house.queue.away = True

    house.live(seconds=0.5)


def test_stopping_while_the_database_hangs_leaves_no_task_behind() -> None:
    house = House(1)

    async def never(worker: object) -> None:
        await asyncio.Event().wait()

    house.queue.deregister = never  # type: ignore[method-assign,assignment]

    async def main() -> int:
        await house.start()
        await asyncio.sleep(1)
        await house.stop()
        return len(asyncio.all_tasks())

    assert in_virtual_time(main()) == 1


def test_a_run_whose_record_always_refuses_is_not_tried_in_a_tight_loop() -> None:
    house = House(1)

    async def refused(claimed: ClaimedRun, control: RunControl) -> None:
        return

    house.runner.act = refused
    original = house.queue.release

    async def release(worker: object, run: object, attempt: int) -> bool:
        released = await original(worker, run, attempt)  # type: ignore[arg-type]
        house.queue.waiting.append(1)
        house.wake.set()  # as its notification would
        return released

    house.queue.release = release  # type: ignore[method-assign,assignment]

    async def main() -> None:
        await house.start()
        for _ in range(20_000):
            if asyncio.get_running_loop().time() > 20 or len(house.runner.seen) > 200:
                break
            await asyncio.sleep(0.001)
        await house.stop()

    in_virtual_time(main())
    assert len(house.runner.seen) <= 25


class Draining(House):
    """A worker whose runs are each in a step, until `ends`, and which is told to drain after 3 seconds."""

    def __init__(self, *waiting: int, ends: dict[str, float], drain_seconds: float = 20.0) -> None:
        super().__init__(*waiting)
        self.settings = WorkerSettings(drain_seconds=drain_seconds)
        self.runner.act = self.step
        self.ends = ends
        self.stopped: dict[str, float] = {}

    async def step(self, claimed: ClaimedRun, control: RunControl) -> None:
        clock = asyncio.get_running_loop().time
        try:
            if claimed.name in self.ends:
                await control.begin(claimed.id, claimed.id)
                await asyncio.sleep(self.ends[claimed.name] - clock())
                control.end(claimed.id)
            await self.hang(claimed, control)
        finally:
            self.stopped[claimed.name] = clock()

    def drain(self) -> float:
        """When it was drained; then it is cancelled, as by its process."""

        async def main() -> float:
            worker = Worker(self.queue, self.runner, self.settings, self.wake)  # type: ignore[arg-type]
            self.task = asyncio.create_task(worker.run())
            await asyncio.sleep(3)
            self.queue.waiting.append(99)
            self.wake.set()
            await worker.drain()
            drained = asyncio.get_running_loop().time()
            self.held = dict(self.queue.leases)
            await self.stop()
            return drained

        return in_virtual_time(main())


def test_draining_claims_nothing_more_and_stops_each_run_when_its_step_has_ended() -> None:
    house = Draining(1, 2, 3, ends={"inv-1": 5.0, "inv-2": 8.0})

    assert house.drain() == 8.0
    assert house.stopped == {"inv-3": 3.0, "inv-1": 5.0, "inv-2": 8.0}
    assert [name for name, _ in house.runner.seen] == ["inv-1", "inv-2", "inv-3"]
    assert house.queue.leases == {}


def test_what_has_reached_a_boundary_is_handed_back_while_others_are_waited_for() -> None:
    house = Draining(1, 2, ends={"inv-1": 4.0, "inv-2": 20.0})

    house.drain()

    assert (run_id(1), 1) in house.queue.released


def test_draining_ends_when_its_time_is_over_and_what_is_under_way_is_stopped() -> None:
    house = Draining(1, 2, ends={"inv-1": 4.0, "inv-2": 500.0}, drain_seconds=10.0)

    assert house.drain() == 13.0
    assert house.stopped == {"inv-1": 4.0, "inv-2": 13.0}
    assert list(house.held) == [run_id(2)]
    assert house.queue.leases == {}


def test_a_worker_with_nothing_to_do_is_drained_at_once() -> None:
    assert Draining(ends={}).drain() == 3.0


def test_a_run_whose_claim_was_under_way_when_draining_began_is_handed_back() -> None:
    house = Draining(ends={})
    original = house.queue.claim

    async def slow(worker: UUID, free: int, global_limit: int, **_: object) -> list[ClaimedRun]:
        if free and house.queue.waiting:
            await asyncio.sleep(1)
        return await original(worker, free, global_limit)

    house.queue.claim = slow  # type: ignore[method-assign]

    async def main() -> None:
        worker = Worker(house.queue, house.runner, house.settings, house.wake)  # type: ignore[arg-type]
        house.task = asyncio.create_task(worker.run())
        await asyncio.sleep(3)
        house.queue.waiting.append(1)
        house.wake.set()
        await asyncio.sleep(0.5)
        await worker.drain()
        await asyncio.sleep(2)
        await house.stop()

    in_virtual_time(main())
    assert house.queue.leases == {} and house.queue.ended == {}
    assert house.runner.now == {}


def test_wake_ups_of_claims_do_not_beat_and_those_of_desired_states_do() -> None:
    house = House(1)
    beats: list[int] = []

    house.live(
        (1.0, house.wake.claim.set),
        (1.1, lambda: beats.append(house.queue.beats)),
        (1.2, house.wake.beat.set),
        (1.3, lambda: beats.append(house.queue.beats)),
        seconds=2,
    )

    assert beats == [0, 1]


def test_a_claim_is_told_how_many_runs_have_ended_and_a_failed_one_does_not_count() -> None:
    house = House(1, 2)
    house.runner.act = house.finishing_after(1)
    original, told, failed = house.queue.claim, [], []

    async def claim(
        worker: UUID, free: int, global_limit: int, *, ended: int, **others: int | None
    ) -> list[ClaimedRun]:
        if ended and not failed:
            failed.append(ended)
            raise StoreUnavailable("Postgres is away")
        told.append(ended)
        return await original(worker, free, global_limit)

    house.queue.claim = claim  # type: ignore[method-assign,assignment]

    house.live(seconds=6)

    assert sum(told) == 2 and len(failed) == 1
