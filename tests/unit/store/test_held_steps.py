"""Steps that ended are held for the next one of their execution: for how long, in what order, and what errors do."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from tarsy.record.run import LeaseLost
from tarsy.store.errors import StoreError, StoreUnavailable
from tarsy.store.runs.held_steps import HOLD_SECONDS, LAST_SECONDS, HeldSteps
from tarsy.store.runs.steps import Step
from unit.engine.clock import in_virtual_time

A, B = uuid4(), uuid4()
OUT = "tool_call_started"


def step(query: str, of: UUID | None = A) -> Step:
    return Step(query, query, {}, (), of)


class Store:
    """Keeps what is written, with the time; a write takes `seconds` and may be refused."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.writes: list[str] = []
        self.begun: list[tuple[float, str, float | None]] = []
        self.error: Exception | None = None
        self._seconds = seconds
        self.steps = HeldSteps(self._write)

    async def _write(self, one: Step, limit: float | None) -> Any:
        self.begun.append((round(asyncio.get_running_loop().time(), 6), one.query, limit))
        await asyncio.sleep(self._seconds)
        if self.error is not None:
            raise self.error
        self.writes.append(one.query)


@pytest.mark.parametrize("ended", ["model_call_finished", "tool_call_finished"])
@pytest.mark.parametrize("begun", ["model_call_started", "tool_call_started"])
def test_the_end_of_a_call_and_the_beginning_of_the_next_are_one_write(ended: str, begun: str) -> None:
    store = Store()

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step(ended))
            await store.steps.write(step(begun))

    in_virtual_time(main())
    assert store.writes == [f"{ended}__{begun}"]


@pytest.mark.parametrize("other", ["write_events", "tool_call_answered", "finish_execution"])
def test_any_other_step_comes_after_the_one_that_is_held(other: str) -> None:
    store = Store()

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished"))
            await store.steps.write(step(other))

    in_virtual_time(main())
    assert store.writes == ["model_call_finished", other]


def test_a_step_of_the_run_comes_after_all_that_is_held_and_one_of_an_execution_after_its_own() -> None:
    store = Store()

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished", A))
            await store.steps.hold(step("tool_call_finished", B))
            await store.steps.write(step("write_events", B))
            assert store.writes == ["tool_call_finished", "write_events"]
            await store.steps.hold(step("tool_call_finished", B))
            await store.steps.write(step("finish_stage", None))

    in_virtual_time(main())
    assert sorted(store.writes[2:4]) == ["model_call_finished", "tool_call_finished"]
    assert store.writes[4:] == ["finish_stage"]


def test_who_reads_results_has_a_held_result_written_and_no_held_answer() -> None:
    store = Store()

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished", A))
            await store.steps.hold(step("tool_call_finished", B))
            await store.steps.write_result(A)
            assert store.writes == []
            await store.steps.write_result(B)
            assert store.writes == ["tool_call_finished"]

    in_virtual_time(main())


def test_a_step_is_held_while_its_agent_reads_and_no_longer_than_that() -> None:
    store = Store()

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished"))
            await store.steps.hold(step("model_call_finished", B))
            with store.steps.reading(A):
                await asyncio.sleep(20 * HOLD_SECONDS)
                assert store.writes == ["model_call_finished"]
            await asyncio.sleep(2 * HOLD_SECONDS)
            assert store.writes == ["model_call_finished", "model_call_finished"]

    in_virtual_time(main())


def test_what_is_held_while_its_agent_reads_is_one_write_with_the_next_step() -> None:
    store = Store()

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished"))
            with store.steps.reading(A):
                await asyncio.sleep(20 * HOLD_SECONDS)
            await store.steps.write(step(OUT))

    in_virtual_time(main())
    assert store.writes == [f"model_call_finished__{OUT}"]


def test_of_two_ends_the_first_is_written_when_the_second_comes() -> None:
    store = Store()

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("tool_call_finished"))
            await store.steps.hold(step("tool_call_finished"))
            assert store.writes == ["tool_call_finished"]

    in_virtual_time(main())
    assert store.writes == ["tool_call_finished"] * 2


