"""Tools that an agent may not call, and servers that change their tools while a run goes on."""

import pytest

from tarsy.engine.tool_calls.loop_guard import canonical
from tarsy.plan.model import Plan, PlannedBudget, Strategy
from tarsy.record.messages import Access, Refusal, Role
from tarsy.record.run import State
from tarsy.record.timeline import Event, EventType
from unit.engine.build import FakeToolboxes, Scene, agent, by_turn, call, live, plan, says, scene, single, stage, told
from wire.scripted_client import Answer

DELETE = call("k.delete", "c1", '{"name": "web"}')
GET = call("k.get", "c2")
REFUSED = Refusal("ToolPolicy", "This agent may only read. Available: k.get.")


def boxes(**rest: object) -> FakeToolboxes:
    functions = {"k.get": says("a pod"), "k.scale": says("scaled")}
    return FakeToolboxes(functions, repeatables=frozenset({"k.get"}), refusals={"k.delete": REFUSED}, **rest)  # type: ignore[arg-type]


def start(*answers: Answer, **rest: object) -> Scene:
    return scene(by_turn({"triage": answers}), toolboxes=boxes(**rest))


def events(s: Scene, kind: EventType) -> list[Event]:
    return [event for event in s.record.events.values() if event.type is kind]


async def test_a_refused_call_is_an_answer_an_event_and_a_row_and_reaches_no_server() -> None:
    s = start(Answer(tool_calls=(DELETE, GET)), Answer("done"))

    outcome = await s.run(plan(stage("look", agent())))

    assert outcome.state is State.COMPLETED
    assert [name for name, _, _ in s.toolboxes.called] == ["k.get"]
    refused, got = s.record.tool_calls.values()
    assert (refused.start.made, refused.start.refused, refused.start.access) == (False, "ToolPolicy", Access.UNKNOWN)
    assert (got.start.made, got.start.refused, got.start.access) == (True, None, Access.READ_ONLY)
    answers = [told(m) for m in s.record.execution("triage").conversation if m.role is Role.TOOL]
    assert answers == [REFUSED.sentence, "a pod"]
    first, second = events(s, EventType.LLM_TOOL_CALL)
    assert (first.metadata["refused"], first.metadata["made"], first.metadata["is_error"]) == (
        "ToolPolicy",
        False,
        True,
    )
    assert first.content == REFUSED.sentence and "refused" not in second.metadata


async def test_a_refused_call_counts_in_no_budget() -> None:
    s = start(Answer(tool_calls=(DELETE,)), Answer(tool_calls=(GET,)), Answer("done"))
    of = plan(stage("look", agent())).model_copy(update={"budget": PlannedBudget(tool_calls=1)})

    await s.run(of)

    assert [name for name, _, _ in s.toolboxes.called] == ["k.get"]


@pytest.mark.parametrize("name", ["k.delete", "`k.delete`"])
async def test_react_is_refused_as_everybody_is_and_not_told_that_the_tool_is_unknown(name: str) -> None:
    written = f'Thought: it must go\nAction: {name}\nAction Input: {{"name": "web"}}'
    s = start(Answer(written), Answer("Thought: so be it\nFinal Answer: the node is full"))

    outcome = await s.run(plan(stage("look", agent(strategy=Strategy.REACT))))

    assert outcome.final_analysis == "the node is full" and s.toolboxes.called == []
    (row,) = s.record.tool_calls.values()
    assert (row.start.tool, row.start.made, row.start.refused) == ("delete", False, "ToolPolicy")
    assert canonical(row.start.call.arguments) == canonical('{"name": "web"}')
    assert REFUSED.sentence in s.record.texts("triage")[3][1]
    assert events(s, EventType.ERROR) == []


async def test_react_is_refused_too_where_it_has_no_tool_at_all() -> None:
    s = start(Answer("Thought: go\nAction: k.delete\nAction Input: {}"), Answer("Final Answer: nothing to do"))
    s.toolboxes.functions = {}

    await s.run(plan(stage("look", agent(strategy=Strategy.REACT))))

    assert [row.start.refused for row in s.record.tool_calls.values()] == ["ToolPolicy"]


