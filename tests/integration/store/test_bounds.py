"""Tests budget, loop guard and compaction of the engine on a real record, across lost attempts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from decimal import Decimal
from uuid import UUID

import asyncpg
import pytest

from integration.store.build import expire, worker
from tarsy.engine.investigation import InvestigationRun, investigate
from tarsy.engine.run_context import RunContext
from tarsy.llm.protocol import GenerateRequest
from tarsy.plan.model import AgentPlan, Plan, PlannedBudget, PlannedRates
from tarsy.record.history import BudgetLimit
from tarsy.record.ids import model_call_id
from tarsy.record.messages import Message, Role, ToolOutcome
from tarsy.record.run import RunOutcome, State
from tarsy.record.timeline import EventType
from tarsy.record.usage import Usage
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import NewRun, Runs
from tarsy.store.runs.writer import RunWriter
from unit.engine.build import FakeControl, FakeToolboxes, ScriptedModels, agent, call, plan, says, stage
from wire.scripted_client import Answer

RUN = UUID("00000000-0000-4000-8000-0000000000aa")
LINES = "\n".join(f"line {i:05d} of a log" for i in range(1550))  # 30 KB


def priced(window: int | None = None) -> AgentPlan:
    made = agent("triage", iterations=50)
    provider = made.provider.model_copy(
        update={"rates": PlannedRates(input=10.0, output=10.0), "context_window": window}
    )
    return made.model_copy(update={"provider": provider})


class Attempts:
    """A run with an attempt after the other, each lost after so many requests to its model."""

    def __init__(self, pool: asyncpg.Pool, of: Plan, brain: Callable[[GenerateRequest], Answer]) -> None:
        self._pool = pool
        self._plan = of
        self._brain = brain
        self._owner: UUID | None = None
        self.requests: list[GenerateRequest] = []
        self.boxes = FakeToolboxes({"k.get": self._get}, repeatables=frozenset({"k.get"}))

    async def _get(self, arguments: str) -> ToolOutcome:
        return ToolOutcome(f"result of {arguments}\n{LINES}")

    async def run(self, lost_after: Sequence[int] = ()) -> RunOutcome:
        await Runs(self._pool).accept(NewRun(RUN, "team-a", "uid", "inv", self._plan, "pod x"))
        for requests in lost_after:
            assert await self._attempt(requests) is None
        outcome = await self._attempt(None)
        assert outcome is not None
        return outcome

    async def _attempt(self, requests: int | None) -> RunOutcome | None:
        if self._owner is not None:
            await expire(self._pool, self._owner)
        self._owner = await worker(self._pool)
        (claimed,) = await Claims(self._pool).claim(self._owner, 1, 1000)
        hang, asked = asyncio.Event(), 0

        def answer(request: GenerateRequest) -> Answer:
            nonlocal asked
            self.requests.append(request)
            asked += 1
            if requests is not None and asked > requests:
                hang.set()
                return Answer("lost", wait=asyncio.Event())
            return self._brain(request)

        write = RunWriter(self._pool, RUN, claimed.attempt, remaining=lambda: 30.0)
        world = RunContext(write, ScriptedModels(answer), self.boxes, FakeControl())
        running = asyncio.ensure_future(investigate(InvestigationRun(RUN, self._plan, "pod x"), world))
        if requests is None:
            return await running
        async with asyncio.timeout(60):
            await hang.wait()
        running.cancel()
        with pytest.raises((asyncio.CancelledError, BaseExceptionGroup)):
            await running
        return None


def looking(until: int, arguments: str = '{{"n": {turn}}}') -> Callable[[GenerateRequest], Answer]:
    """Calls a tool `until` it may not, or has its results; 100 tokens a call."""

    def answer(request: GenerateRequest) -> Answer:
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        usage = Usage(input_tokens=90, output_tokens=10)
        if turn == until or not request.offers_tools:
            return Answer(f"done after {turn}", usage=usage)
        return Answer("more", tool_calls=(call("k.get", f"w{turn}", arguments.format(turn=turn)),), usage=usage)

    return answer


@pytest.fixture
async def reads(pool: asyncpg.Pool) -> AsyncIterator[Reads]:
    yield Reads(pool)


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (PlannedBudget(tokens=800), BudgetLimit.TOKENS),
        (PlannedBudget(cost_usd=0.008), BudgetLimit.COST),
        (PlannedBudget(tool_calls=4), BudgetLimit.TOOL_CALLS),
    ],
)
@pytest.mark.parametrize("lost_after", [(), (2,), (1, 1)], ids=str)
async def test_a_budget_holds_across_attempts(
    pool: asyncpg.Pool, reads: Reads, budget: PlannedBudget, limit: BudgetLimit, lost_after: tuple[int, ...]
) -> None:
    of = plan(stage("look", priced())).model_copy(update={"budget": budget})
    attempts = Attempts(pool, of, looking(40))
    attempts.boxes.functions = {"k.get": says("a pod")}

    outcome = await attempts.run(lost_after)

    record = await reads.record(RUN)
    assert outcome.state is State.COMPLETED and record is not None
    assert record.budget_exceeded is not None and record.budget_exceeded.limit is limit
    assert record.usage.total_tokens <= 800 and len(attempts.boxes.called) <= 7
    assert record.cost_usd is not None and record.cost_usd == Decimal(record.usage.total_tokens) / 100_000
    assert record.cost_complete is (not lost_after)
    told = [e for e in await reads.timeline(RUN) if e.type is EventType.NOTICE]
    assert [e.content for e in told] == [record.budget_exceeded.message]
    assert ("estimated" in told[0].content) is (bool(lost_after) and limit is not BudgetLimit.TOOL_CALLS)


@pytest.mark.parametrize("lost_after", [(), (2,), (3,)], ids=str)
async def test_the_loop_guard_knows_the_calls_of_earlier_attempts(
    pool: asyncpg.Pool, lost_after: tuple[int, ...]
) -> None:
    attempts = Attempts(pool, plan(stage("look", priced())), looking(40, '{{"n": 1}}'))
    attempts.boxes.functions = {"k.get": says("a pod")}

    outcome = await attempts.run(lost_after)

    assert outcome.state is State.COMPLETED and outcome.final_analysis == "done after 5"
    assert len(attempts.boxes.called) == 2  # the first call, and one fresh look
    assert "again and again" in attempts.requests[-1].messages[-1].content
    rows = await pool.fetch("SELECT made, repeated_of, id FROM mcp_interaction ORDER BY message_seq")
    assert [row["made"] for row in rows] == [True, False, True, False, False]
    first, fresh = rows[0]["id"], rows[2]["id"]
    assert [row["repeated_of"] for row in rows] == [None, first, None, fresh, fresh]


@pytest.mark.parametrize("lost_after", [(), (3,), (5,)], ids=str)
async def test_what_was_sent_is_rebuilt_from_the_record_across_attempts(
    pool: asyncpg.Pool, reads: Reads, lost_after: tuple[int, ...]
) -> None:
    attempts = Attempts(pool, plan(stage("look", priced(window=30_000))), looking(7))

    outcome = await attempts.run(lost_after)

    assert outcome.final_analysis == "done after 7"
    execution = UUID(attempts.requests[0].execution)
    sent: list[tuple[Message, ...]] = [tuple(request.messages) for request in attempts.requests]
    assert [tuple(await reads.sent(model_call_id(execution, n))) for n in range(len(sent))] == sent
    assert await pool.fetchval("SELECT count(*) FROM superseded") > 0
    assert await pool.fetchval("SELECT count(*) FROM message WHERE length(content) > 29000") == 7
