"""A budget of a whole run: what it stops, what it leaves, and that a crash changes nothing of it."""

import asyncio
from collections.abc import Callable

import pytest

from tarsy.llm.protocol import GenerateRequest
from tarsy.plan.model import AgentPlan, Plan, PlannedBudget, PlannedRates, StagePlan, Strategy
from tarsy.record.history import BudgetLimit
from tarsy.record.messages import Role, ToolOutcome
from tarsy.record.run import InteractionState, ModelCallKind, State
from tarsy.record.timeline import EventType
from tarsy.record.usage import Usage
from unit.engine.build import FakeToolboxes, Scene, agent, call, live, plan, says, scene, single, stage
from unit.engine.clock import in_virtual_time
from wire.scripted_client import Answer

RATES = PlannedRates(input=1.0, output=1.0)
USAGE = Usage(input_tokens=90, output_tokens=10)


def budgeted(
    budget: PlannedBudget, *stages: StagePlan, summary: bool = False, rates: PlannedRates | None = RATES
) -> Plan:
    """A plan whose every provider has rates."""
    made = plan(*stages, summary=summary)

    def priced(of: AgentPlan) -> AgentPlan:
        return of.model_copy(update={"provider": of.provider.model_copy(update={"rates": rates})})

    staged = tuple(
        s.model_copy(
            update={
                "agents": tuple(priced(a) for a in s.agents),
                "synthesis": priced(s.synthesis) if s.synthesis else None,
            }
        )
        for s in made.stages
    )
    last = priced(made.executive_summary) if made.executive_summary else None
    return made.model_copy(update={"budget": budget, "stages": staged, "executive_summary": last})


def brain(usage: Usage | None = USAGE, tools: int = 1) -> Callable[[GenerateRequest], Answer]:
    """Calls a tool until it must conclude; every call uses the same."""

    def answer(request: GenerateRequest) -> Answer:
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        if request.offers_tools:
            calls = tuple(call("k.get", f"c{turn}-{i}", f'{{"n": "{turn}-{i}"}}') for i in range(tools))
            return Answer(f"looking {turn}", tool_calls=calls, usage=usage)
        return Answer(f"{request.agent} concludes after {turn}", usage=usage)

    return answer


def start(usage: Usage | None = USAGE, tools: int = 1, *, repeatable: bool = True) -> Scene:
    boxes = FakeToolboxes({"k.get": says("a pod")}, repeatables=frozenset({"k.get"} if repeatable else ()))
    return scene(brain(usage, tools), toolboxes=boxes)


def kinds(s: Scene) -> list[ModelCallKind]:
    return [row.start.kind for row in s.record.model_calls.values()]


def spent(s: Scene) -> int:
    return sum(
        row.result.usage.total_tokens for row in s.record.model_calls.values() if row.result and row.result.usage
    )


def notices(s: Scene) -> list[str]:
    events = [e for e in s.record.events.values() if e.type is EventType.NOTICE]
    return [e.content for e in events if e.metadata.get("reason") == "BudgetExceeded"]


TEN = agent("triage", iterations=10)


@pytest.mark.parametrize(
    ("budget", "limit", "iterations"),
    [
        (PlannedBudget(tokens=500), BudgetLimit.TOKENS, 3),
        (PlannedBudget(cost_usd=0.0005), BudgetLimit.COST, 3),
        (PlannedBudget(tool_calls=2), BudgetLimit.TOOL_CALLS, 2),
    ],
)
async def test_reached_limit_forces_a_conclusion_and_is_on_record_once(
    budget: PlannedBudget, limit: BudgetLimit, iterations: int
) -> None:
    s = start()

    outcome = await s.run(budgeted(budget, stage("look", TEN), stage("fix", agent("fixer")), summary=True))

    assert outcome.state is State.COMPLETED
    assert outcome.final_analysis is not None and outcome.final_analysis.startswith("triage concludes")
    assert kinds(s)[:iterations] == [ModelCallKind.ITERATION] * iterations
    assert ModelCallKind.FORCED_CONCLUSION in kinds(s)
    assert s.record.exceeded is not None and s.record.exceeded.limit is limit
    assert notices(s) == [s.record.exceeded.message]
    assert s.record.exceeded.message[:-1] in s.record.texts("triage")[-2][1]
    assert [row.start.name for row in s.record.stages.values()][:1] == ["look"]
    assert "fix" not in {row.start.name for row in s.record.stages.values()}
    assert budget.tokens is None or spent(s) <= budget.tokens


