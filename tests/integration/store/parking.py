"""Runs whose agents need approvals, with workers that come and go; who decides writes into the tables of approvals."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4, uuid5

import asyncpg

from tarsy.engine.ports import Approvals, DryRun
from tarsy.plan.model import AgentLimits, Plan, PlannedBudget
from tarsy.record.messages import Refusal, ToolOutcome
from tarsy.record.run import InvestigationRecord
from tarsy.record.waiting import ApprovalAnswer, ApprovalGiven, ApprovalQuestion, ApprovalWaits, WaitingLimits
from tarsy.runtime.run import Runner, RunnerOptions
from tarsy.runtime.run_control import LocalLease, RunControl
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import ClaimedRun, Claims
from tarsy.store.runs.lifecycle import NewRun, ParkingLimits, Runs
from tarsy.store.runs.wakeups import silent
from unit.engine.build import Brain, FakeToolboxes, ScriptedModels, agent, by_turn, call, plan, says, stage
from wire.scripted_client import Answer

SCALE = "k8s.scale"
SCRIPT = {
    "fixer": [Answer(tool_calls=(call(SCALE),)), Answer("It is scaled.")],
    "reader": [Answer(tool_calls=(call("k8s.get"),)), Answer("One replica.")],
    "fix-synth": [Answer("Both agree.")],
}
_ASK = """INSERT INTO tool_approval (id, investigation, interaction, digest, request, targets, expires_at, required)
VALUES ($1, $2, $3, 'sha256:0', '{}', '[]', $4, 1) ON CONFLICT DO NOTHING"""


@dataclass(frozen=True)
class StoredPeople:
    """Approvals of one run, decided in the table."""

    pool: asyncpg.Pool
    run: UUID
    expires_at: datetime

    async def ask(self, question: ApprovalQuestion, dry_run: DryRun) -> ApprovalAnswer:
        approval = uuid5(question.call, "approval")
        await self.pool.execute(_ASK, approval, self.run, question.call, self.expires_at)
        row = await self.pool.fetchrow("SELECT state, expires_at FROM tool_approval WHERE id = $1", approval)
        match row["state"]:
            case "approved":
                return ApprovalGiven(approval)
            case "pending":
                return ApprovalWaits(row["expires_at"])
            case state:
                return Refusal("ApprovalRejected", f"{question.name} was not called: {state}.")

    async def withdraw(self, call: UUID, why: str) -> None:
        """Ends a question that is open."""
        await self.pool.execute(
            "UPDATE tool_approval SET state = 'withdrawn', outcome = $2 WHERE interaction = $1", call, why
        )


def gated_plan(*, parallel: bool = False, seconds: float = 900.0, minutes: float | None = None) -> Plan:
    agents = [agent("fixer", servers=["k8s"])] + ([agent("reader", servers=["k8s"])] if parallel else [])
    made = plan(stage("fix", *agents), limits=AgentLimits(investigation_seconds=seconds, finding_repairs=0))
    return made.model_copy(update={"budget": PlannedBudget(minutes=minutes)})


async def accept(pool: asyncpg.Pool, of: Plan | None = None, *, namespace: str = "team-a", priority: int = 0) -> UUID:
    run, of = uuid4(), of or gated_plan()
    of = of.model_copy(update={"namespace": namespace})
    await Runs(pool).accept(NewRun(run, namespace, f"uid-{namespace}", str(run), of, "pod", priority=priority))
    return run


@dataclass
class Fleet:
    """Workers on one database, whose tool server is shared and whose people decide in the table."""

    pool: asyncpg.Pool
    tools: FakeToolboxes = field(default_factory=FakeToolboxes)
    waiting: WaitingLimits = field(default_factory=WaitingLimits)
    parking: ParkingLimits = field(default_factory=ParkingLimits)
    expires_at: datetime = field(default_factory=lambda: datetime.now(UTC) + timedelta(hours=2))

    def __post_init__(self) -> None:
        async def scaled(_: str) -> ToolOutcome:
            return ToolOutcome("scaled")

        self.tools.functions = {SCALE: scaled, "k8s.get": says("one replica")}
        self.tools.repeatables, self.tools.gated = frozenset({"k8s.get"}), frozenset({SCALE})

    brain: Brain = field(default_factory=lambda: by_turn(SCRIPT))

    def approvals(self, run: ClaimedRun) -> Approvals:
        """Asks people about the calls of a run."""
        return StoredPeople(self.pool, run.id, self.expires_at)

    @property
    def runner(self) -> Runner:
        options = RunnerOptions(
            approvals=self.approvals,
            waiting=self.waiting,
            parking=self.parking,
        )
        models = ScriptedModels(self.brain)
        return Runner(self.pool, Runs(self.pool), models, self.tools, silent, options)

    async def run_claimed(self, claimed: ClaimedRun) -> None:
        """Runs it in this task, until it has ended or is parked."""
        await self.runner.run(claimed, RunControl(LocalLease(1e9), claimed.desired_state))

    async def all_that_can(self, worker: UUID, places: int = 20) -> list[ClaimedRun]:
        """Claims and runs all that a worker may run, until there is nothing left."""
        done: list[ClaimedRun] = []
        while claimed := await Claims(self.pool).claim(worker, places, 1000):
            await asyncio.gather(*(self.run_claimed(run) for run in claimed))
            done += claimed
        return done

    async def record(self, run: UUID) -> InvestigationRecord:
        found = await Reads(self.pool).record(run)
        assert found is not None
        return found


async def decide(pool: asyncpg.Pool, run: UUID, state: str = "approved") -> None:
    """Decides about all calls of a run, and wakes it."""
    await pool.execute(
        "UPDATE tool_approval SET state = $2, checked_at = now() WHERE investigation = $1 AND state = 'pending'",
        run,
        state,
    )
    await Runs(pool).wake(run)


async def let_pass(pool: asyncpg.Pool, run: UUID, seconds: float) -> None:
    """Moves all that has happened to a run so far into the past."""
    await pool.execute(
        "UPDATE investigation SET started_at = started_at - make_interval(secs => $2), "
        "accepted_at = accepted_at - make_interval(secs => $2), parked_at = parked_at - make_interval(secs => $2), "
        "deadline = deadline - make_interval(secs => $2), wake_at = wake_at - make_interval(secs => $2) WHERE id = $1",
        run,
        seconds,
    )
