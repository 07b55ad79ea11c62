"""Assigns investigations to workers by claims, leases and heartbeats.

A claim is one transaction under one advisory lock: counting the runs in progress and taking new ones is one step, so
limits are exact. The pure function `choose_runs` decides. A run whose worker died counts for no limit until it is
claimed again.

Every process of an installation is woken by every run that is accepted; one statement without the lock tells most of
them that nothing waits. A run that begins to wait after it is announced by a wake-up of its own. The place of a run
that ends is taken by its own worker, which wakes the others only if something waits that it leaves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.observe.metric_table import TERMINAL
from tarsy.observe.metrics import Metrics
from tarsy.plan.model import Plan
from tarsy.plan.reach import read_plan
from tarsy.record.judging.precedent import Precedent, read_precedents
from tarsy.record.reading.queue import WorkerOffer
from tarsy.record.run import DesiredState, Failure, RunOutcome, State
from tarsy.record.text import clean
from tarsy.store.database import call
from tarsy.store.errors import SchemaMismatch, WorkerLost
from tarsy.store.migrate import newest
from tarsy.store.queries import load
from tarsy.store.quotas import Withheld
from tarsy.store.runs.claim_choice import Candidate, RunsInProgress, choose_runs
from tarsy.store.runs.closing import close_run
from tarsy.store.runs.wakeups import CLAIMABLE, QUEUE_CHANNEL, RUN_CHANNEL, NotifyFunction, silent

CLAIM_LOCK = 7_261_979_002
"""Advisory lock under which runs are counted and claimed."""

_UNREADABLE = RunOutcome(
    State.FAILED,
    failure=Failure(
        "PlanUnreadable",
        "This version of the operator cannot read the stored plan. "
        "Run the version that accepted it, or create the investigation again.",
    ),
    cut=True,
)


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that this worker may now write as `attempt`; its deadline is in `seconds_left`.

    `waited_seconds` passed from its acceptance to its first start. A run that answers a question
    has the `question` and, as `parent`, the investigation that it is about; its `alert_data` is empty. One that was
    parked waited for `parked_for`, for `parked_seconds`. One with `triage_for`, a sentence, asks no model.
    """

    id: UUID
    attempt: int
    namespace: str
    name: str
    plan: Plan
    alert_data: str
    runbook: str | None
    author: Mapping[str, Any]
    desired_state: DesiredState
    seconds_left: float
    parent: UUID | None = None
    question: str | None = None
    waited_seconds: float = 0.0
    parked_for: str | None = None
    parked_seconds: float = 0.0
    precedents: Sequence[Precedent] = ()
    triage_for: str | None = None


