"""Runs one claimed run: binds the engine's ports, keeps the deadline, and writes the outcome.

| what happens | what is written |
|---|---|
| the engine returns | its outcome |
| the deadline passes | timed out |
| the owner cancels | cancelled |
| the engine waits | parked: the lease is given back; a decision, or the end of the wait, lets it go on elsewhere |
| the lease is lost | nothing: another attempt owns the run |
| the worker stops | nothing: the run is handed back, at its next boundary where there is time, and goes on elsewhere |
| the record cannot be written | nothing: the run is handed back and tried again until its deadline |
| an error of this program | failed, with the error's class; the traceback is in the log |
"""

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg

from tarsy.engine.chat import ChatRun, answer_question
from tarsy.engine.investigation import InvestigationRun, investigate
from tarsy.engine.ports import Approvals, Live, Models, Recorder, Toolboxes
from tarsy.engine.run_context import NoApprovals, NoFollowers, NoObjects, RunContext, hand_on_nothing
from tarsy.masking import InvalidPattern, Maskers, Setting, usable
from tarsy.observe.metric_table import LEASES_LOST, LEFT
from tarsy.observe.metrics import Metrics
from tarsy.observe.tracing import RunTrace, Tracing
from tarsy.plan.model import MaskingPlan, Plan
from tarsy.record.ids import event_id
from tarsy.record.run import Failure, LeaseLost, RunOutcome, State
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.waiting import RunWaits, WaitingLimits, WaitingRoom
from tarsy.runtime.draining_observer import DrainingObserver
from tarsy.runtime.handed_on import HandedOnToolboxes
from tarsy.runtime.masked_stream import MaskedStream
from tarsy.runtime.object_reader import ClusterObjects
from tarsy.runtime.observed_recorder import observed
from tarsy.runtime.rate_limiter import RateLimiters, RunModels, SharedModels
from tarsy.runtime.replay import BoundReplay, ReplayUnreadable, bind_replay, reported
from tarsy.runtime.run_control import RunControl
from tarsy.runtime.run_metrics import RunMeter
from tarsy.runtime.service_account_tokens import ActingToolboxes
from tarsy.runtime.tracing_observer import TracingObserver, begin_trace, end_trace
from tarsy.runtime.workloads import RunToolboxes
from tarsy.store.errors import StoreError
from tarsy.store.judging.replays import Replays
from tarsy.store.questions import Questions
from tarsy.store.runs.claims import ClaimedRun
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.parking import ParkingLimits
from tarsy.store.runs.wakeups import NotifyFunction
from tarsy.store.runs.writer import RunWriter
from tarsy.stream.deltas import Deltas

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """The optional parts of a runner.

    Args:
        grace_seconds: time after the deadline in which the end of a run can still be written while Postgres is away.
        rate_limiters: apply the limits of providers; None: there are none.
        deltas: receives the output of models as it streams; None: nothing does.
        metrics: of the process; None: not exported.
        tracing: makes traces of the runs; None: there are none.
        objects: reads the cluster for stages of kind Changes; None: nothing does.
        approvals: asks people about the tool calls of a run; None: nobody can be asked.
        waiting: limits of what one run may wait for.
        parking: limits of parked runs.
        clock: monotonic, in seconds.
    """

    grace_seconds: float = 300.0
    rate_limiters: RateLimiters | None = None
    deltas: Deltas | None = None
    metrics: Metrics | None = None
    tracing: Tracing | None = None
    objects: ClusterObjects | None = None
    approvals: Callable[[ClaimedRun], Approvals] | None = None
    waiting: WaitingLimits = field(default_factory=WaitingLimits)
    parking: ParkingLimits = field(default_factory=ParkingLimits)
    clock: Callable[[], float] = time.monotonic


