"""Every way a claimed run can end, and what is written then."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from tarsy.engine.investigation import InvestigationRun
from tarsy.engine.run_context import RunContext
from tarsy.plan.model import CustomMask, MaskingPlan
from tarsy.record.run import DesiredState, LeaseLost, RunOutcome, State
from tarsy.runtime import run as run_module
from tarsy.runtime.run import Runner, RunnerOptions
from tarsy.runtime.run_control import LocalLease, RunControl
from tarsy.store.errors import StoreError, StoreUnavailable
from unit.engine.build import FakeToolboxes, ScriptedModels, until
from unit.engine.clock import in_virtual_time
from unit.engine.memory import MemoryRecorder, Record
from unit.runtime.fakes import FakeQueue, run_id
from wire.scripted_client import Answer

Engine = Callable[[InvestigationRun, RunContext], Awaitable[RunOutcome]]
DONE = RunOutcome(State.COMPLETED, final_analysis="done")


async def hang() -> RunOutcome:
    await asyncio.Event().wait()
    return DONE


class Stage:
    """A runner with an engine of the test's own, and the control of its one run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, engine: Engine | None = None) -> None:
        self.queue = FakeQueue()
        self.models = ScriptedModels({})
        self.record = Record()
        self.change: dict[str, object] = {}
        self.control = RunControl(LocalLease(1e9), DesiredState.RUNNING)
        if engine is not None:
            monkeypatch.setattr(run_module, "investigate", engine)
        monkeypatch.setattr(run_module, "RunWriter", lambda *_, **__: MemoryRecorder(self.record))

    async def run(self, *, seconds: float = 600.0) -> RunOutcome | None:
        """What was written at the end."""
        loop = asyncio.get_running_loop()
        self.queue.seconds_left = seconds
        runner = Runner(
            None,
            self.queue,  # type: ignore[arg-type]
            self.models,
            FakeToolboxes(),
            lambda *_: None,
            RunnerOptions(clock=loop.time),
        )
        claimed = self.queue.claimed(1)
        claimed = replace(claimed, plan=claimed.plan.model_copy(update=self.change))
        await runner.run(claimed, self.control)
        return self.queue.ended.get(run_id(1))

    async def during(self, change: Callable[[], None], *, seconds: float = 600.0) -> RunOutcome | None:
        """The same, with `change` after 10 seconds."""
        self.control.task = task = asyncio.ensure_future(self.run(seconds=seconds))  # type: ignore[assignment]
        asyncio.get_running_loop().call_later(10, change)
        return await task


def raising(error: BaseException) -> Engine:
    async def engine(_: InvestigationRun, __: RunContext) -> RunOutcome:
        raise error

    return engine


async def hanging(_: InvestigationRun, __: RunContext) -> RunOutcome:
    return await hang()


def test_the_engine_runs_and_its_outcome_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch)
    s.models = ScriptedModels({"triage": [Answer("it broke")]})

    outcome = in_virtual_time(s.run())

    assert outcome is not None and outcome.final_analysis == "it broke"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (None, "badge 123, password: [MASKED_PASSWORD]"),
        (MaskingPlan(enabled=False), "badge 123, password: hunter2-and-more"),
        (
            MaskingPlan(groups=(), patterns=(), custom=(CustomMask(name="b", pattern="[0-9]{3}", replacement="[B]"),)),
            "badge [B], password: hunter2-and-more",
        ),
        (MaskingPlan(groups=("nosuch",)), "badge 123, password: [MASKED_PASSWORD]"),
    ],
    ids=["by default", "off", "own", "unusable"],
)
def test_what_models_say_is_masked_as_the_plan_says(
    monkeypatch: pytest.MonkeyPatch, setting: MaskingPlan | None, told: str
) -> None:
    s = Stage(monkeypatch)
    s.models = ScriptedModels({"triage": [Answer("badge 123, password: hunter2-and-more")]})
    s.change = {"model_output_masking": setting}

    outcome = in_virtual_time(s.run())

    assert outcome is not None and outcome.final_analysis == told


def test_the_deadline_ends_the_run_as_timed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = in_virtual_time(Stage(monkeypatch, hanging).run(seconds=30))

    assert outcome is not None and outcome.state is State.TIMED_OUT
    assert outcome.failure is not None and "600 s" in outcome.failure.message


@pytest.mark.parametrize("seconds", [0.0, -5.0])
def test_a_run_claimed_at_its_deadline_ends_at_once(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    outcome = in_virtual_time(Stage(monkeypatch, hanging).run(seconds=seconds))

    assert outcome is not None and outcome.state is State.TIMED_OUT


def test_the_deadline_reaches_agents_that_wait_for_their_models(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch)
    s.models = ScriptedModels(lambda request: Answer("x", wait=asyncio.Event()))

    outcome = in_virtual_time(s.run(seconds=30))

    assert outcome is not None and outcome.state is State.TIMED_OUT
    assert all(client.closed for client in s.models.clients)


def test_a_cancelled_run_is_written_as_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, hanging)

    outcome = in_virtual_time(s.during(lambda: s.control.want(DesiredState.CANCELLED)))

    assert outcome is not None and outcome.state is State.CANCELLED


