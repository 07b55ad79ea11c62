"""No conclusion before evidence: an answer before any tool call is sent back once, and a run without one says so."""

import pytest

from tarsy.llm.protocol import GenerateRequest
from tarsy.plan.model import AgentLimits, Plan, PlannedBudget, Strategy
from tarsy.record.messages import Role
from tarsy.record.run import ModelCallKind, State
from tarsy.record.timeline import EventType
from unit.engine.build import FakeToolboxes, Scene, agent, by_turn, call, live, plan, says, scene, single, stage
from wire.scripted_client import Answer

ONCE = AgentLimits(finding_repairs=1)
BLOCK = '```finding\n{"summary": "It is full.", "confidence": "Low", "claims": []}\n```'
EARLY, LATE = f"It must be full.\n\n{BLOCK}", f"The disk is full.\n\n{BLOCK}"
BY_STRATEGY = {
    Strategy.LANGCHAIN: (Answer(EARLY), Answer(tool_calls=(call("k.df"),)), Answer(LATE)),
    Strategy.REACT: (
        Answer(f"Thought: sure\nFinal Answer: {EARLY}"),
        Answer("Thought: look\nAction: k.df\nAction Input: {}"),
        Answer(f"Thought: sure\nFinal Answer: {LATE}"),
    ),
}


def of(
    strategy: Strategy = Strategy.LANGCHAIN, *, iterations: int = 6, limits: AgentLimits = ONCE, summary: bool = False
) -> Plan:
    return plan(
        stage("look", agent(strategy=strategy, iterations=iterations, servers=("k",))), limits=limits, summary=summary
    )


def start(*answers: Answer, tools: bool = True) -> Scene:
    boxes = FakeToolboxes({"k.df": says("100% used")} if tools else {})
    return scene(by_turn({"triage": answers, "summary": [Answer("Full.")]}), toolboxes=boxes)


def asked(s: Scene) -> list[str]:
    return [text for role, text in s.record.texts("triage") if role is Role.USER][1:]


def events(s: Scene, kind: EventType) -> list[str]:
    return [event.content for event in s.record.events.values() if event.type is kind]


@pytest.mark.parametrize("strategy", BY_STRATEGY)
async def test_an_answer_before_any_tool_call_is_sent_back_once_with_the_tools(strategy: Strategy) -> None:
    s = start(*BY_STRATEGY[strategy])

    outcome = await s.run(of(strategy))

    assert outcome.final_analysis == "The disk is full."
    assert asked(s)[0].startswith("You have not called a tool") and "1 tool: k.df." in asked(s)[0]
    assert ("Action: k.df\nAction Input: {}" in asked(s)[0]) == (strategy is Strategy.REACT)
    assert [r.offers_tools for r in s.models.requests] == [strategy is not Strategy.REACT] * 3
    assert events(s, EventType.FINAL_ANALYSIS) == ["The disk is full."]
    (notice,) = [e for e in s.record.events.values() if e.metadata.get("reason") == "NoToolCalled"]
    assert "sent back once" in notice.content
    assert outcome.finding is not None and not outcome.finding.no_tool_called


async def test_an_agent_that_will_not_call_is_believed_the_second_time_and_the_finding_says_so() -> None:
    s = start(Answer(EARLY), Answer(LATE))

    outcome = await s.run(of())

    assert (outcome.state, outcome.final_analysis, len(asked(s))) == (State.COMPLETED, "The disk is full.", 1)
    assert outcome.finding is not None and outcome.finding.no_tool_called
    assert any("No tool was called" in note for note in outcome.finding.notes)


async def test_an_agent_without_tools_is_neither_sent_back_nor_told_to_use_them() -> None:
    bare = plan(stage("look", agent()), limits=ONCE)
    for strategy, s in ((bare, start(Answer(LATE), tools=False)), (bare, start(Answer(LATE), tools=False))):
        outcome = await s.run(strategy)
        assert asked(s) == []
        opening = "\n".join(m.content for m in s.models.requests[0].messages)
        assert "You have no tools" in opening and "Call tools" not in opening and "Use the tools" not in opening
        assert outcome.finding is not None and not outcome.finding.no_tool_called


async def test_a_single_call_is_not_told_to_use_tools() -> None:
    s = start(Answer(LATE), tools=True)

    await s.run(plan(stage("look", single("triage", Strategy.SINGLE_CALL)), limits=ONCE))

    opening = "\n".join(m.content for m in s.models.requests[0].messages)
    assert asked(s) == [] and "You have no tools" in opening and "Call tools" not in opening


@pytest.mark.parametrize("servers", [("k",), ()])
async def test_an_agent_whose_servers_are_all_missing_is_not_told_to_use_tools(servers: tuple[str, ...]) -> None:
    s = start(Answer(LATE), tools=False)
    s.toolboxes.unavailable = {"k": "it did not start"}

    outcome = await s.run(plan(stage("look", agent(servers=servers)), limits=ONCE))

    assert asked(s) == [] and "Call tools" not in s.models.requests[0].messages[1].content
    assert outcome.finding is not None and outcome.finding.no_tool_called == bool(servers)


async def test_where_findings_are_not_repaired_nothing_is_sent_back() -> None:
    s = start(Answer(EARLY))

    outcome = await s.run(of(limits=AgentLimits(finding_repairs=0)))

    assert outcome.final_analysis == "It must be full." and asked(s) == []


