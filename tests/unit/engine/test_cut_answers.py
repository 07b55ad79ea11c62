"""Answers that end at their model's output limit, or hold nothing but a repetition, say so."""

import pytest

from tarsy.plan.model import AgentLimits, AgentPlan, Strategy
from tarsy.record.messages import Role
from tarsy.record.run import RunOutcome, State
from tarsy.record.timeline import EventType
from tarsy.record.usage import Usage
from unit.engine.build import FakeToolboxes, Scene, agent, by_turn, call, plan, says, scene, single, stage
from unit.engine.clock import in_virtual_time
from unit.engine.memory import Crash
from wire.scripted_client import Answer

FINDING = '```finding\n{"summary": "The disk is full.", "confidence": "High", "claims": []}\n```'
WHO = [
    pytest.param(agent(), id="langchain"),
    pytest.param(agent(strategy=Strategy.REACT), id="react"),
    pytest.param(agent(strategy=Strategy.NATIVE_THINKING), id="native-thinking"),
    pytest.param(single("triage", Strategy.SINGLE_CALL), id="single-call"),
]
CUT = "its model reached its output limit"


def cut(text: str) -> Answer:
    return Answer(text, finish_reason="length", usage=Usage(input_tokens=9, output_tokens=512))


async def run(s: Scene, who: AgentPlan | None = None, **limits: int) -> RunOutcome:
    return await s.run(plan(stage("look", who or agent()), limits=AgentLimits(**{"finding_repairs": 0, **limits})))


@pytest.mark.parametrize("who", WHO)
async def test_an_answer_cut_by_length_says_so_in_timeline_and_finding(who: AgentPlan) -> None:
    s = scene({"triage": [cut("Final Answer: The disk of node-1 is")]})

    outcome = await run(s, who)

    assert (outcome.final_analysis is not None and outcome.final_analysis.startswith("The disk of node-1 is")) or (
        outcome.final_analysis or ""
    ).startswith("Final Answer: The disk")
    assert CUT in (outcome.final_analysis or "")
    assert outcome.finding is not None and any("cut off" in note for note in outcome.finding.notes)
    (notice,) = [e for e in s.record.events.values() if e.metadata.get("reason") == "CutByLength"]
    assert "after 512 tokens" in notice.content and "spec.maxOutputTokens of LLMProvider local" in notice.content
    assert s.record.execution("triage").conversation[-1].content.endswith("is"), "the record has the model's own words"


@pytest.mark.parametrize("who", [WHO[0], WHO[2], WHO[3]])
async def test_the_event_of_its_text_is_marked(who: AgentPlan) -> None:
    s = scene({"triage": [cut("The disk of node-1 is")]})
    await run(s, who)
    (final,) = [e for e in s.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert final.metadata["cut"] == "length"


async def test_a_whole_answer_says_nothing_of_it_nor_does_one_after_a_cut_one() -> None:
    tools = FakeToolboxes({"k.a": says("x")})
    looked = Answer("Looking", tool_calls=(call("k.a"),), finish_reason="length")
    s = scene({"triage": [looked, Answer(f"The disk.\n\n{FINDING}")]}, toolboxes=tools)

    outcome = await run(s)

    assert outcome.final_analysis == "The disk."
    assert outcome.finding is not None and not any("cut off" in note for note in outcome.finding.notes)
    assert [e.metadata["reason"] for e in s.record.events.values() if e.type is EventType.NOTICE] == ["CutByLength"]


async def test_a_finding_that_is_repaired_still_belongs_to_an_answer_that_was_cut() -> None:
    s = scene({"triage": [cut("The disk of node-1 is"), Answer(FINDING)]})
    outcome = await run(s, finding_repairs=1)
    assert outcome.finding is not None and outcome.finding.summary == "The disk is full."
    assert any("cut off" in note for note in outcome.finding.notes)


@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(14))
def test_an_attempt_that_resumes_says_the_same(step: int) -> None:
    async def live(s: Scene) -> RunOutcome:
        try:
            return await run(s)
        except (Crash, BaseExceptionGroup):
            s.resume()
            return await run(s)

    expected = in_virtual_time(live(scene(by_turn({"triage": [cut("The disk is")] * 2}))))
    s = scene(by_turn({"triage": [cut("The disk is")] * 2}))
    s.resume(die_at=step, before=False)
    assert in_virtual_time(live(s)) == expected


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("text", ["i" * 900, "no " * 300, "\n" * 5_000 + " "])
async def test_a_short_answer_that_holds_only_a_repetition_is_none(who: AgentPlan, text: str) -> None:
    s = scene({"triage": [Answer(text), Answer("Final Answer: the disk")]})
    outcome = await run(s, who)
    assert outcome.state is State.COMPLETED and "the disk" in (outcome.final_analysis or "")
    assistant = [text for role, text in s.record.texts("triage") if role is Role.ASSISTANT]
    assert not assistant[0].strip()


async def test_a_model_that_only_repeats_itself_gives_no_summary() -> None:
    s = scene(lambda request: Answer("i" * 1_500) if request.agent == "summary" else Answer("The disk is full."))
    outcome = await s.run(plan(stage("look", agent()), summary=True))
    assert outcome.state is State.COMPLETED
    assert outcome.executive_summary is None and outcome.executive_summary_error