def test_a_run_cancelled_before_it_was_claimed_never_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, raising(AssertionError("must not run")))
    s.control.desired = DesiredState.CANCELLED

    outcome = in_virtual_time(s.run())

    assert outcome is not None and outcome.state is State.CANCELLED


def test_cancelled_at_the_moment_of_the_deadline_ends_once(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, hanging)

    outcome = in_virtual_time(s.during(lambda: s.control.want(DesiredState.CANCELLED), seconds=10))

    assert outcome is not None and outcome.state in (State.CANCELLED, State.TIMED_OUT)


def test_a_run_lost_to_another_attempt_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, hanging)

    assert in_virtual_time(s.during(s.control.lose)) is None


@pytest.mark.parametrize(
    "error",
    [
        LeaseLost("x"),
        StoreUnavailable("x"),
        StoreError("x"),
        BaseExceptionGroup("agents", [ValueError("a bug"), BaseExceptionGroup("tasks", [LeaseLost("x")])]),
        ExceptionGroup("agents", [ExceptionGroup("tasks", [StoreUnavailable("x")])]),
        ExceptionGroup("agents", [StoreError("x"), LeaseLost("x")]),
    ],
    ids=repr,
)
def test_what_the_record_refuses_leaves_the_run_for_another_attempt(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    assert in_virtual_time(Stage(monkeypatch, raising(error)).run()) is None


@pytest.mark.parametrize("error", [KeyError("sk-secret"), ExceptionGroup("agents", [KeyError("sk-secret")])], ids=repr)
def test_an_error_of_our_own_fails_the_run_with_its_class_and_no_text(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    outcome = in_virtual_time(Stage(monkeypatch, raising(error)).run())

    assert outcome is not None and outcome.failure is not None
    assert outcome.failure.reason == "InternalError"
    assert "KeyError" in outcome.failure.message and "secret" not in outcome.failure.message


def test_an_error_of_our_own_in_an_agent_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task group counts the cancellation with which it stops its own body; the run must not take it for a stop."""

    async def engine(_: InvestigationRun, __: RunContext) -> RunOutcome:
        async def child() -> None:
            await asyncio.sleep(1)
            raise KeyError("secret")

        async with asyncio.TaskGroup() as group:
            group.create_task(child())
        return DONE

    outcome = in_virtual_time(Stage(monkeypatch, engine).run())
    assert outcome is not None and outcome.failure is not None
    assert outcome.failure.reason == "InternalError"


def test_a_worker_that_stops_leaves_the_run_and_the_cancellation_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch, hanging)

    async def main() -> None:
        task = asyncio.create_task(s.run())
        await asyncio.sleep(10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    in_virtual_time(main())
    assert s.queue.ended == {}


def test_a_worker_that_stops_at_the_moment_an_agent_fails_leaves_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task group swallows the cancellation when a child fails with an error of its own while it is stopped."""

    async def engine(_: InvestigationRun, __: RunContext) -> RunOutcome:
        async def child() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise RuntimeError("a library that answers a cancellation with an error") from None

        async with asyncio.TaskGroup() as group:
            group.create_task(child())
        return DONE

    s = Stage(monkeypatch, engine)

    async def main() -> None:
        task = asyncio.create_task(s.run())
        await asyncio.sleep(10)
        task.cancel()
        await asyncio.wait([task])

    in_virtual_time(main())
    assert s.queue.ended == {}


def test_a_run_cancelled_at_the_moment_an_agent_fails_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def engine(_: InvestigationRun, __: RunContext) -> RunOutcome:
        async def child() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise RuntimeError("a library that answers a cancellation with an error") from None

        async with asyncio.TaskGroup() as group:
            group.create_task(child())
        return DONE

    s = Stage(monkeypatch, engine)

    outcome = in_virtual_time(s.during(lambda: s.control.want(DesiredState.CANCELLED)))

    assert outcome is not None and outcome.state is State.CANCELLED


async def test_nothing_of_a_lost_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Stage(monkeypatch)
    s.models = ScriptedModels(lambda request: Answer("x", wait=asyncio.Event()))
    s.control.task = task = asyncio.ensure_future(s.run())  # type: ignore[assignment]
    await until(lambda: s.models.requests)

    s.control.lose()
    await task

    assert s.queue.ended == {}
    assert all(client.closed for client in s.models.clients)
    assert all(row.outcome is None for row in s.record.executions.values())