@pytest.mark.parametrize(
    ("after", "writes"),
    [
        (HOLD_SECONDS - 0.001, [f"model_call_finished__{OUT}"]),
        (HOLD_SECONDS + 0.001, ["model_call_finished", OUT]),
    ],
    ids=["below", "above"],
)
def test_a_step_is_held_for_its_time(after: float, writes: list[str]) -> None:
    store = Store()

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished"))
            await asyncio.sleep(after)
            await store.steps.write(step(OUT))

    in_virtual_time(main())
    assert store.writes == writes


def test_a_step_without_a_next_one_is_written_when_its_time_is_up() -> None:
    store = Store()

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished"))
            await asyncio.sleep(60)
            assert store.begun == [(pytest.approx(HOLD_SECONDS), "model_call_finished", None)]

    in_virtual_time(main())
    assert len(store.writes) == 1


def test_the_next_step_waits_for_one_that_is_being_written() -> None:
    store = Store(seconds=1.0)

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished"))
            await asyncio.sleep(0.5)
            await store.steps.write(step(OUT))

    in_virtual_time(main())
    begun = [(time, query) for time, query, _ in store.begun]
    assert begun == [(pytest.approx(0.05), "model_call_finished"), (pytest.approx(1.05), OUT)]


def test_calls_side_by_side_begin_when_the_answer_that_asks_for_them_is_written() -> None:
    store = Store(seconds=1.0)

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished"))
            async with asyncio.TaskGroup() as group:
                for _ in range(3):
                    group.create_task(store.steps.write(step(OUT)))

    in_virtual_time(main())
    begun = [(time, query) for time, query, _ in store.begun]
    assert begun == [(0.0, f"model_call_finished__{OUT}"), (1.0, OUT), (2.0, OUT)]


def test_outside_of_the_block_nothing_is_held() -> None:
    store = Store()

    async def main() -> None:
        await store.steps.hold(step("model_call_finished"))
        assert store.writes == ["model_call_finished"]
        async with store.steps.opened():
            await store.steps.hold(step("tool_call_finished"))
            assert len(store.writes) == 1
        assert len(store.writes) == 2
        await store.steps.hold(step("model_call_finished"))
        assert len(store.writes) == 3

    in_virtual_time(main())


@pytest.mark.parametrize("error", [LeaseLost("gone"), StoreError("refused")])
def test_an_error_of_a_late_write_stops_the_block_and_is_raised_by_it(error: Exception) -> None:
    store = Store()
    store.error = error

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished"))
            await asyncio.sleep(3600)
            raise AssertionError("goes on without its record")

    with pytest.raises(ExceptionGroup) as raised:
        in_virtual_time(main())
    assert raised.value.subgroup(type(error)) is not None
    assert store.writes == []


def test_an_error_is_raised_by_the_step_that_comes_next() -> None:
    store = Store()
    store.error = LeaseLost("gone")

    async def main() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished"))
            with pytest.raises(LeaseLost):
                await store.steps.write(step(OUT))
            store.error = None

    in_virtual_time(main())
    assert store.writes == [f"model_call_finished__{OUT}"], "what may have been written is written whole"


def stopped(store: Store, first: Callable[[], Any] | None = None) -> None:
    """A block with a held step is cancelled."""

    async def block() -> None:
        async with store.steps.opened():
            await store.steps.hold(step("model_call_finished"))
            if first is not None:
                await first()
            await asyncio.sleep(3600)

    async def main() -> None:
        running = asyncio.create_task(block())
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    in_virtual_time(main())


def test_a_block_that_is_cancelled_writes_what_it_holds_within_its_last_seconds() -> None:
    store = Store()
    stopped(store)
    assert store.writes == ["model_call_finished"]
    assert [limit for *_, limit in store.begun] == [LAST_SECONDS]


def test_a_write_that_is_cut_is_made_again_as_a_whole() -> None:
    store = Store(seconds=1.0)
    stopped(store, lambda: store.steps.write(step(OUT)))
    assert [query for _, query, _ in store.begun] == [f"model_call_finished__{OUT}"] * 2
    assert store.writes == [f"model_call_finished__{OUT}"]


@pytest.mark.parametrize("error", [LeaseLost("gone"), StoreUnavailable("away")])
def test_a_block_that_is_cancelled_stays_cancelled_when_its_last_step_cannot_be_written(error: Exception) -> None:
    store = Store()
    store.error = error
    stopped(store)
    assert store.writes == []