async def test_a_call_that_may_be_repeated_but_changes_something_makes_answers_stale() -> None:
    again = call("k.get", "c3")
    s = start(
        Answer(tool_calls=(GET,)),
        Answer(tool_calls=(call("k.scale", "c4"),)),
        Answer(tool_calls=(again,)),
        Answer("ok"),
    )
    s.toolboxes.idempotent = frozenset({"k.scale"})

    await s.run(plan(stage("look", agent())))

    assert [name for name, _, _ in s.toolboxes.called] == ["k.get", "k.scale", "k.get"]
    assert [row.start.repeatable for row in s.record.tool_calls.values()] == [True, True, True]


async def test_a_change_that_may_be_repeated_is_never_answered_from_the_record() -> None:
    scale = [Answer(tool_calls=(call("k.scale", f"c{n}"),)) for n in range(2)]
    s = start(*scale, Answer("done"))
    s.toolboxes.idempotent = frozenset({"k.scale"})

    await s.run(plan(stage("look", agent())))

    assert [name for name, _, _ in s.toolboxes.called] == ["k.scale", "k.scale"]


OLD, NEW = {"get": "1", "scale": "1"}, {"get": "2", "wipe": "1"}
TWO = {"triage": [Answer("one")], "verify": [Answer("two")]}


def two_stages() -> Plan:
    return plan(stage("look", agent()), stage("check", agent("verify")))


async def test_an_agent_that_finds_the_tools_of_the_run_says_nothing() -> None:
    s = scene(TWO, toolboxes=boxes(seen={"k": OLD}))

    await s.run(two_stages())

    assert s.record.pins == {"k": OLD}
    assert events(s, EventType.NOTICE) == [] and s.record.missing == {}


async def test_a_later_agent_that_finds_other_tools_says_what_changed() -> None:
    s = scene(TWO, toolboxes=boxes(seen={"k": OLD}))
    s.toolboxes.later = [{"k": OLD}, {"k": NEW}]

    await s.run(two_stages())

    (notice,) = events(s, EventType.NOTICE)
    assert s.record.pins == {"k": OLD}
    assert {name: notice.metadata[name] for name in ("server", "reason", "added", "removed", "changed")} == {
        "server": "k",
        "reason": "ToolsChanged",
        "added": ["wipe"],
        "removed": ["scale"],
        "changed": ["get"],
    }
    assert "added wipe; removed scale; changed get" in notice.content
    assert notice.execution == s.record.execution("verify").start.id
    assert "get, scale" in s.record.missing["k"]


async def test_many_changes_are_told_in_few_words() -> None:
    s = scene(TWO, toolboxes=boxes())
    s.toolboxes.later = [{"k": {}}, {"k": {f"t{n:03}": "1" for n in range(500)}}]

    await s.run(two_stages())

    (notice,) = events(s, EventType.NOTICE)
    assert len(notice.metadata["added"]) == 20 and "and 480 more" in notice.content and len(notice.content) < 500


async def test_agents_side_by_side_compare_with_one_list() -> None:
    members = [agent(name) for name in ("left", "right")]
    script = {name: [Answer("it is full")] for name in ("left", "right", "both-synth")}
    s = scene(script, toolboxes=boxes())
    s.toolboxes.later = [{"k": OLD}, {"k": NEW}]

    await s.run(plan(stage("both", *members).model_copy(update={"synthesis": single("both-synth")})))

    assert len(events(s, EventType.NOTICE)) == 1 and s.record.pins in ({"k": OLD}, {"k": NEW})


async def test_an_attempt_that_goes_on_compares_with_what_the_first_one_saw() -> None:
    script = {"triage": [Answer(tool_calls=(GET,)), Answer("done")]}
    of = plan(stage("look", agent()))
    s = scene(by_turn(script), toolboxes=boxes(seen={"k": OLD}))
    s.resume(die_at=8)
    assert await live(s, of) is None and s.record.pins == {"k": OLD}
    for _ in range(2):  # told once, however often it is resumed
        s.resume(die_at=6)
        s.toolboxes.seen = {"k": NEW}
        await live(s, of)
    s.resume()

    await s.run(of)

    assert len(events(s, EventType.NOTICE)) == 1 and s.record.pins == {"k": OLD}


async def test_tools_that_nobody_accepted_are_told_and_degrade_the_evidence() -> None:
    s = scene(TWO, toolboxes=boxes(seen={"k": OLD}, unaccepted={"k": ["scale"]}))

    await s.run(plan(stage("look", agent())))

    (notice,) = events(s, EventType.NOTICE)
    assert notice.metadata == {"server": "k", "reason": "ToolsNotAccepted", "withheld": ["scale"]}
    assert "kubectl tarsy tools k" in notice.content and "scale" in s.record.missing["k"]
