"""The loop guard in a run: what a model that goes round in circles is told, and how it ends."""

import asyncio
import re
from dataclasses import replace

import pytest

from tarsy.llm.protocol import GenerateRequest
from tarsy.plan.model import AgentLimits, PlannedBudget, Strategy
from tarsy.record.messages import Message, Role, ToolOutcome
from tarsy.record.run import InteractionState, ModelCallKind, State
from tarsy.record.timeline import EventType
from unit.engine.build import FakeToolboxes, Scene, agent, by_turn, call, live, plan, says, scene, stage, told
from unit.engine.clock import in_virtual_time
from wire.scripted_client import Answer

GET = call("k.get", "c1", '{"name": "x", "ns": "y"}')
SAME = call("k.get", "c2", '{ "ns":"y", "name":"x" }')
ACT = call("k.act", "c3")


def start(*answers: Answer, **tools: object) -> Scene:
    functions = {"k.get": says("a pod"), "k.act": says("done"), **{f"k.{n}": t for n, t in tools.items()}}
    boxes = FakeToolboxes(functions, repeatables=frozenset({"k.get"}))  # type: ignore[arg-type]
    return scene(by_turn({"triage": answers}), toolboxes=boxes)


def heard(s: Scene, name: str = "triage") -> list[str]:
    return [told(m) for m in s.record.execution(name).conversation if m.role is Role.TOOL]


async def test_the_same_call_is_answered_from_the_record_with_its_call_id() -> None:
    s = start(Answer(tool_calls=(GET,)), Answer(tool_calls=(SAME,)), Answer("done"))

    await s.run(plan(stage("look", agent())))

    assert len(s.toolboxes.called) == 1
    first, again = s.record.tool_calls.values()
    assert (first.start.made, again.start.made) == (True, False)
    assert again.start.repeated_of == first.start.id and again.state is InteractionState.COMPLETED
    events = [e for e in s.record.events.values() if e.type is EventType.LLM_TOOL_CALL]
    assert heard(s)[0] == "a pod"
    assert events[1].metadata["repeated_of"] == events[0].metadata["call_id"]
    assert events[0].metadata["call_id"] in heard(s)[1] and heard(s)[1].endswith("a pod")


@pytest.mark.parametrize("between", [ACT, call("k.unheard", "c3")], ids=["act", "unknown"])
async def test_a_call_that_may_have_changed_something_makes_it_a_new_call(between: object) -> None:
    s = start(Answer(tool_calls=(GET,)), Answer(tool_calls=(between,)), Answer(tool_calls=(SAME,)), Answer("done"))

    await s.run(plan(stage("look", agent())))

    assert [name for name, _, _ in s.toolboxes.called].count("k.get") == 2


async def test_a_tool_that_is_not_known_to_be_repeatable_is_called_again() -> None:
    s = start(Answer(tool_calls=(ACT,)), Answer(tool_calls=(ACT,)), Answer("done"))

    await s.run(plan(stage("look", agent())))

    assert len(s.toolboxes.called) == 2


async def test_a_call_that_failed_is_made_again() -> None:
    outcomes = iter([ToolOutcome("down", is_error=True), ToolOutcome("a pod"), ToolOutcome("never")])

    async def get(_: str) -> ToolOutcome:
        return next(outcomes)

    s = start(Answer(tool_calls=(GET,)), Answer(tool_calls=(SAME,)), Answer(tool_calls=(GET,)), Answer("done"), get=get)

    await s.run(plan(stage("look", agent())))

    assert len(s.toolboxes.called) == 2 and heard(s)[2].endswith("a pod")


@pytest.mark.parametrize(("pause", "calls"), [(119, 1), (120, 1), (121, 2)])
def test_an_answer_that_is_too_old_is_fetched_again(pause: int, calls: int) -> None:
    async def wait(_: str) -> ToolOutcome:
        await asyncio.sleep(pause)
        return ToolOutcome("waited")

    s = start(
        Answer(tool_calls=(GET,)),
        Answer(tool_calls=(call("k.wait"),)),
        Answer(tool_calls=(SAME,)),
        Answer("done"),
        wait=wait,
    )
    s.toolboxes.repeatables = frozenset({"k.get", "k.wait"})

    in_virtual_time(s.run(plan(stage("look", agent()), limits=AgentLimits(tool_call_seconds=300, finding_repairs=0))))

    assert [name for name, _, _ in s.toolboxes.called].count("k.get") == calls


async def test_the_same_call_twice_in_one_answer_is_made_once() -> None:
    s = start(Answer(tool_calls=(GET, SAME, GET)), Answer("done"))

    await s.run(plan(stage("look", agent())))

    assert len(s.toolboxes.called) == 1 and len(heard(s)) == 3


