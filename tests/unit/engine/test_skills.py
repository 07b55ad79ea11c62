"""Skills of agents: in the prompt or loaded, narrowing, never evidence, the same after a death."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldens import check
from tarsy.engine.skills.agent_skills import LOAD_SKILL, AgentSkills, permits
from tarsy.engine.skills.loading import SKILL_LOADED
from tarsy.engine.skills.toolbox import MOST_NAMES, SkillToolbox
from tarsy.plan.model import AgentLimits, AgentPlan, AgentSkill, ObjectRef, Plan, SkillPlan, Strategy
from tarsy.plan.skills import text_digest
from tarsy.record.messages import Role, ToolCall
from tarsy.record.run import State
from tarsy.record.timeline import Event, EventType
from unit.engine.build import FakeToolbox, FakeToolboxes, Scene, agent, by_turn, call, live, plan, says, scene, stage
from wire.scripted_client import Answer

GOLDENS = Path(__file__).with_name("goldens")
GET, LOGS = call("k.get", "c1"), call("k.logs", "c2")


def skill(name: str, *, allowed: Sequence[str] | None = None, text: str = "") -> SkillPlan:
    body = text or f"First do {name}.\nThen stop."
    return SkillPlan(
        ref=ObjectRef(kind="Skill", namespace="team-a", name=name),
        description=f"Use it for {name}.",
        text=body,
        digest=text_digest(body),
        allowed_tools=None if allowed is None else tuple(allowed),
    )


def using(*skills: SkillPlan, required: Sequence[str] = (), strategy: Strategy = Strategy.LANGCHAIN) -> Plan:
    uses = tuple(
        AgentSkill(namespace=one.ref.namespace, name=one.name, required=one.name in required) for one in skills
    )
    it: AgentPlan = agent(strategy=strategy).model_copy(update={"skills": uses})
    return plan(stage("look", it)).model_copy(update={"skills": skills})


def load(*names: str, identity: str = "l1") -> ToolCall:
    listed = ", ".join(f'"{name}"' for name in names)
    return call(LOAD_SKILL, identity, f'{{"names": [{listed}]}}')


def start(*answers: Answer) -> Scene:
    functions = {"k.get": says("a pod"), "k.logs": says("a log")}
    return scene(
        by_turn({"triage": answers}), toolboxes=FakeToolboxes(functions, repeatables=frozenset({"k.get", "k.logs"}))
    )


def answers(s: Scene) -> list[str]:
    return [m.content for m in s.record.execution("triage").conversation if m.role is Role.TOOL]


def notices(s: Scene) -> list[Event]:
    return [one for one in s.record.events.values() if one.metadata.get("reason") == SKILL_LOADED]


@pytest.mark.parametrize("strategy", [Strategy.REACT, Strategy.NATIVE_THINKING, Strategy.LANGCHAIN])
async def test_skills_in_the_first_messages_read_as_their_golden(
    strategy: Strategy, request: pytest.FixtureRequest
) -> None:
    done = "Final Answer: done" if strategy is Strategy.REACT else "done"
    s = start(Answer(done))

    await s.run(using(skill("pods", allowed=["k.get"]), skill("nodes"), required=["pods"], strategy=strategy))

    (asked,) = s.models.requests_of("triage")
    tools = "\n".join(tool.name for tool in asked.tools)
    text = asked.messages[0].content
    section = text[text.index("The people who run this system") :]
    check(GOLDENS / f"skills_{strategy.value}.txt", f"{section}\n\n=====\nBound tools:\n{tools}", request)


async def test_a_skill_is_loaded_with_its_text_a_notice_and_a_row_that_reached_no_server() -> None:
    pods = skill("pods", allowed=["k.*"])
    s = start(Answer(tool_calls=(load("pods"),)), Answer(tool_calls=(GET,)), Answer("done"))

    outcome = await s.run(using(pods, skill("nodes")))

    assert outcome.state is State.COMPLETED and [name for name, _, _ in s.toolboxes.called] == ["k.get"]
    first, _ = answers(s)
    assert "First do pods.\nThen stop." in first and "only these of your tools may be called: k.*." in first
    row = next(iter(s.record.tool_calls.values()))
    assert (row.start.server, row.start.tool, row.start.made, row.start.refused) == ("", LOAD_SKILL, False, None)
    (notice,) = notices(s)
    assert (notice.type, notice.metadata["skill"], notice.metadata["digest"], notice.metadata["required"]) == (
        EventType.NOTICE,
        "pods",
        pods.digest,
        False,
    )
    assert f"sha256 {pods.digest[:12]}" in notice.content


async def test_a_skill_in_the_prompt_is_told_in_the_timeline_once() -> None:
    s = start(Answer(tool_calls=(GET,)), Answer("done"))

    await s.run(using(skill("pods"), required=["pods"]))

    (notice,) = notices(s)
    assert notice.metadata["required"] is True
    assert LOAD_SKILL not in [tool.name for tool in s.models.requests_of("triage")[0].tools]


async def test_names_that_do_not_exist_are_reported_beside_the_texts_of_those_that_do() -> None:
    s = start(
        Answer(tool_calls=(load("pods", "ghosts"),)),
        Answer(tool_calls=(load("ghosts", identity="l2"),)),
        Answer(tool_calls=(call(LOAD_SKILL, "l3", "{}"),)),
        Answer("done"),
    )

    await s.run(using(skill("pods"), skill("nodes")))

    both, none, blank = answers(s)
    assert "First do pods." in both and "There is no skill ghosts. Skills: pods, nodes." in both
    assert none.startswith("[callId: ") and "(error)" in none.splitlines()[0]
    assert "Name at least one skill in names. Skills: pods, nodes." in blank
    assert len(notices(s)) == 1


async def test_a_loaded_skill_is_not_sent_twice() -> None:
    s = start(Answer(tool_calls=(load("pods"),)), Answer(tool_calls=(load("pods", identity="l2"),)), Answer("done"))

    await s.run(using(skill("pods")))

    assert "Skill pods is loaded already; its text stands above." in answers(s)[1]
    assert len(notices(s)) == 1


@pytest.mark.parametrize("count", [MOST_NAMES, MOST_NAMES + 1])
async def test_one_call_loads_a_bounded_number_of_skills(count: int) -> None:
    names = [f"s-{number}" for number in range(count)]
    s = start(Answer(tool_calls=(load(*names),)), Answer("done"))

    await s.run(using(*map(skill, names)))

    assert len(notices(s)) == MOST_NAMES
    assert ("Only the first" in answers(s)[0]) is (count > MOST_NAMES)


async def test_a_skill_narrows_the_tools_from_the_answer_after_its_load_on() -> None:
    s = start(
        Answer(tool_calls=(load("pods"), LOGS)),
        Answer(tool_calls=(call("k.logs", "c3", '{"again": 1}'), GET)),
        Answer("done"),
    )

    await s.run(using(skill("pods", allowed=["k.get"])))

    assert [name for name, _, _ in s.toolboxes.called] == ["k.logs", "k.get"]
    refused = [row for row in s.record.tool_calls.values() if row.start.refused]
    assert [(row.start.tool, row.start.refused) for row in refused] == [("logs", "SkillNarrows")]
    assert "while skill pods is loaded, only k.get may be called" in answers(s)[2]


async def test_a_required_skill_narrows_the_tools_that_are_offered() -> None:
    s = start(Answer(tool_calls=(LOGS,)), Answer("done"))

    await s.run(using(skill("pods", allowed=["k.get", "other.*"]), required=["pods"]))

    assert [tool.name for tool in s.models.requests_of("triage")[0].tools] == ["k.get"]
    assert s.toolboxes.called == []


async def test_a_skill_that_allows_no_tool_still_leaves_the_tools_of_the_engine() -> None:
    s = start(
        Answer(tool_calls=(load("pods"),)),
        Answer(tool_calls=(load("nodes", identity="l2"), GET)),
        Answer("done"),
    )

    await s.run(using(skill("pods", allowed=[]), skill("nodes")))

    assert "First do nodes." in answers(s)[1] and s.toolboxes.called == []
    assert "while skill pods is loaded, only no tools may be called" in answers(s)[2]


def box() -> FakeToolbox:
    return FakeToolbox({"k.get": says("a"), "k.logs": says("b"), "m.query": says("c")}, {}, frozenset(), [])


PATTERNS = st.lists(st.sampled_from(["k.get", "k.*", "m.*", "m.query", "x.all", "k.l*", "*.get"]), max_size=3)


@given(lists=st.lists(st.none() | PATTERNS, max_size=5), required=st.integers(0, 5))
def test_allowed_tools_never_widen(lists: list[list[str] | None], required: int) -> None:
    skills = tuple(skill(f"s-{number}", allowed=allowed) for number, allowed in enumerate(lists))
    without = {tool.name for tool in box().tools}
    kept = AgentSkills(skills[:required], skills[required:])

    offered = {tool.name for tool in SkillToolbox(box(), kept).tools} - {LOAD_SKILL}
    left = [{name for name in without if permits(skills[:count], name)} for count in range(len(skills) + 1)]

    assert offered <= without
    assert all(after <= before for before, after in pairwise(left))


@given(lists=st.permutations([["k.*"], ["k.get", "m.*"], None]))
def test_the_order_of_loads_does_not_matter(lists: list[list[str] | None]) -> None:
    skills = [skill(f"s-{number}", allowed=allowed) for number, allowed in enumerate(lists)]

    assert [tool.name for tool in box().tools if permits(skills, tool.name)] == ["k.get"]


async def test_a_skill_is_no_evidence_and_no_tool_that_was_called() -> None:
    limits = AgentLimits(finding_repairs=1)
    s = start(
        Answer(tool_calls=(load("pods"),)),
        Answer("It is DNS."),
        Answer(tool_calls=(GET,)),
        Answer("It is the pod."),
        Answer("It is the pod."),
    )

    await s.run(using(skill("pods")).model_copy(update={"limits": limits}))

    reasons = [one.metadata.get("reason") for one in s.record.events.values()]
    assert "NoToolCalled" in reasons and [name for name, _, _ in s.toolboxes.called] == ["k.get"]


async def test_a_citation_of_a_skill_does_not_hold() -> None:
    finding = (
        '```json\n{"summary": "It is DNS", "confidence": "High", "claims": [{"text": "DNS fails", "citations": '
        '[{"callId": "REF", "quote": "First do pods."}]}]}\n```'
    )
    s = start()

    def brain(request: object) -> Answer:
        made = [row.start for row in s.record.tool_calls.values()]
        if not made:
            return Answer(tool_calls=(load("pods"),))
        message = answers(s)[0]
        return Answer(finding.replace("REF", message[len("[callId: ") : message.index("]")]))

    s.models._brain = brain  # the id of the call is not known before

    outcome = await s.run(using(skill("pods")))

    assert outcome.finding is not None
    (citation,) = outcome.finding.claims[0].citations
    assert (citation.supported, citation.reason) == (False, "a skill is an instruction, so it is not evidence")


async def test_react_gets_a_skill_without_a_fence_and_a_result_in_one() -> None:
    s = start(
        Answer('Thought: load\nAction: load_skill\nAction Input: {"names": ["pods"]}'),
        Answer("Thought: look\nAction: k.get\nAction Input: {}"),
        Answer("Final Answer: done"),
    )

    await s.run(using(skill("pods"), strategy=Strategy.REACT))

    texts = [text for _, text in s.record.texts("triage")]
    loaded, got = (text for text in texts if text.startswith("Observation: "))
    assert "First do pods." in loaded and "TOOL_RESULT" not in loaded and "TOOL_RESULT" in got


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("die_at", range(1, 12))
async def test_a_death_at_any_step_loads_a_skill_once_and_keeps_what_it_narrows(die_at: int, before: bool) -> None:
    of = using(skill("pods", allowed=["k.get"]))
    s = start(Answer(tool_calls=(load("pods"),)), Answer(tool_calls=(LOGS, GET)), Answer("done"))
    s.resume(die_at=die_at, before=before)
    await live(s, of)
    s.resume()

    outcome = await s.run(of)

    assert outcome.state is State.COMPLETED
    assert len(notices(s)) == 1 and "k.logs" not in [name for name, _, _ in s.toolboxes.called]


async def test_a_plan_without_skills_offers_no_tool_to_load_them_and_refuses_the_call() -> None:
    s = start(Answer(tool_calls=(load("pods"),)), Answer("done"))

    await s.run(plan(stage("look", agent())))

    assert LOAD_SKILL not in [tool.name for tool in s.models.requests_of("triage")[0].tools]
    assert "There is no tool load_skill" in answers(s)[0]