class Runner:
    """Runs claimed investigations.

    Args:
        pool: for the writers of runs.
        runs: ends runs.
        models: clients of this process for the providers of all runs.
        toolboxes: opens tool servers.
        notify: sends a wake-up for each change, after its commit.
        options: the optional parts.
    """

    def __init__(
        self,
        pool: asyncpg.Pool,
        runs: Runs,
        models: SharedModels,
        toolboxes: Toolboxes,
        notify: NotifyFunction,
        options: RunnerOptions = RunnerOptions(),
    ) -> None:
        self._pool = pool
        self._runs = runs
        self._questions = Questions(pool)
        self._models = models
        self._toolboxes = toolboxes
        self._notify = notify
        self._grace = options.grace_seconds
        self._rate_limiters = options.rate_limiters
        self._deltas = options.deltas
        self._metrics = options.metrics or Metrics()
        self._tracing = options.tracing
        self._cluster = options.objects
        self._approvals = options.approvals
        self._waiting = options.waiting
        self._parking = options.parking
        self._clock = options.clock
        self._maskers = Maskers()

    async def run(self, claimed: ClaimedRun, control: RunControl) -> None:
        """Runs to an end and writes it, or leaves the run for another attempt; the worker hands back what it left."""
        deadline = self._clock() + max(0.0, claimed.seconds_left)
        trace, ended = begin_trace(self._tracing, claimed), None
        try:
            meter = RunMeter(self._metrics, claimed.plan, question=claimed.parent is not None)
            outcome = await self._outcome(claimed, control, deadline, trace, meter)
            if outcome is not None:
                control.hold(claimed.id, claimed.id)
                outcome = await reported(outcome, claimed, Replays(self._pool))
                await self._finish(claimed, outcome)
                ended = outcome
                meter.ended(outcome, claimed.plan.limits.investigation_seconds - (deadline - self._clock()))
        except LeaseLost as lost:
            self._metrics.add(LEASES_LOST)
            _log.warning("run of %s/%s stopped: its lease was lost: %s", claimed.namespace, claimed.name, lost)
        except StoreError as error:
            self._metrics.add(LEFT)
            _log.warning("run of %s/%s stopped, to be resumed: %s", claimed.namespace, claimed.name, error)
        finally:
            end_trace(trace, ended)

    async def _outcome(
        self, claimed: ClaimedRun, control: RunControl, deadline: float, trace: RunTrace | None, meter: RunMeter
    ) -> RunOutcome | None:
        """Returns the outcome of the run; None if this attempt must not write it."""
        if control.cancelled:
            return _cancelled(claimed)
        try:
            async with asyncio.timeout(deadline - self._clock()) as limit:
                return await self._investigate(claimed, control, deadline, trace, meter)
        except ReplayUnreadable as error:
            return RunOutcome(state=State.FAILED, failure=Failure("ReplayUnreadable", str(error)), cut=True)
        except TimeoutError:
            if not limit.expired():
                raise
            return _timed_out(claimed)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not (control.lost or control.cancelled):
                raise
            task.uncancel()
            return None if control.lost else _cancelled(claimed)

    async def _investigate(
        self, claimed: ClaimedRun, control: RunControl, deadline: float, trace: RunTrace | None, meter: RunMeter
    ) -> RunOutcome | None:
        def remaining() -> float:
            return deadline - self._clock()

        alone = claimed.attempt == 1 and claimed.parent is None
        writer = RunWriter(
            self._pool, claimed.id, claimed.attempt, remaining=remaining, notify=self._notify, alone=alone
        )
        if claimed.parked_for is not None:
            await writer.write_events([_woken(claimed)])
        models: Models = self._models
        if self._rate_limiters is not None:
            models = RunModels(self._models, self._rate_limiters.of(claimed.id, claimed.attempt, remaining))
        toolboxes = self._of_run(claimed)
        masking = self._masking(claimed.plan)
        replay = await self._replay(claimed, toolboxes)
        with self._live(claimed.id, masking) as live:
            steps: Recorder = writer if replay is None else replay.recorder(writer)
            recorder = observed(steps, (DrainingObserver(control), meter, TracingObserver(claimed.plan, trace)))
            mask = self._metrics.watched(self._maskers.of(masking), "model_output")
            objects = NoObjects() if self._cluster is None else self._cluster.of_run(claimed.id, claimed.namespace)
            world = RunContext(
                recorder,
                models,
                toolboxes,
                control,
                mask=mask,
                live=live,
                objects=objects,
                approvals=NoApprovals() if self._approvals is None else self._approvals(claimed),
                waiting=WaitingRoom(self._waiting),
                hand_on=HandedOnToolboxes,
            )
            if replay is None:
                return await self._until_it_waits(claimed, world, writer, remaining)
            # The record has the answers of second attempts, too.
            world = dataclasses.replace(
                world, toolboxes=replay.toolboxes, known_changes=replay.known_changes, hand_on=hand_on_nothing
            )
            outcome = await self._until_it_waits(claimed, world, writer, remaining)
            return None if outcome is None else await replay.concluded(outcome)

    async def _until_it_waits(
        self, claimed: ClaimedRun, world: RunContext, writer: RunWriter, remaining: Callable[[], float]
    ) -> RunOutcome | None:
        """Returns the outcome, or None of a run that was parked; one that has no place to wait goes on without."""
        while True:
            try:
                return await self._in_world(claimed, world, writer)
            except RunWaits as waits:
                wait = waits.wait
            world.control.check()
            full = await self._runs.park(claimed.id, claimed.attempt, wait, self._parking, remaining=remaining)
            if full is None:
                _log.info("run of %s/%s is parked: %s", claimed.namespace, claimed.name, wait.sentence)
                return None
            world = dataclasses.replace(world, waiting=dataclasses.replace(world.waiting, full=full))

    async def _replay(self, claimed: ClaimedRun, toolboxes: Toolboxes) -> BoundReplay | None:
        """Binds a replay to its record; None for any other run."""
        plan = claimed.plan.replay
        if plan is None:
            return None
        return await bind_replay(claimed, plan, Replays(self._pool), toolboxes, self._maskers)

    def _of_run(self, claimed: ClaimedRun) -> RunToolboxes:
        if isinstance(self._toolboxes, ActingToolboxes):
            return self._toolboxes.of_run(claimed.id, claimed.namespace)
        return RunToolboxes(self._toolboxes, claimed.id)

    async def _in_world(self, claimed: ClaimedRun, world: RunContext, writer: RunWriter) -> RunOutcome:
        try:
            # A task of its own, ended with this one: a task group counts what its children's errors cancel as a
            # cancellation of the task it is in, and here only a real one may count.
            return await asyncio.create_task(self._recorded(claimed, world, writer))
        except (Exception, BaseExceptionGroup) as raised:
            # The agents of a stage run in task groups: what one of them could not answer stops the stage.
            error = _first_leaf(raised)
            if isinstance(error, LeaseLost | StoreError | RunWaits):
                raise error from raised
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # A task group forgets a cancellation that one of its tasks answered with an error of its own.
                raise asyncio.CancelledError from raised
            _log.exception("run of %s/%s failed", claimed.namespace, claimed.name)
            return _internal_error(error)

    async def _recorded(self, claimed: ClaimedRun, world: RunContext, writer: RunWriter) -> RunOutcome:
        async with writer.holding():
            return await self._run(claimed, world)

    def _masking(self, plan: Plan) -> Setting:
        """Returns the masking settings for the model output of a run."""
        setting = plan.model_output_masking or MaskingPlan()
        try:
            self._maskers.of(setting)  # compiled once for each setting (tens of ms)
        except InvalidPattern as error:
            _log.warning("invalid patterns of the namespace's modelOutputMasking are ignored: %s", error.sentence)
            return usable(setting)
        return setting

    def _live(self, run: UUID, masking: Setting) -> AbstractContextManager[Live]:
        """Returns the live readers of a run."""
        if self._deltas is None:
            return nullcontext(NoFollowers())
        return self._deltas.of(run, lambda: MaskedStream(self._maskers.unfolding(masking)))

    async def _run(self, claimed: ClaimedRun, world: RunContext) -> RunOutcome:
        if claimed.parent is None:
            start = InvestigationRun(
                claimed.id,
                claimed.plan,
                claimed.alert_data,
                claimed.runbook or "",
                claimed.precedents,
                claimed.triage_for,
            )
            return await investigate(start, world)
        past = await self._questions.past(claimed.parent, claimed.id)
        author = str(claimed.author.get("username") or "a colleague")
        asked = ChatRun(claimed.id, claimed.plan, author, claimed.question or "", past, claimed.author.get("via"))
        return await answer_question(asked, world)

    async def _finish(self, claimed: ClaimedRun, outcome: RunOutcome) -> None:
        until = self._clock() + self._grace
        await self._runs.finish(claimed.id, claimed.attempt, outcome, remaining=lambda: until - self._clock())
        _log.info("run of %s/%s ended: %s", claimed.namespace, claimed.name, outcome.state.value)


