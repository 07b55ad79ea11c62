"""The queue of runs in memory, with the contract of `store.claims.Claims` and `store.runs.Runs` that a worker uses."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from tarsy.plan.model import AgentLimits
from tarsy.record.ids import worker_id
from tarsy.record.reading.queue import WorkerOffer
from tarsy.record.run import DesiredState, LeaseLost, RunOutcome
from tarsy.runtime.run_control import RunControl
from tarsy.store.errors import StoreUnavailable, WorkerLost
from tarsy.store.runs.claims import ClaimedRun
from unit.engine.build import agent, plan, stage


def run_id(number: int) -> UUID:
    return worker_id("run", number, "")


@dataclass
class FakeQueue:
    """Claims and Runs in one: who waits, who is leased to whom, who has ended."""

    waiting: list[int] = field(default_factory=list)
    seconds_left: float = 600.0
    leases: dict[UUID, tuple[UUID, int]] = field(default_factory=dict)
    attempts: dict[UUID, int] = field(default_factory=dict)
    desired: dict[UUID, DesiredState] = field(default_factory=dict)
    ended: dict[UUID, RunOutcome] = field(default_factory=dict)
    workers: list[UUID] = field(default_factory=list)
    gone: set[UUID] = field(default_factory=set)
    released: list[tuple[UUID, int]] = field(default_factory=list)
    beats: int = 0
    draining: bool = False
    offers: list[WorkerOffer] = field(default_factory=list)
    away: bool = False
    claim_hangs: bool = False
    beat_hangs: bool = False
    on_beat: Callable[[], None] | None = None
    most_asked: int = 0
    lapses_at: float | None = None
    lapse_reads: int = 0

    async def register(self, worker: UUID, host: str, ttl_seconds: float, offer: WorkerOffer) -> None:
        self._answer()
        self.workers.append(worker)
        self.offers.append(offer)

    async def heartbeat(
        self, worker: UUID, ttl_seconds: float, *, draining: bool = False
    ) -> Mapping[UUID, tuple[int, DesiredState]]:
        self.beats += 1
        self.draining = draining
        if self.beat_hangs:
            await asyncio.Event().wait()
        self._answer(worker)
        held = {
            run: (attempt, self.desired.get(run, DesiredState.RUNNING))
            for run, (owner, attempt) in self.leases.items()
            if owner == worker
        }
        if self.on_beat is not None:
            self.on_beat()
        return held

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
        if self.claim_hangs:
            await asyncio.Event().wait()
        self._answer(worker)
        self.most_asked = max(self.most_asked, free)
        claimed = []
        while self.waiting and len(claimed) < free:
            run = run_id(number := self.waiting.pop(0))
            self.attempts[run] = self.attempts.get(run, 0) + 1
            self.leases[run] = (worker, self.attempts[run])
            claimed.append(self.claimed(number))
        return claimed

    def claimed(self, number: int) -> ClaimedRun:
        run = run_id(number)
        return ClaimedRun(
            id=run,
            attempt=self.attempts.get(run, 1),
            namespace="team-a",
            name=f"inv-{number}",
            plan=plan(stage("look", agent()), limits=AgentLimits(investigation_seconds=600, finding_repairs=0)),
            alert_data="pod x",
            runbook=None,
            author={},
            desired_state=self.desired.get(run, DesiredState.RUNNING),
            seconds_left=self.seconds_left,
        )

    async def seconds_to_next_lapse(self, worker: UUID) -> float | None:
        self.lapse_reads += 1
        return None if self.lapses_at is None else self.lapses_at - asyncio.get_running_loop().time()

    async def release(self, worker: UUID, run: UUID, attempt: int) -> bool:
        self._answer()
        if self.leases.get(run) != (worker, attempt):
            return False
        del self.leases[run]
        self.released.append((run, attempt))
        return True

    async def deregister(self, worker: UUID) -> None:
        self._answer()
        self.gone.add(worker)
        self.leases = {run: lease for run, lease in self.leases.items() if lease[0] != worker}

    async def finish(
        self, run: UUID, attempt: int, outcome: RunOutcome, *, remaining: Callable[[], float] | None = None
    ) -> None:
        self._answer()
        if run in self.leases and self.leases[run][1] != attempt:
            raise LeaseLost("another attempt owns the run")
        self.ended[run] = outcome
        self.leases.pop(run, None)

    def _answer(self, worker: UUID | None = None) -> None:
        if self.away:
            raise StoreUnavailable("Postgres is away")
        if worker in self.gone:
            raise WorkerLost(f"Worker {worker} has expired.")


@dataclass
class FakeRunner:
    """A runner that does what it is told with each run; `now` are those it runs, `most` how many at once."""

    act: Callable[[ClaimedRun, RunControl], Awaitable[None]]
    now: dict[UUID, RunControl] = field(default_factory=dict)
    seen: list[tuple[str, int]] = field(default_factory=list)
    most: int = 0
    cancelled: list[str] = field(default_factory=list)

    async def run(self, claimed: ClaimedRun, control: RunControl) -> None:
        self.seen.append((claimed.name, claimed.attempt))
        self.now[claimed.id] = control
        self.most = max(self.most, len(self.now))
        try:
            await self.act(claimed, control)
        except asyncio.CancelledError:
            self.cancelled.append(claimed.name)
            raise
        finally:
            if self.now.get(claimed.id) is control:
                del self.now[claimed.id]