@pytest.mark.parametrize(("minutes", "iterations"), [(4.0, 3), (4.1, 4), (5.0, 4), (5.1, 5), (100.0, 10)])
def test_minutes_force_a_conclusion_in_time(minutes: float, iterations: int) -> None:
    async def slow(_: str) -> ToolOutcome:
        await asyncio.sleep(60)
        return ToolOutcome("a pod")

    s = start()
    s.toolboxes.functions = {"k.get": slow}

    outcome = in_virtual_time(s.run(budgeted(PlannedBudget(minutes=minutes), stage("look", TEN))))

    assert outcome.state is State.COMPLETED
    assert (s.record.exceeded is not None) is (minutes < 100)
    assert kinds(s) == [ModelCallKind.ITERATION] * iterations + [ModelCallKind.FORCED_CONCLUSION]
    assert outcome.final_analysis is not None and outcome.final_analysis.startswith("triage concludes")


@pytest.mark.parametrize(
    "budget",
    [PlannedBudget(tokens=10_000), PlannedBudget(cost_usd=0.01), PlannedBudget(tool_calls=11), PlannedBudget()],
)
async def test_below_its_limits_a_run_is_as_it_would_be_without(budget: PlannedBudget) -> None:
    s, free = start(), start()

    outcome = await s.run(budgeted(budget, stage("look", TEN), summary=True))

    assert outcome == await free.run(budgeted(PlannedBudget(), stage("look", TEN), summary=True))
    assert s.record.exceeded is None and notices(s) == []


@pytest.mark.parametrize("repeatable", [True, False])
@pytest.mark.parametrize(("allowed", "made"), [(3, 3), (4, 4), (5, 5), (9, 9)])
async def test_agents_side_by_side_never_make_more_tool_calls_than_allowed(
    allowed: int, made: int, repeatable: bool
) -> None:
    s = start(tools=4, repeatable=repeatable)

    outcome = await s.run(
        budgeted(PlannedBudget(tool_calls=allowed), stage("look", agent("a"), agent("b"), agent("c")))
    )

    assert outcome.state is State.COMPLETED
    assert len(s.toolboxes.called) == made
    refused = [row for row in s.record.tool_calls.values() if not row.start.made]
    assert refused and all(row.result and "was not made" in row.result.result for row in refused)
    assert InteractionState.STARTED not in {row.state for row in s.record.tool_calls.values()}


@pytest.mark.parametrize("limit", [350, 700, 1000, 2000])
async def test_agents_side_by_side_overspend_by_no_more_than_what_was_in_flight(limit: int) -> None:
    s = start()

    outcome = await s.run(
        budgeted(PlannedBudget(tokens=limit), stage("look", agent("a"), agent("b"), agent("c")), summary=True)
    )

    assert outcome.state is State.COMPLETED and outcome.final_analysis
    assert s.record.exceeded is not None
    assert spent(s) < limit + 3 * USAGE.total_tokens
    assert outcome.executive_summary or "budget" in (outcome.executive_summary_error or "")