def _first_leaf(raised: BaseException) -> BaseException:
    """The error, or what weighs most in a group: a lost lease, then a store error, then that the run waits."""
    leaves: list[BaseException] = []
    todo = [raised]
    while todo:
        error = todo.pop(0)
        if isinstance(error, BaseExceptionGroup):
            todo.extend(error.exceptions)
        else:
            leaves.append(error)
    for kind in (LeaseLost, StoreError, RunWaits):
        for leaf in leaves:
            if isinstance(leaf, kind):
                return leaf
    return leaves[0]


def _woken(claimed: ClaimedRun) -> Event:
    """The event that tells how long a run was parked."""
    seconds = round(claimed.parked_seconds)
    return Event(
        id=event_id(claimed.id, f"woken/{claimed.attempt}"),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=f"The run goes on, after it has waited for {seconds} s.",
        metadata={"reason": "Woken", "waitedFor": claimed.parked_for, "seconds": seconds},
    )


def _cancelled(claimed: ClaimedRun) -> RunOutcome:
    what = "investigation" if claimed.parent is None else "answer"
    return RunOutcome(state=State.CANCELLED, failure=Failure("Cancelled", f"The {what} was cancelled."), cut=True)


def _timed_out(claimed: ClaimedRun) -> RunOutcome:
    reason, what, limit = "InvestigationTimeout", "investigation", "timeouts.investigationSeconds"
    if claimed.parent is not None:
        reason, what, limit = "AnswerTimeout", "answer", f"chat.timeoutSeconds of the Chain, else {limit}"
    message = f"The {what} took longer than its limit of {claimed.plan.limits.investigation_seconds:g} s ({limit})."
    return RunOutcome(state=State.TIMED_OUT, failure=Failure(reason, message), cut=True)


def _internal_error(error: BaseException) -> RunOutcome:
    message = f"An error in TARSy itself ended the investigation ({type(error).__name__}); its log has the details."
    return RunOutcome(state=State.FAILED, failure=Failure("InternalError", message), cut=True)