@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.NATIVE_THINKING, Strategy.REACT])
async def test_three_repetitions_with_a_fresh_look_between_force_a_conclusion(strategy: Strategy) -> None:
    def answer(request: GenerateRequest) -> Answer:
        if "again and again" in request.messages[-1].content:
            return Answer("Final Answer: the disk is full")
        if strategy is Strategy.REACT:
            return Answer('Thought: hm\nAction: k.get\nAction Input: {"name": "x"}')
        return Answer(tool_calls=(GET,))

    s = scene(answer, toolboxes=FakeToolboxes({"k.get": says("a pod")}, repeatables=frozenset({"k.get"})))

    outcome = await s.run(plan(stage("look", agent(strategy=strategy, iterations=50))))

    assert outcome.state is State.COMPLETED and outcome.final_analysis is not None
    assert outcome.final_analysis.endswith("the disk is full")
    kinds = [row.start.kind for row in s.record.model_calls.values()]
    assert kinds == [ModelCallKind.ITERATION] * 5 + [ModelCallKind.FORCED_CONCLUSION]
    assert len(s.toolboxes.called) == 2  # the first call, and one fresh look


async def test_repetitions_do_not_count_against_the_tool_budget() -> None:
    s = start(
        Answer(tool_calls=(GET,)), Answer(tool_calls=(SAME,)), Answer(tool_calls=(call("k.get", "c4"),)), Answer("done")
    )

    await s.run(plan(stage("look", agent())).model_copy(update={"budget": PlannedBudget(tool_calls=3)}))

    assert s.record.exceeded is None and len(s.toolboxes.called) == 2


OF = plan(stage("look", agent()))
SCRIPT = (Answer(tool_calls=(GET,)), Answer(tool_calls=(SAME,)), Answer(tool_calls=(GET, SAME)), Answer("done"))


def without_ages(s: Scene) -> list[Message]:
    """The conversation, without how old the results in it were: a machine may be slow."""
    messages = s.record.execution("triage").conversation
    return [replace(message, content=re.sub(r"\b\d+ s ago", "N s ago", message.content)) for message in messages]


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(30))
async def test_a_death_at_any_step_makes_no_call_twice_that_has_its_answer(step: int, before: bool) -> None:
    unharmed = start(*SCRIPT)
    expected = await live(unharmed, OF)
    assert len(unharmed.recorder.calls) < 30
    s = start(*SCRIPT)
    s.resume(die_at=step, before=before)

    outcome = await live(s, OF)
    if outcome is None:
        s.resume()
        outcome = await live(s, OF)

    assert outcome == expected
    assert without_ages(s) == without_ages(unharmed)
    lost = [t for t in s.record.tool_calls.values() if t.state is InteractionState.INTERRUPTED and t.start.made]
    assert len(s.toolboxes.called) <= 2 + len(lost)  # the first call, and one fresh look


@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.REACT])
def test_a_repetition_is_told_its_age_and_may_be_made_afresh(strategy: Strategy) -> None:
    """Nobody can know that nothing has changed: the state of a cluster is not the run's alone."""
    answers = iter(["a pod", "two pods", "three pods"])

    async def get(_: str) -> ToolOutcome:
        return ToolOutcome(next(answers))

    asks = Answer("Thought: look\nAction: k.get\nAction Input: {}") if strategy is Strategy.REACT else None
    script = [asks or Answer(tool_calls=(call("k.get", f"c{n}"),)) for n in range(4)]
    s = start(*script, Answer("Final Answer: done"), get=get)

    in_virtual_time(s.run(plan(stage("look", agent(strategy=strategy, iterations=9)))))

    results = [m.content for m in s.record.execution("triage").conversation if "callId" in m.content][-4:]
    assert "a pod" in results[0] and "two pods" in results[2]
    assert "you made it 0 s ago with the same arguments" in results[1] and "a pod" in results[1]
    assert "make the same call once more: it is then made afresh" in results[1]
    assert "That was a fresh look already" in results[3] and "120 s old" in results[3] and "two pods" in results[3]
    assert not any("nothing has happened" in result or "could have changed" in result for result in results)


def test_an_answer_from_the_record_says_how_old_it_is() -> None:
    async def wait(_: str) -> ToolOutcome:
        await asyncio.sleep(47)
        return ToolOutcome("waited")

    s = start(
        Answer(tool_calls=(GET,)),
        Answer(tool_calls=(call("k.wait"),)),
        Answer(tool_calls=(SAME,)),
        Answer("done"),
        wait=wait,
    )
    s.toolboxes.repeatables = frozenset({"k.get", "k.wait"})

    in_virtual_time(s.run(OF))

    assert "you made it 47 s ago" in heard(s)[2]