async def test_a_conclusion_that_the_budget_forbids_is_put_together_from_the_record() -> None:
    usages = iter([USAGE, Usage(input_tokens=5_000, output_tokens=10)])

    def answer(request: GenerateRequest) -> Answer:
        return Answer("the disk is full", tool_calls=(call("k.get"),), usage=next(usages))

    s = scene(answer, toolboxes=FakeToolboxes({"k.get": says("a pod")}))

    outcome = await s.run(
        budgeted(PlannedBudget(tokens=1_000), stage("look", TEN), stage("fix", agent()), summary=True)
    )

    assert outcome.state is State.COMPLETED
    assert outcome.final_analysis is not None and outcome.final_analysis.endswith("the disk is full")
    assert "The run's budget of 1,000 tokens is reached: 5,110 are spent." in outcome.final_analysis
    assert outcome.executive_summary is None and "1,000 tokens" in (outcome.executive_summary_error or "")
    assert len(s.models.requests) == 2 and len(s.toolboxes.called) == 1
    (told,) = [e for e in s.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert told.metadata["from_record"] is True


async def test_an_agent_that_had_said_nothing_says_so() -> None:
    s = start(Usage(input_tokens=5_000))
    two = stage("look", agent("a", iterations=10))

    s.record.seconds = 3_600  # an attempt that took up all the time there was
    outcome = await s.run(budgeted(PlannedBudget(minutes=5), two))

    assert s.models.requests == []
    assert outcome.final_analysis is not None and "had produced no output" in outcome.final_analysis


async def test_a_synthesis_that_the_budget_forbids_is_the_agents_own_findings() -> None:
    s = start(Usage(input_tokens=400, output_tokens=100))

    outcome = await s.run(budgeted(PlannedBudget(tokens=1_000), stage("look", single("a"), single("b"))))

    assert outcome.state is State.COMPLETED and outcome.final_analysis is not None
    assert "## a\n\na concludes" in outcome.final_analysis and "## b\n\nb concludes" in outcome.final_analysis
    assert [r.agent for r in s.models.requests] == ["a", "b"]


async def test_a_provider_that_reports_nothing_is_estimated_and_told() -> None:
    s = start(None)

    outcome = await s.run(budgeted(PlannedBudget(tokens=30_000), stage("look", agent(iterations=100)), rates=None))

    assert outcome.state is State.COMPLETED
    assert s.record.exceeded is not None and "partly estimated" in s.record.exceeded.message
    first = next(iter(s.record.model_calls.values()))
    sent = sum(len(m.content.encode()) for m in s.models.requests[0].messages)
    assert 0 <= first.start.estimated_tokens - sent // 4 < 30  # its tools beside
    assert first.result is not None and first.result.cost_usd is None


@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.NATIVE_THINKING])
async def test_each_call_has_its_cost(strategy: Strategy) -> None:
    s = start(Usage(input_tokens=1_000, output_tokens=500, cached_tokens=200))

    await s.run(
        budgeted(
            PlannedBudget(),
            stage("look", agent(strategy=strategy)),
            rates=PlannedRates(input=2.0, output=4.0, cached=1.0),
        )
    )

    costs = {str(row.result.cost_usd) for row in s.record.model_calls.values() if row.result}
    assert costs == {"0.00380000"}


BIG = budgeted(
    PlannedBudget(tokens=1_500, tool_calls=6),
    stage("look", agent("a"), agent("b")),
    stage("fix", agent("c")),
    summary=True,
)


async def test_the_sweep_below_covers_the_whole_run() -> None:
    s = start()
    assert await live(s, BIG) is not None and s.record.exceeded is not None
    assert len(s.recorder.calls) < 64


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(64))
async def test_a_death_at_any_step_leaves_the_budget_as_it_was(step: int, before: bool) -> None:
    s = start()
    s.resume(die_at=step, before=before)

    outcome = await live(s, BIG)
    if outcome is None:
        s.resume()
        outcome = await live(s, BIG)

    assert outcome is not None and outcome.state is State.COMPLETED and outcome.final_analysis
    assert s.record.exceeded is not None
    lost = sum(row.state is InteractionState.INTERRUPTED for row in s.record.model_calls.values())
    assert len(s.toolboxes.called) <= 6
    assert spent(s) <= 1_500 + 2 * USAGE.total_tokens and lost <= 2
    assert len(notices(s)) == 1
    assert "fix" not in {row.start.name for row in s.record.stages.values()}
    assert all(row.outcome is not None for row in s.record.executions.values())


async def test_a_stage_that_had_begun_when_the_budget_was_reached_is_concluded_by_the_next_attempt() -> None:
    of = budgeted(PlannedBudget(tokens=700), stage("look", single("a")), stage("fix", agent("b", iterations=50)))
    s, unharmed = start(), start()
    expected = await unharmed.run(of)
    told = unharmed.recorder.calls.index("budget_exceeded")
    s.resume(die_at=told, before=False)
    with pytest.raises(BaseExceptionGroup):
        await s.run(of)

    s.resume()
    outcome = await s.run(of)

    assert outcome == expected
    assert outcome.final_analysis is not None and outcome.final_analysis.startswith("b concludes")
