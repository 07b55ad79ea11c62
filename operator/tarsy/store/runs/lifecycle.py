"""Accepts and ends investigations.

The controller calls `accept` and `set_desired_state`, the runner calls `finish`. The sweep calls `expire_overdue`,
which ensures that every run ends even when its worker or Postgres failed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
from pydantic import ValidationError

from tarsy.observe.metric_table import ACCEPTED, PRECEDENTS_TOLD, SWEPT, TERMINAL
from tarsy.observe.metrics import Metrics
from tarsy.plan.model import Plan
from tarsy.plan.reach import read_plan
from tarsy.record.ids import event_id
from tarsy.record.judging.precedent import Precedent, stored_precedents
from tarsy.record.reading.flaws import alert_key
from tarsy.record.run import DesiredState, Failure, LeaseLost, RunOutcome, State
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.record.waiting import Wait
from tarsy.resources.v1alpha1.common import ObjectRef
from tarsy.store import columns
from tarsy.store.database import call
from tarsy.store.migrate import plan_version
from tarsy.store.queries import load
from tarsy.store.runs.claims import CLAIM_LOCK
from tarsy.store.runs.closing import close_run
from tarsy.store.runs.parking import ParkingLimits
from tarsy.store.runs.wakeups import CLAIMABLE, QUEUE_CHANNEL, RUN_CHANNEL, NotifyFunction, silent
from tarsy.store.sealing import seal
from tarsy.store.text import clean_or_none

REPLAY_VERSION = 21
"""The migration with replays, whose plans older code cannot read."""

PRECEDENTS_VERSION = 38
"""The migration with precedents; older code cannot read plans that have them."""

_WOKEN_PRIORITY = 1000
"""Priority of a run that was parked, above that of all severities: people have waited for it, or it for them."""

_BEFORE_START = {
    DesiredState.CONCLUDED: Failure("ConcludedBeforeStart", "Concluded before it started: there was no evidence yet."),
    DesiredState.CANCELLED: Failure("CancelledBeforeStart", "Cancelled before it started."),
}
_TOLD = {
    DesiredState.RUNNING: ("Running", "It shall run."),
    DesiredState.CONCLUDED: ("ConcludeRequested", "It was asked to stop now and to summarise what there is."),
    DesiredState.CANCELLED: ("CancelRequested", "It was asked to stop at once."),
}
_CANCELLED = RunOutcome(
    State.CANCELLED, failure=Failure("Cancelled", "Cancelled while no worker was running it."), cut=True
)
_OVERDUE = RunOutcome(
    State.TIMED_OUT,
    failure=Failure("DeadlineExceeded", "The deadline passed while no worker was running the investigation."),
    cut=True,
)


@dataclass(frozen=True, slots=True)
class NewRun:
    """An investigation to accept: `id` is the uid of its object, `alert_uid` that of its Alert; all texts are masked.

    `cassette` is the record that a replay answers from; the alert of a `scheduled` one is of an AlertSchedule. Later
    runs find it by `keys`; its agents are told about `precedents`. `retry_of` is the investigation that it reruns."""

    id: UUID
    namespace: str
    namespace_uid: str
    name: str
    plan: Plan
    alert_data: str
    runbook: str | None = None
    author: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    cassette: bytes | None = None
    severity: str | None = None
    scheduled: bool = False
    alert_uid: str | None = None
    keys: Sequence[str] = ()
    precedents: Sequence[Precedent] = ()
    retry_of: ObjectRef | None = None

    @property
    def stages_planned(self) -> int:
        """Number of stages when none fails, including syntheses and the executive summary."""
        syntheses = sum(stage.synthesis is not None for stage in self.plan.stages)
        return len(self.plan.stages) + syntheses + (self.plan.executive_summary is not None)


@dataclass(frozen=True, slots=True)
class ParkedRun:
    """A run that waits without a worker."""

    id: UUID
    namespace: str
    name: str
    plan: Plan
    author: Mapping[str, Any]


class Runs:
    """Accepts and ends investigations.

    Args:
        pool: from `open_pool`.
        notify: sends a wake-up after the commit of each change.
        metrics: counts accepted runs, and runs that end without a worker.
    """

    def __init__(self, pool: asyncpg.Pool, notify: NotifyFunction = silent, metrics: Metrics | None = None) -> None:
        self._pool = pool
        self._metrics = metrics
        self._notify = notify
        self._version = plan_version()
        self._sql = load("runs")
        self._lock = load("claims")

    async def accept(self, run: NewRun) -> bool:
        """Enqueues a run. False when it had been accepted before: then nothing is changed."""
        plan = run.plan
        values = {
            **{name: getattr(run, name) for name in ("id", "namespace", "namespace_uid", "name")},
            "alert_type": plan.alert_type,
            "chain": plan.chain.name,
            "chain_namespace": plan.chain.namespace,
            "plan_hash": plan.digest,
            "stages_planned": run.stages_planned,
            "limit_seconds": plan.limits.investigation_seconds,
            "namespace_limit": plan.namespace_limit,
            "chain_limit": plan.chain_limit,
            "priority": run.priority,
            "author": dict(run.author),
            "alert_data": clean(run.alert_data),
            "runbook": clean_or_none(run.runbook),
            "plan": plan.dump().decode(),
            "reader": self._reader(run),
            "cassette": run.cassette,
            "severity": run.severity,
            "scheduled": run.scheduled,
            "alert_key": alert_key(run.namespace_uid, plan.alert_type, run.alert_data),
            "precedent_keys": [clean(key) for key in run.keys],
            "precedents": stored_precedents(run.precedents),
            "alert_uid": run.alert_uid,
            "retry_name": run.retry_of.name if run.retry_of else None,
            "retry_uid": run.retry_of.uid if run.retry_of else None,
        }
        accepting = self._sql["accept"](**values, **seal.of_acceptance(values).columns())

        async def insert(connection: asyncpg.Connection) -> bool:
            return await connection.fetchval(*accepting) is not None

        accepted = await call(self._pool, f"accept investigation {run.namespace}/{run.name}", insert)
        if accepted:
            if self._metrics is not None:
                self._metrics.add(ACCEPTED, kind="investigation")
                for one in run.precedents:
                    self._metrics.add(PRECEDENTS_TOLD, ending=one.ending.value)
            self._notify(QUEUE_CHANNEL, CLAIMABLE)
            self._notify(RUN_CHANNEL, str(run.id))
        return accepted

    def _reader(self, run: NewRun) -> int:
        """Returns the oldest code that can read the plan of a run."""
        replay = REPLAY_VERSION if run.cassette is not None else 0
        return max(self._version, replay, PRECEDENTS_VERSION if run.plan.precedents is not None else 0)

    async def set_desired_state(self, run: UUID, desired: DesiredState) -> bool:
        """Moves the desired state forward, never back; a pending run ends at once. False when nothing changed."""
        early = _BEFORE_START.get(desired)
        reason, message = _TOLD[desired]
        event = event_id(run, desired.value)
        seals = {**_told(event, reason, message).columns(), **_told_end(event, early).columns("ended_")}

        async def update(connection: asyncpg.Connection) -> asyncpg.Record | None:
            return await connection.fetchrow(
                *self._sql["set_desired_state"](
                    id=run,
                    desired=desired.value,
                    failure_reason=None if early is None else early.reason,
                    failure_message=None if early is None else early.message,
                    event=event,
                    reason=reason,
                    message=message,
                    **seals,
                )
            )

        changed = await call(self._pool, f"set the desired state of investigation {run}", update)
        if changed is None:
            return False
        if State(changed["state"]).finished:
            self._count_end(changed["question"], State(changed["state"]))
        self._notify(QUEUE_CHANNEL, "")
        self._notify(RUN_CHANNEL, str(run))
        return True

    async def park(
        self,
        run: UUID,
        attempt: int,
        wait: Wait,
        limits: ParkingLimits,
        *,
        remaining: Callable[[], float] | None = None,
    ) -> str | None:
        """Parks a run and gives its lease back; this is the last write of an attempt. None of its clocks run then.

        It may be claimed again at the end of the wait, and before by `wake` or when it is to conclude. What was decided
        since its claim wakes it at once.

        Args:
            run: the investigation or answer.
            attempt: the one that holds the lease.
            wait: what it waits for.
            limits: of parked runs.
            remaining: returns the seconds left; see `tarsy.store.database.call`.

        Returns:
            Why it has no place to wait, as a sentence: then nothing is changed. None: it is parked.

        Raises:
            LeaseLost: another attempt owns the run.
            StoreError: Postgres is unavailable or refused.
        """

        async def park(connection: asyncpg.Connection) -> tuple[bool, str | None]:
            async with connection.transaction():
                await connection.execute(*self._lock["lock"](key=CLAIM_LOCK))
                lease = self._sql["lock_own_lease"](investigation=run, attempt=attempt)
                if await connection.fetchval(*lease) is None:
                    # Written by a try of this very call whose answer was lost on the way?
                    return bool(await connection.fetchval(*self._sql["was_parked"](id=run, attempt=attempt))), None
                parked = await connection.fetchrow(*self._sql["parked"](id=run))
                if (full := limits.full(parked["total"], parked["of_namespace"])) is not None:
                    return True, full
                values = {"until": wait.until, "seconds": limits.seconds, "priority": _WOKEN_PRIORITY}
                what = {"reason": wait.reason.value, "note": clean(wait.sentence)}
                found = await connection.fetchval(*self._sql["park"](id=run, **values, **what))
                await connection.execute(*self._sql["give_back"](investigation=run, attempt=attempt))
                return found is not None, None

        owned, full = await call(self._pool, f"park investigation {run}", park, remaining=remaining)
        if not owned:
            raise LeaseLost(f"Attempt {attempt} of investigation {run} no longer holds the lease.")
        if full is None:
            self._notify(RUN_CHANNEL, str(run))
            self._notify(QUEUE_CHANNEL, CLAIMABLE)
        return full

    async def wake(self, run: UUID) -> bool:
        """Lets a parked run go on, because something was decided; False when it is not parked, or woken already.

        A run that is not parked remembers it: it may be about to be parked, and is then woken at once.
        """

        async def update(connection: asyncpg.Connection) -> bool:
            return bool(await connection.fetchval(*self._sql["wake"](id=run)))

        woken = await call(self._pool, f"wake investigation {run}", update)
        if woken:
            self._notify(QUEUE_CHANNEL, CLAIMABLE)
            self._notify(RUN_CHANNEL, str(run))
        return woken

    async def parked_runs(self, run: UUID | None = None, limit: int = 1000) -> list[ParkedRun]:
        """Lists parked runs, the ones that wait longest first; runs whose plan cannot be read are left out.

        Args:
            run: only this one; None: all.
            limit: maximum number of runs.
        """

        async def read(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            return list(await connection.fetch(*self._sql["parked_runs"](run=run, limit=limit)))

        found = []
        for row in await call(self._pool, "list parked runs", read):
            try:
                plan = read_plan(row["plan"])
            except ValidationError:
                continue  # the claim ends it
            found.append(ParkedRun(row["id"], row["namespace"], row["name"], plan, row["author"]))
        return found

    async def end_parked(self, run: UUID, why: Failure) -> bool:
        """Ends a parked run because it may not go on; False: it is not parked any more.

        Args:
            run: the investigation or answer.
            why: reason and sentence of its outcome.
        """

        async def end(connection: asyncpg.Connection) -> bool:
            async with connection.transaction():
                await connection.execute(*self._lock["lock"](key=CLAIM_LOCK))
                if not await connection.fetchval(*self._sql["is_parked"](id=run)):
                    return False
                return await close_run(
                    connection, self._sql["close"], run, RunOutcome(State.FAILED, failure=why, cut=True)
                )

        ended = await call(self._pool, f"end parked investigation {run}", end)
        if ended:
            self._notify(RUN_CHANNEL, str(run))
        return ended

    async def object_deleted(self, run: UUID) -> None:
        """Cancels a run whose object was deleted; the record stays and is no longer published."""

        async def update(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql["forget_object"](id=run))

        await call(self._pool, f"note that the object of investigation {run} was deleted", update)
        await self.set_desired_state(run, DesiredState.CANCELLED)

    async def finish(
        self, run: UUID, attempt: int, outcome: RunOutcome, *, remaining: Callable[[], float] | None = None
    ) -> None:
        """Ends a run and deletes its lease; this is the last write of an attempt.

        Its worker claims next (`Claims.claim`), and tells other workers if something waits that it does not take.

        Args:
            run: the investigation.
            attempt: the one that holds the lease.
            outcome: in a terminal state.
            remaining: returns the seconds left; see `tarsy.store.database.call`.

        Raises:
            LeaseLost: another attempt owns the run, or it was ended by the sweep.
            StoreError: Postgres is unavailable or refused.
        """
        if not outcome.state.finished:
            raise ValueError(f"An outcome must be terminal, not {outcome.state}.")

        async def close(connection: asyncpg.Connection) -> bool:
            if await close_run(connection, self._sql["finish"], run, outcome, attempt=attempt):
                return True
            async with connection.transaction():
                lease = self._sql["lock_own_lease"](investigation=run, attempt=attempt)
                if await connection.fetchval(*lease) is not None:
                    return await close_run(connection, self._sql["close"], run, outcome)
                # Written by a try of this very call whose answer was lost on the way?
                written = self._sql["was_finished"](id=run, attempt=attempt, state=outcome.state.value)
                return bool(await connection.fetchval(*written))

        if not await call(self._pool, f"finish investigation {run}", close, remaining=remaining):
            raise LeaseLost(f"Attempt {attempt} of investigation {run} no longer holds the lease.")
        self._notify(RUN_CHANNEL, str(run))

    async def expire_overdue(self, grace_seconds: float) -> list[UUID]:
        """Ends overdue and cancelled runs that no live worker holds, and returns their ids.

        A run times out when its deadline and `grace_seconds` have passed; it is cancelled when that was requested.
        """

        async def sweep(connection: asyncpg.Connection) -> list[tuple[UUID, bool, State]]:
            async with connection.transaction():
                await connection.execute(*self._lock["lock"](key=CLAIM_LOCK))
                await connection.execute(*self._lock["reap_workers"]())
                rows = await connection.fetch(*self._sql["overdue"](grace_seconds=grace_seconds))
                leased = [row["id"] for row in rows if row["leased"]]
                leases = await connection.fetch(*self._lock["lock_leases"](ids=leased))
                locked = {row["investigation"] for row in leases}
                ended = []
                for row in rows:
                    if row["leased"] and row["id"] not in locked:
                        continue  # a zombie writes a step just now; the next sweep comes
                    outcome = _CANCELLED if row["desired_state"] == DesiredState.CANCELLED else _OVERDUE
                    if await close_run(connection, self._sql["close"], row["id"], outcome):
                        ended.append((row["id"], row["question"], outcome.state))
                return ended

        ended = await call(self._pool, "end overdue investigations", sweep)
        for run, question, state in ended:
            self._notify(RUN_CHANNEL, str(run))
            self._count_end(question, state)
            if self._metrics is not None:
                self._metrics.add(SWEPT)
        return [run for run, *_ in ended]

    def _count_end(self, question: bool, state: State) -> None:
        if self._metrics is not None:
            self._metrics.add(TERMINAL, kind="question" if question else "investigation", state=state.value)


def _told(event: UUID, reason: str, message: str) -> seal.Seal:
    sealed = seal.Seal()
    notice = Event(event, EventType.NOTICE, EventStatus.COMPLETED, message, {"reason": reason})
    seal.add_events(sealed, columns.event_columns([notice]))
    return sealed


def _told_end(event: UUID, early: Failure | None) -> seal.Seal:
    """Returns the seal of a run that ends before it has started."""
    if early is None:
        return seal.Seal()
    sealed = _told(event, early.reason, early.message)
    failure = {"failure_reason": early.reason, "failure_message": early.message}
    sealed.extend(seal.of_end({**dict.fromkeys(seal.END), "state": State.CANCELLED.value, **failure}))
    return sealed
