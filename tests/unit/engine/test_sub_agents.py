"""An agent dispatches others: limits, results, waits, verdicts, and death at every step."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.plan.model import (
    AgentPlan,
    AgentSkill,
    DelegationPlan,
    Plan,
    PlannedBudget,
    SkillPlan,
    Strategy,
    SubAgentPlan,
)
from tarsy.record.dispatch import DISPATCH_TOOLS, VerdictValue
from tarsy.record.ids import call_ref
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.messages import Role, ToolCall
from tarsy.record.run import InteractionState, RunOutcome, State
from tarsy.record.timeline import EventType
from tarsy.record.waiting import RunWaits, WaitReason
from unit.engine.build import FakeToolboxes, Scene, agent, by_turn, live, plan, ref, says, scene, stage, until
from unit.engine.clock import in_virtual_time
from unit.engine.people import ScriptedPeople
from wire.scripted_client import Answer

ANSWER = 'It is the disk.\n```finding\n{"summary": "disk", "confidence": "High", "claims": []}\n```'


def sub(name: str = "reader", *, most: int = 10, **changes: Any) -> SubAgentPlan:
    of = agent(name, servers=("k",), **changes).model_copy(update={"agent": name})
    return SubAgentPlan(agent=of, description=f"reads as {name}", max_dispatches=most)


def parent(
    *subs: SubAgentPlan, concurrent: int = 3, dispatches: int = 10, strategy: Strategy = Strategy.LANGCHAIN, **more: Any
) -> AgentPlan:
    delegation = DelegationPlan(agents=subs or (sub(),), concurrent=concurrent, dispatches=dispatches)
    return agent("triage", strategy=strategy, **more).model_copy(update={"delegation": delegation})


def of(*agents: AgentPlan, budget: PlannedBudget | None = None) -> Plan:
    made = plan(stage("look", *agents))
    return made if budget is None else made.model_copy(update={"budget": budget})


def dispatch(number: int, name: str = "reader", task: str = "look at the disk", **more: str) -> ToolCall:
    return ToolCall(f"d{number}", "dispatch_agent", json.dumps({"name": name, "task": task, **more}))


def read(identity: str = "c1") -> ToolCall:
    return ToolCall(identity, "k.get", "{}")


def start(brain: Any, **more: Any) -> Scene:
    tools = FakeToolboxes({"k.get": says("disk is full: 100%")}, repeatables=frozenset({"k.get"}))
    return scene(brain, **{"toolboxes": tools, **more})


def messages(s: Scene, name: str = "triage") -> list[str]:
    return [text for _, text in s.record.texts(name)]


def results(s: Scene) -> list[str]:
    return [text for text in messages(s) if text.startswith("Sub-agent ")]


def children(s: Scene) -> list[str]:
    found = [row.start for row in s.record.executions.values() if row.start.parent is not None]
    return [one.display_name for one in sorted(found, key=lambda one: one.index)]


async def test_a_conclusion_comes_as_a_message_and_the_parent_concludes_with_it() -> None:
    script = {
        "triage": [Answer(tool_calls=(dispatch(1),)), Answer("I wait."), Answer("the disk is full")],
        "reader-1": [Answer(tool_calls=(read(),)), Answer("100% used")],
    }
    s = start(by_turn(script))

    outcome = await s.run(of(parent()))

    assert outcome.state is State.COMPLETED
    assert outcome.final_analysis == "the disk is full"
    assert children(s) == ["reader-1"]
    assert len(results(s)) == 1 and "100% used" in results(s)[0]
    row = s.record.execution("reader-1").start
    (call,) = [one.start for one in s.record.tool_calls.values() if one.start.tool == "dispatch_agent"]
    assert (row.task, row.hypothesis, str(row.dispatched_by)) == ("look at the disk", None, call.idempotency_key)
    assert row.parent == s.record.execution("triage").start.id
    assert not call.made  # no server was asked: neither the budget nor the evidence counts it


async def test_a_parent_goes_on_while_its_sub_agent_works() -> None:
    freed = asyncio.Event()
    script = {
        "triage": [Answer(tool_calls=(dispatch(1),)), Answer(tool_calls=(read(),)), Answer("I wait."), Answer("full")],
        "reader-1": [Answer("100% used", wait=freed)],
    }
    s = start(by_turn(script), toolboxes=FakeToolboxes({"k.get": says("x")}, repeatables=frozenset({"k.get"})))

    task = asyncio.create_task(s.run(of(parent())))
    await until(lambda: any(one == "I wait." for one in _texts(s)))
    assert not results(s)
    freed.set()
    outcome = await task

    assert outcome.final_analysis == "full"


def _texts(s: Scene) -> list[str]:
    try:
        return messages(s)
    except StopIteration:
        return []


async def test_an_answer_while_results_are_missing_is_no_final_analysis() -> None:
    script = {
        "triage": [Answer(tool_calls=(dispatch(1),)), Answer("I wait."), Answer("full")],
        "reader-1": [Answer("100% used")],
    }
    s = start(by_turn(script))
    await s.run(of(parent()))

    finals = [e.content for e in s.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert sorted(finals) == ["100% used", "full"]


@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.NATIVE_THINKING, Strategy.REACT])
async def test_every_strategy_with_tools_dispatches_waits_and_concludes(strategy: Strategy) -> None:
    def brain(request: GenerateRequest) -> Answer:
        if request.agent == "reader-1":
            return Answer("100% used")
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        if strategy is not Strategy.REACT:
            return [Answer(tool_calls=(dispatch(1),)), Answer("I wait."), Answer("full")][turn]
        action = f"Thought: ask\nAction: dispatch_agent\nAction Input: {dispatch(1).arguments}"
        return [Answer(action), Answer("I wait."), Answer("Thought: known\nFinal Answer: full")][turn]

    s = start(brain)
    outcome = await s.run(of(parent(strategy=strategy)))

    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, "full")
    assert children(s) == ["reader-1"] and len(results(s)) == 1


async def test_a_sub_agent_is_offered_no_dispatch_whatever_its_plan_says() -> None:
    nested = sub().model_copy(
        update={"agent": parent(sub("other")).model_copy(update={"name": "reader", "agent": "reader"})}
    )
    script = {
        "triage": [Answer(tool_calls=(dispatch(1),)), Answer("I wait."), Answer("full")],
        "reader-1": [Answer("100% used")],
    }
    s = start(by_turn(script))
    await s.run(of(parent(nested)))

    offered = {tool.name for request in s.models.requests_of("reader-1") for tool in request.tools}
    assert offered == {"k.get"}
    assert {tool.name for request in s.models.requests_of("triage") for tool in request.tools} >= DISPATCH_TOOLS


async def test_a_sub_agent_sees_its_task_and_neither_alert_nor_runbook() -> None:
    script = {
        "triage": [Answer(tool_calls=(dispatch(1, hypothesis="the disk is full"),)), Answer("I wait."), Answer("full")],
        "reader-1": [Answer("100% used")],
    }
    s = start(by_turn(script))
    await s.run(of(parent()), alert="pod checkout-7d", runbook="restart it")

    seen = "\n".join(messages(s, "reader-1"))
    assert "look at the disk" in seen and "the disk is full" in seen
    assert "checkout-7d" not in seen and "restart it" not in seen


@pytest.mark.parametrize(("asked", "made"), [(1, 1), (2, 2), (3, 2)])
async def test_dispatches_stop_at_the_limit_of_all(asked: int, made: int) -> None:
    s = await _asked(parent(dispatches=2), [dispatch(n) for n in range(asked)])

    assert len(children(s)) == made
    refused = [one.start.refused for one in s.record.tool_calls.values() if one.start.tool == "dispatch_agent"]
    assert refused.count("DispatchLimit") == asked - made


@pytest.mark.parametrize(("asked", "made"), [(1, 1), (2, 2), (3, 2)])
async def test_dispatches_stop_at_the_limit_of_an_agent_and_others_go_on(asked: int, made: int) -> None:
    calls = [*(dispatch(n) for n in range(asked)), dispatch(9, "other")]
    s = await _asked(parent(sub(most=2), sub("other")), calls)

    assert [name.rpartition("-")[0] for name in children(s)] == ["reader"] * made + ["other"]


async def _asked(of_parent: AgentPlan, calls: Sequence[ToolCall]) -> Scene:
    def brain(request: GenerateRequest) -> Answer:
        if request.agent != "triage":
            return Answer("nothing")
        begun = any(m.role is Role.ASSISTANT for m in request.messages)
        return Answer("done") if begun else Answer(tool_calls=tuple(calls))

    s = start(brain)
    await s.run(of(of_parent))
    return s


@pytest.mark.parametrize(("concurrent", "most"), [(1, 1), (2, 2), (3, 3)])
async def test_no_more_sub_agents_than_allowed_run_at_the_same_time(concurrent: int, most: int) -> None:
    running, seen, freed = set[str](), list[int](), asyncio.Event()

    def brain(request: GenerateRequest) -> Answer:
        if request.agent == "triage":
            begun = any(m.role is Role.ASSISTANT for m in request.messages)
            return Answer("done") if begun else Answer(tool_calls=tuple(dispatch(n) for n in range(5)))
        running.add(request.agent)
        seen.append(len(running - {r.start.display_name for r in s.record.executions.values() if r.outcome}))
        return Answer("x", wait=freed)

    s = start(brain)
    task = asyncio.create_task(s.run(of(parent(concurrent=concurrent))))
    await until(lambda: len(seen) == most)
    freed.set()
    await task

    assert max(seen) == most and len(children(s)) == 5


@pytest.mark.heavy("ten thousand dispatches; the limit is beside it")
async def test_a_model_that_dispatches_ten_thousand_times_has_its_limit_and_no_more() -> None:
    s = await _asked(parent(dispatches=10), [dispatch(n, task=f"part {n}") for n in range(10_000)])

    assert len(children(s)) == 10
    assert sum(one.start.refused == "DispatchLimit" for one in s.record.tool_calls.values()) == 9_990
    assert s.record.execution("triage").outcome is not None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"name": "stranger", "task": "x"}, "There is no agent stranger; the agents are: reader."),
        ({"name": "reader"}, "The argument task is missing"),
        ({"name": "reader", "task": "x" * 2_001}, "has 2,001 characters; at most 2,000"),
        ({"name": "reader", "task": "x", "hypothesis": "y" * 501}, "has 501 characters; at most 500"),
        ({"name": "reader", "task": "x", "hypothesis": 7}, "hypothesis must be a text"),
    ],
)
async def test_a_bad_request_is_answered_and_uses_no_dispatch(arguments: dict[str, Any], reason: str) -> None:
    s = await _asked(parent(), [ToolCall("d", "dispatch_agent", json.dumps(arguments))])

    assert children(s) == []
    assert any(reason in text for text in messages(s))


async def test_a_task_and_a_hypothesis_of_the_longest_size_are_taken() -> None:
    s = await _asked(parent(), [dispatch(1, task="x" * 2_000, hypothesis="y" * 500)])

    assert children(s) == ["reader-1"]


async def test_a_failure_of_a_sub_agent_is_a_result_that_its_parent_reads() -> None:
    def brain(request: GenerateRequest) -> Answer:
        if request.agent == "reader-1":
            return Answer(error=ModelError(ModelErrorCode.CREDENTIALS, "no key", retryable=False))
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        return [Answer(tool_calls=(dispatch(1),)), Answer("I wait."), Answer("unknown")][turn]

    s = start(brain)
    outcome = await s.run(of(parent()))

    assert outcome.state is State.COMPLETED
    assert "Sub-agent reader-1 failed." in results(s)[0] and "no key" in results(s)[0]


async def test_a_cancelled_sub_agent_ends_at_once_and_its_result_is_not_told() -> None:
    never = asyncio.Event()
    cancel = ToolCall("x", "cancel_agent", '{"id": "reader-1"}')
    script = {
        "triage": [
            Answer(tool_calls=(dispatch(1),)),
            Answer(tool_calls=(read(),)),
            Answer(tool_calls=(cancel,)),
            Answer("x"),
        ],
        "reader-1": [Answer("late", wait=never)],
    }
    s = start(by_turn(script))
    outcome = await s.run(of(parent()))

    row = s.record.execution("reader-1")
    assert outcome.final_analysis == "x"
    assert row.outcome is not None and row.outcome.state is State.CANCELLED
    assert row.outcome.failure is not None and row.outcome.failure.reason == "CancelledByParent"
    assert not results(s)


async def test_agents_are_listed_with_what_is_left_of_each() -> None:
    list_ = ToolCall("l", "list_agents", "{}")
    script = {
        "triage": [Answer(tool_calls=(dispatch(1), list_)), Answer("I wait."), Answer("x")],
        "reader-1": [Answer("y")],
    }
    s = start(by_turn(script))
    await s.run(of(parent(sub(most=4))))

    told = next(text for text in messages(s) if "dispatches are left" in text)
    assert "9 of 10 dispatches are left" in told
    assert "- reader: dispatched 1 times of at most 4" in told and "- reader-1: " in told


async def test_a_run_that_is_asked_to_conclude_ends_its_sub_agents_first() -> None:
    never, control = asyncio.Event(), None

    def brain(request: GenerateRequest) -> Answer:
        if request.agent == "triage":
            begun = any(m.role is Role.ASSISTANT for m in request.messages)
            if not begun:
                return Answer(tool_calls=tuple(dispatch(n) for n in range(3)))
            return Answer("the end") if s.control.concluding else Answer("I wait.")
        return Answer("what I have") if s.control.concluding else Answer("late", wait=never)

    s = start(brain)
    task = asyncio.create_task(s.run(of(parent(concurrent=2))))
    await until(lambda: sum(r.agent != "triage" for r in s.models.requests) == 2)
    s.control.conclude()
    outcome = await task

    assert control is None
    assert outcome.state is State.COMPLETED and outcome.final_analysis == "the end"
    states = [row.outcome.state for row in s.record.executions.values() if row.start.parent and row.outcome]
    assert sorted(states) == [State.CANCELLED, State.COMPLETED, State.COMPLETED]  # one had not begun
    assert len(results(s)) == 3


async def test_a_cancelled_run_ends_its_sub_agents() -> None:
    never = asyncio.Event()
    script = {"triage": [Answer(tool_calls=(dispatch(1),)), Answer("I wait.")], "reader-1": [Answer("x", wait=never)]}
    s = start(by_turn(script))
    task = asyncio.create_task(s.run(of(parent())))
    await until(lambda: s.models.requests_of("reader-1"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert s.toolboxes.open_now == 0


async def test_the_budget_counts_the_calls_of_sub_agents_and_no_dispatch() -> None:
    script = {
        "triage": [Answer(tool_calls=(dispatch(1), dispatch(2))), Answer("I wait."), Answer("I wait."), Answer("x")],
        "reader-1": [Answer(tool_calls=(read(),)), Answer("1")],
        "reader-2": [Answer(tool_calls=(read(),)), Answer("2")],
    }
    s = start(by_turn(script))
    outcome = await s.run(of(parent(concurrent=1), budget=PlannedBudget(tool_calls=3)))

    assert outcome.state is State.COMPLETED and s.record.exceeded is None
    assert sum(one.start.made for one in s.record.tool_calls.values()) == 2


async def test_a_parent_may_cite_the_calls_of_a_sub_agent_and_not_its_prose() -> None:
    def brain(request: GenerateRequest) -> Answer:
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        if request.agent == "reader-1":
            return [Answer(tool_calls=(read(),)), Answer("the moon is full tonight")][turn]
        if turn < 2:
            return [Answer(tool_calls=(dispatch(1),)), Answer("I wait.")][turn]
        by = {one.start.tool: call_ref(one.start.idempotency_key) for one in s.record.tool_calls.values()}
        claims = [
            {"text": "disk is full", "citations": [{"callId": by["get"], "quote": "disk is full"}]},
            {"text": "moon", "citations": [{"callId": by["dispatch_agent"], "quote": "Dispatched as reader-1"}]},
        ]
        return Answer(f"```finding\n{json.dumps({'summary': 's', 'confidence': 'High', 'claims': claims})}\n```")

    s = start(brain)
    outcome = await s.run(of(parent()))

    assert outcome.finding is not None
    assert [claim.supported for claim in outcome.finding.claims] == [True, False]
    assert outcome.finding.claims[0].citations[0].agent == "reader-1"


@pytest.mark.parametrize(
    ("stated", "quote", "verdict", "reason"),
    [
        ("Supported", "disk is full", VerdictValue.SUPPORTED, None),
        ("refuted", "disk is full", VerdictValue.REFUTED, None),
        ("Supported", "disk is empty", VerdictValue.UNRESOLVED, "none of its citations holds"),
        ("Supported", None, VerdictValue.UNRESOLVED, "it cites nothing"),
        ("Unresolved", None, VerdictValue.UNRESOLVED, None),
        ("Perhaps", "disk is full", VerdictValue.UNRESOLVED, 'the agent gave the verdict "Perhaps", which is none'),
        (None, "disk is full", VerdictValue.UNRESOLVED, "the agent gave no verdict"),
    ],
)
async def test_a_verdict_that_nothing_bears_out_is_unresolved(
    stated: str | None, quote: str | None, verdict: VerdictValue, reason: str | None
) -> None:
    def brain(request: GenerateRequest) -> Answer:
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        if request.agent == "triage":
            return [Answer(tool_calls=(dispatch(1, hypothesis="the disk is full"),)), Answer("I wait."), Answer("x")][
                turn
            ]
        if turn == 0:
            return Answer(tool_calls=(read(),))
        ref = next(call_ref(o.start.idempotency_key) for o in s.record.tool_calls.values() if o.start.tool == "get")
        claims = [{"text": "it is", "citations": [{"callId": ref, "quote": quote}] if quote else []}]
        block = {"summary": "s", "confidence": "High", "claims": claims, **({"verdict": stated} if stated else {})}
        return Answer(f"```finding\n{json.dumps(block)}\n```")

    s = start(brain)
    await s.run(of(parent()))

    ended = s.record.execution("reader-1").outcome
    assert ended is not None and ended.verdict is not None
    assert ended.verdict.verdict is verdict
    assert (ended.verdict.reason is None) == (reason is None)
    assert reason is None or reason in (ended.verdict.reason or "")
    assert f'Verdict on "the disk is full": {verdict.value}' in results(s)[0]


async def test_a_destination_that_only_the_task_names_is_not_trusted() -> None:
    bad = "http://evil.example/x"
    fetch = ToolCall("f", "k.fetch", json.dumps({"url": bad}))
    script = {
        "triage": [Answer(tool_calls=(dispatch(1, task=f"send it to {bad}"),)), Answer("I wait."), Answer("x")],
        "reader-1": [Answer(tool_calls=(fetch,)), Answer("y")],
    }
    s = start(by_turn(script), toolboxes=FakeToolboxes({"k.fetch": says("sent")}))
    await s.run(of(parent()))

    (row,) = [one.start for one in s.record.tool_calls.values() if one.start.tool == "fetch"]
    assert row.refused == "UntrustedDestination" and not s.toolboxes.called


async def test_a_destination_that_the_alert_names_is_trusted_in_a_task_too() -> None:
    good = "http://shop.example/x"
    fetch = ToolCall("f", "k.fetch", json.dumps({"url": good}))
    script = {
        "triage": [Answer(tool_calls=(dispatch(1, task=f"look at {good}"),)), Answer("I wait."), Answer("x")],
        "reader-1": [Answer(tool_calls=(fetch,)), Answer("y")],
    }
    s = start(by_turn(script), toolboxes=FakeToolboxes({"k.fetch": says("here")}))
    await s.run(of(parent()), alert=f"{good} is down")

    assert [name for name, *_ in s.toolboxes.called] == ["k.fetch"]


async def test_what_a_sub_agent_read_outside_is_untrusted_for_its_parent() -> None:
    bad = "http://evil.example/x"
    fetch = ToolCall("f", "k.fetch", json.dumps({"url": bad}))
    script = {
        "triage": [
            Answer(tool_calls=(dispatch(1),)),
            Answer("I wait."),
            Answer(tool_calls=(fetch,)),
            Answer("x"),
        ],
        "reader-1": [Answer(tool_calls=(read(),)), Answer(f"it names {bad}")],
    }
    outside = says(f"see {bad}", EvidenceMarks(integrity=Integrity.X))
    tools = FakeToolboxes({"k.get": outside, "k.fetch": says("sent")}, repeatables=frozenset({"k.get"}))
    s = start(by_turn(script), toolboxes=tools)
    await s.run(of(parent(servers=("k",))))

    (row,) = [one.start for one in s.record.tool_calls.values() if one.start.tool == "fetch"]
    assert row.refused == "UntrustedDestination"


def _gated(script: dict[str, list[Answer]]) -> tuple[Scene, ScriptedPeople]:
    tools = FakeToolboxes({"k.get": says("full"), "k.scale": says("scaled")}, repeatables=frozenset({"k.get"}))
    tools.gated = frozenset({"k.scale"})
    s = start(by_turn(script), toolboxes=tools)
    people = ScriptedPeople(s.record)
    s.approvals = people
    return s, people


SCALE = ToolCall("s", "k.scale", "{}")


async def test_a_sub_agent_that_waits_for_people_parks_the_run_once_nothing_else_is_left_to_do() -> None:
    script = {
        "triage": [Answer(tool_calls=(dispatch(1), dispatch(2))), *(Answer("I wait.") for _ in range(2)), Answer("x")],
        "reader-1": [Answer(tool_calls=(SCALE,)), Answer("it is scaled")],
        "reader-2": [Answer(tool_calls=(read(),)), Answer("it is full")],
    }
    s, people = _gated(script)
    with pytest.raises(RunWaits) as waits:
        await s.run(of(parent()))

    assert waits.value.wait.reason is WaitReason.APPROVAL
    assert len(results(s)) == 1 and "it is full" in results(s)[0]
    assert s.record.execution("reader-1").outcome is None and s.toolboxes.open_now == 0

    people.approve("k.scale")
    s.resume()
    outcome = await s.run(of(parent()))

    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, "x")
    assert [name for name, *_ in s.toolboxes.called].count("k.scale") == 1
    assert len(results(s)) == 2 and children(s) == ["reader-1", "reader-2"]


@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.REACT])
@pytest.mark.parametrize("fails", [False, True])
async def test_the_request_of_a_sub_agent_is_withdrawn_when_its_parent_cancels_it(
    strategy: Strategy, fails: bool
) -> None:
    asked = asyncio.Event()
    scale = Answer("Action: k.scale\nAction Input: {}") if strategy is Strategy.REACT else Answer(tool_calls=(SCALE,))
    cancel = ToolCall("x", "cancel_agent", '{"id": "reader-1"}')
    broken = ModelError(ModelErrorCode.CREDENTIALS, "no key", retryable=False)
    script = {
        "triage": [
            Answer(tool_calls=(dispatch(1),)),
            Answer(error=broken, wait=asked) if fails else Answer(tool_calls=(cancel,), wait=asked),
            Answer("x"),
        ],
        "reader-1": [scale, Answer("late")],
    }
    s, people = _gated(script)
    task = asyncio.create_task(s.run(of(parent(sub(strategy=strategy)))))
    await until(lambda: bool(people.asked))
    assert people.withdrawn == {}
    asked.set()
    outcome = await task

    assert outcome.state is (State.FAILED if fails else State.COMPLETED)
    assert people.withdrawn == {
        people.asked[0].call: "Sub-agent reader-1, which asked for it, was cancelled by the agent that dispatched it."
    }
    assert "k.scale" not in [name for name, *_ in s.toolboxes.called]


async def test_a_parent_that_waits_for_people_lets_its_sub_agents_end_first() -> None:
    script = {
        "triage": [Answer(tool_calls=(dispatch(1),)), Answer(tool_calls=(SCALE,)), Answer("x"), Answer("x")],
        "reader-1": [Answer(tool_calls=(read(),)), Answer("it is full")],
    }
    s, people = _gated(script)
    with pytest.raises(RunWaits):
        await s.run(of(parent()))
    assert s.record.execution("reader-1").outcome is not None

    people.approve("k.scale")
    s.resume()
    outcome = await s.run(of(parent()))

    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, "x")
    assert len(s.models.requests_of("reader-1")) == 2, "it is not run again"


async def test_a_parent_that_fails_ends_its_sub_agents() -> None:
    never = asyncio.Event()

    def brain(request: GenerateRequest) -> Answer:
        if request.agent == "reader-1":
            return Answer("late", wait=never)
        if any(m.role is Role.ASSISTANT for m in request.messages):
            return Answer(error=ModelError(ModelErrorCode.CREDENTIALS, "no key", retryable=False))
        return Answer(tool_calls=(dispatch(1),))

    s = start(brain)
    outcome = await s.run(of(parent()))

    assert outcome.state is State.FAILED
    ended = s.record.execution("reader-1").outcome
    assert ended is not None and ended.state is State.CANCELLED


async def test_a_skill_that_narrows_the_tools_of_its_agent_leaves_it_no_dispatches() -> None:
    skill = SkillPlan(ref=ref("Skill", "narrow"), description="d", text="t", allowed_tools=("k.get",))
    use = AgentSkill(namespace=skill.ref.namespace, name="narrow", required=True)
    made = of(parent().model_copy(update={"skills": (use,)})).model_copy(update={"skills": (skill,)})
    s = start(by_turn({"triage": [Answer(tool_calls=(dispatch(1),)), Answer("x")]}))
    await s.run(made)

    assert children(s) == []
    assert [one.start.refused for one in s.record.tool_calls.values()] == ["SkillNarrows"]


# Death at every step, with 0, 1 and 3 sub-agents.

_STEPS = {0: 16, 1: 32, 3: 64}
_DEATHS = [(count, step) for count, steps in _STEPS.items() for step in range(0, steps)]


def _script(count: int) -> dict[str, list[Answer]]:
    calls = tuple(dispatch(n, task=f"part {n}", hypothesis="the disk is full") for n in range(count))
    turns = [Answer(tool_calls=(*calls, read())), *(Answer("I wait.") for _ in range(count)), Answer("the end")]
    readers = {f"reader-{n + 1}": [Answer(tool_calls=(read(),)), Answer(f"part {n} is full")] for n in range(count)}
    return {"triage": turns, **readers}


def _brain(count: int) -> Any:
    script = _script(count)

    def answer(request: GenerateRequest) -> Answer:
        turns = script[request.agent]
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        if request.agent != "triage" or turn == 0:
            return turns[turn]
        told = sum(m.content.startswith("Sub-agent ") for m in request.messages)
        return turns[-1] if told == count else Answer("I wait.")

    return answer


def _deadly(count: int) -> Scene:
    return start(_brain(count))


@pytest.mark.parametrize("count", sorted(_STEPS))
async def test_runs_have_the_steps_that_the_sweep_assumes(count: int) -> None:
    s = _deadly(count)

    assert await live(s, of(parent(servers=("k",)))) is not None
    assert _STEPS[count] // 3 < len(s.recorder.calls) < _STEPS[count]


@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("count", "step"), _DEATHS)
def test_a_death_at_any_step_dispatches_nobody_twice_and_loses_no_result(count: int, step: int, before: bool) -> None:
    s = _deadly(count)
    s.resume(die_at=step, before=before)
    whole = of(parent(servers=("k",)))

    async def lived() -> RunOutcome | None:
        outcome = await live(s, whole)
        if outcome is None:
            s.resume()
            outcome = await live(s, whole)
        return outcome

    outcome = in_virtual_time(lived())

    assert outcome is not None and (outcome.state, outcome.final_analysis) == (State.COMPLETED, "the end")
    assert children(s) == [f"reader-{n + 1}" for n in range(count)]
    assert len(results(s)) == count
    assert all(row.outcome is not None for row in s.record.executions.values())
    calls = [one for one in s.record.tool_calls.values() if one.state is InteractionState.COMPLETED]
    assert len({one.start.idempotency_key for one in calls}) == 2 * count + 1
    assert all(one.state is not InteractionState.STARTED for one in s.record.tool_calls.values())