class Claims:
    """Registers workers, claims runs for them and renews their leases."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        notify: NotifyFunction = silent,
        *,
        knows: int | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """
        Args:
            pool: from `open_pool`.
            notify: sends a wake-up after the commit of each change.
            knows: newest migration that the code knows; None: the newest that is shipped.
            metrics: counts runs that end because their plan cannot be read.
        """
        self._pool = pool
        self._notify = notify
        self._metrics = metrics
        self._knows = newest() if knows is None else knows
        self._sql = load("claims")
        self._close = load("runs")["close"]

    async def register(self, worker: UUID, host: str, ttl_seconds: float, offer: WorkerOffer | None = None) -> None:
        """Registers a worker and deletes leases that it held before.

        Args:
            worker: its id.
            host: its host name, for people.
            ttl_seconds: the worker expires after this time without a heartbeat.
            offer: how much it takes, for people; None: not told.

        Raises:
            SchemaMismatch: a newer version has changed the schema so that the code of this one cannot use it.
            StoreError: Postgres is unavailable or refused.
        """

        told = {name: getattr(offer, name, None) for name in WorkerOffer.__slots__}
        values = {"worker": worker, "host": clean(host), "ttl_seconds": ttl_seconds, "knows": self._knows, **told}

        async def insert(connection: asyncpg.Connection) -> object:
            return await connection.fetchval(*self._sql["register"](**values))

        if await call(self._pool, f"register worker {worker}", insert) is None:
            raise SchemaMismatch(
                f"A newer version has changed the database schema; this worker knows it up to version {self._knows} "
                "and can no longer use it. Run the newer version."
            )

    async def heartbeat(
        self, worker: UUID, ttl_seconds: float, *, draining: bool = False
    ) -> Mapping[UUID, tuple[int, DesiredState]]:
        """Renews the leases of a worker, and returns attempt and desired state of each run that it still holds.

        Args:
            worker: its id.
            ttl_seconds: the worker expires after this time without another heartbeat.
            draining: whether it stops and takes nothing more, for people.

        Raises:
            WorkerLost: the worker had expired before this heartbeat; another worker may run its runs already.
            StoreError: Postgres is unavailable or refused.
        """

        async def beat(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            rows: Sequence[asyncpg.Record] = await connection.fetch(
                *self._sql["heartbeat"](worker=worker, ttl_seconds=ttl_seconds, draining=draining)
            )
            return rows

        rows = await call(self._pool, f"renew the leases of worker {worker}", beat)
        if not rows:
            raise WorkerLost(f"Worker {worker} has expired. Stop its runs and register again.")
        return {
            row["investigation"]: (row["attempt"], DesiredState(row["desired_state"]))
            for row in rows
            if row["investigation"] is not None
        }

    async def claim(
        self,
        worker: UUID,
        free: int,
        global_limit: int,
        *,
        questions: int = 0,
        namespace_limit: int | None = None,
        ended: int = 0,
    ) -> list[ClaimedRun]:
        """Claims pending and orphaned runs within the global, namespace and chain limits.

        Questions are claimed besides, one about an investigation at a time: a person waits for the answer, so the
        limits of runs do not apply to them. Other workers are woken if something waits, and fewer were claimed than the
        worker has `ended`.

        Args:
            worker: a registered worker.
            free: maximum runs to claim.
            global_limit: maximum runs in progress in the whole installation.
            questions: maximum questions to claim.
            namespace_limit: maximum runs in progress of one namespace, and maximum answers; None: no limit.
            ended: runs and answers of this worker that have ended since its last claim.

        Raises:
            WorkerLost: the worker is not registered, or has expired.
            StoreError: Postgres is unavailable or refused.
        """
        unreadable: list[bool] = []
        changed: list[UUID] = []
        waiting = True

        async def take(connection: asyncpg.Connection) -> list[ClaimedRun]:
            nonlocal waiting
            unreadable.clear()
            changed.clear()
            waiting = bool(await connection.fetchval(*self._sql["worth_a_claim"](worker=worker)))
            if not waiting:
                return []
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=CLAIM_LOCK))
                if not await connection.fetchval(*self._sql["reap_but"](worker=worker)):
                    raise WorkerLost(f"Worker {worker} is not registered, or has expired. Register it again.")
                withheld = Withheld()
                ids = await self._asked(connection, withheld, questions, namespace_limit) if questions > 0 else []
                ids += await self._choose(connection, withheld, free, global_limit, namespace_limit) if free > 0 else []
                changed.extend(await withheld.write(connection))
                await withheld.mark_triaged(connection, ids)
                return await self._take(connection, worker, ids, unreadable)

        claimed = [] if free <= 0 and questions <= 0 else await call(self._pool, "claim investigations", take)
        if waiting and len(claimed) < ended:
            self._notify(QUEUE_CHANNEL, CLAIMABLE)
        for run in (*(run.id for run in claimed), *changed):
            self._notify(RUN_CHANNEL, str(run))
        for question in unreadable:
            if self._metrics is not None:
                what = "question" if question else "investigation"
                self._metrics.add(TERMINAL, kind=what, state=_UNREADABLE.state.value)
        return claimed

    async def _take(
        self, connection: asyncpg.Connection, worker: UUID, ids: Sequence[UUID], unreadable: list[bool]
    ) -> list[ClaimedRun]:
        """Gives chosen runs to a worker, in their order, and ends those with an unreadable plan.

        `unreadable` gets an entry for each of the latter: whether it answers a question.
        """
        if not ids:
            return []
        await connection.execute(*self._sql["served"](ids=ids))
        claimed = []
        taken = await connection.fetch(*self._sql["take"](ids=ids, worker=worker))
        for row in sorted(taken, key=lambda row: ids.index(row["id"])):
            try:
                claimed.append(_claimed(row))
            except ValueError:
                await close_run(connection, self._close, row["id"], _UNREADABLE)
                unreadable.append(row["parent"] is not None)
        return claimed

    async def _asked(
        self, connection: asyncpg.Connection, withheld: Withheld, questions: int, each: int | None
    ) -> list[UUID]:
        running = _running(await connection.fetch(*self._sql["answering"]()))
        found = await connection.fetch(*self._sql["questions"](limit=questions, knows=self._knows))
        waiting = withheld.admitted([Candidate(**row) for row in found], questions=True)
        most = sum(running.values()) + questions
        chosen = choose_runs(waiting, running, free=questions, global_limit=most, namespace_limit=each)
        return await self._not_being_written(connection, {run.id: run.leased for run in chosen})

    async def _choose(
        self, connection: asyncpg.Connection, withheld: Withheld, free: int, global_limit: int, each: int | None
    ) -> list[UUID]:
        running = _running(await connection.fetch(*self._sql["in_progress"]()))
        if sum(running.values()) >= global_limit:
            return []
        found = await connection.fetch(*self._sql["candidates"](limit=free, knows=self._knows))
        waiting = withheld.admitted([Candidate(**row) for row in found])
        chosen = choose_runs(waiting, running, free=free, global_limit=global_limit, namespace_limit=each)
        return await self._not_being_written(connection, {run.id: run.leased for run in chosen})

    async def _not_being_written(self, connection: asyncpg.Connection, runs: Mapping[UUID, bool]) -> list[UUID]:
        """Returns the runs (given with whether they have a dead worker's lease) that no dead worker is writing now."""
        leased = [run for run, lease in runs.items() if lease]
        if not leased:
            return list(runs)
        locked = {row["investigation"] for row in await connection.fetch(*self._sql["lock_leases"](ids=leased))}
        return [run for run, lease in runs.items() if not lease or run in locked]

    async def seconds_to_next_lapse(self, worker: UUID) -> float | None:
        """Returns the seconds until the lease of another worker that holds runs ends; None: no other holds any."""

        async def read(connection: asyncpg.Connection) -> float | None:
            seconds: float | None = await connection.fetchval(*self._sql["next_lapse"](worker=worker))
            return seconds

        return await call(self._pool, "read when the next lease ends", read)

    async def release(self, worker: UUID, run: UUID, attempt: int) -> bool:
        """Releases a run, which any worker may then claim at once.

        Args:
            worker: the worker that holds it.
            run: the investigation or answer.
            attempt: as claimed.

        Returns:
            False when this attempt no longer held the lease.
        """

        held = self._sql["release"](investigation=run, attempt=attempt, worker=worker)

        async def delete(connection: asyncpg.Connection) -> bool:
            return await connection.fetchval(*held) is not None

        released = await call(self._pool, f"release investigation {run}", delete)
        if released:
            self._notify(QUEUE_CHANNEL, CLAIMABLE)
        return released

    async def deregister(self, worker: UUID) -> None:
        """Deletes a worker; runs that it still held may be claimed at once."""

        async def delete(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql["deregister"](worker=worker))

        await call(self._pool, f"deregister worker {worker}", delete)
        self._notify(QUEUE_CHANNEL, CLAIMABLE)


def _running(rows: Sequence[asyncpg.Record]) -> RunsInProgress:
    return {(row["namespace"], row["chain_namespace"], row["chain"]): row["runs"] for row in rows}


def _claimed(row: asyncpg.Record) -> ClaimedRun:
    return ClaimedRun(
        id=row["id"],
        attempt=row["attempt"],
        namespace=row["namespace"],
        name=row["name"],
        plan=read_plan(row["plan"]),
        alert_data=row["alert_data"],
        runbook=row["runbook"],
        author=row["author"],
        desired_state=DesiredState(row["desired_state"]),
        seconds_left=row["seconds_left"],
        parent=row["parent"],
        question=row["question"],
        waited_seconds=row["waited_seconds"],
        parked_for=row["parked_for"],
        parked_seconds=row["parked_seconds"],
        precedents=read_precedents(row["precedents"]),
        triage_for=row["triage_for"],
    )