@pytest.mark.parametrize(("iterations", "back"), [(1, 0), (2, 1), (3, 1)])
async def test_an_agent_at_its_limit_is_not_sent_back(iterations: int, back: int) -> None:
    s = start(Answer(EARLY), Answer(LATE))

    outcome = await s.run(of(iterations=iterations))

    assert len(asked(s)) == back
    assert outcome.final_analysis == ("The disk is full." if back else "It must be full.")
    assert events(s, EventType.FINAL_ANALYSIS) == [outcome.final_analysis]


async def test_a_run_that_must_conclude_takes_the_answer_and_shows_it_as_the_analysis() -> None:
    def answer(request: GenerateRequest) -> Answer:
        s.control.concluding = True  # while the model answers
        return Answer(EARLY)

    s = scene(answer, toolboxes=FakeToolboxes({"k.df": says("x")}))

    outcome = await s.run(of())

    assert outcome.final_analysis == "It must be full." and len(s.models.requests) == 1
    assert events(s, EventType.FINAL_ANALYSIS) == ["It must be full."]


async def test_a_later_stage_may_conclude_from_calls_of_an_earlier_one_that_it_cites() -> None:
    citing = cites("call_1", "quote of it")
    first = (Answer(tool_calls=(call("k.df"),)), Answer(LATE))
    boxes = FakeToolboxes({"k.df": says("x")})
    s = scene(by_turn({"triage": first, "fixer": [Answer(citing), Answer(citing)]}), toolboxes=boxes)
    none = scene(
        by_turn({"triage": first, "fixer": [Answer(EARLY), Answer(LATE)]}), toolboxes=FakeToolboxes({"k.df": says("x")})
    )
    two = plan(stage("look", agent(servers=("k",))), stage("fix", agent("fixer", servers=("k",))), limits=ONCE)

    await s.run(two)
    await none.run(two)

    assert not any("You have not called" in text for _, text in s.record.texts("fixer"))
    assert any("You have not called" in text for _, text in none.record.texts("fixer"))


async def test_a_budget_that_is_reached_takes_the_answer() -> None:
    s = start(Answer(EARLY), Answer("never"))

    outcome = await s.run(of().model_copy(update={"budget": PlannedBudget(tokens=1)}))

    assert outcome.state is State.COMPLETED and len(s.models.requests) == 1


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("strategy", BY_STRATEGY)
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(24))
async def test_a_death_at_any_step_sends_back_once(step: int, strategy: Strategy, before: bool) -> None:
    unharmed = start(*BY_STRATEGY[strategy])
    expected = await live(unharmed, of(strategy))
    assert len(unharmed.recorder.calls) < 24
    s = start(*BY_STRATEGY[strategy])
    s.resume(die_at=step, before=before)

    if (outcome := await live(s, of(strategy))) is None:
        s.resume()
        outcome = await live(s, of(strategy))

    assert outcome is not None and expected is not None
    assert outcome.final_analysis == expected.final_analysis
    told = [text for role, text in s.record.texts("triage") if "You have not called a tool" in text]
    assert len(told) == 1


# The repair of a finding.


def cites(ref: str, quote: str) -> str:
    claims = f'[{{"text": "t", "citations": [{{"callId": "{ref}", "quote": "{quote}"}}]}}]'
    return f'```finding\n{{"summary": "It is full.", "confidence": "High", "claims": {claims}}}\n```'


def repairing(request: GenerateRequest) -> Answer:
    """Cites what does not hold; sent back, it looks once more, and cites that."""
    results = [m for m in request.messages if m.role is Role.TOOL]
    back = any("cannot be used" in m.content for m in request.messages if m.role is Role.USER)
    if not results or (back and len(results) == 1):
        return Answer(tool_calls=(call("k.df", f"c{len(results)}"),))
    ref = results[-1].content.split("]")[0].removeprefix("[callId: ")
    return Answer(cites(ref, "100% used") if back else cites("call_000000000000", "made up words"))


async def test_a_repair_may_call_tools_in_one_answer_and_the_finding_cites_them() -> None:
    s = scene(repairing, toolboxes=FakeToolboxes({"k.df": says("100% used")}))

    outcome = await s.run(of())

    kinds = [row.start.kind for row in s.record.model_calls.values()]
    assert kinds == [ModelCallKind.ITERATION] * 2 + [ModelCallKind.FINDING_REPAIR] * 2
    assert [r.offers_tools for r in s.models.requests] == [True, True, True, False]
    assert all(r.tools == s.models.requests[0].tools for r in s.models.requests)
    assert outcome.finding is not None and outcome.finding.supported_claims == 1


async def test_a_model_that_only_calls_tools_in_its_repair_keeps_its_answer() -> None:
    def answer(request: GenerateRequest) -> Answer:
        if len(s.models.requests) == 2:
            return Answer("It is full.")
        return Answer(tool_calls=(call("k.df", f"c{len(s.models.requests)}"),))

    s = scene(answer, toolboxes=FakeToolboxes({"k.df": says("100% used")}))

    outcome = await s.run(of())

    assert outcome.final_analysis == "It is full." and len(s.toolboxes.called) == 2


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(24))
async def test_a_death_at_any_step_of_a_repair_with_tools_changes_nothing(step: int, before: bool) -> None:
    boxes = {"k.df": says("100% used")}
    s = scene(repairing, toolboxes=FakeToolboxes(boxes, repeatables=frozenset(boxes)))
    s.resume(die_at=step, before=before)

    if (outcome := await live(s, of())) is None:
        s.resume()
        outcome = await live(s, of())

    assert outcome is not None and outcome.finding is not None and outcome.finding.supported_claims == 1
