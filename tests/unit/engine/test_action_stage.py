"""Stages of kind Action: they act on a finding by approved calls, say so, and leave the finding as it is."""

import json
import re

import pytest

from tarsy.llm.protocol import GenerateRequest
from tarsy.plan.model import Plan, ReplayPlan, StagePlan
from tarsy.record.approvals.acted import ModelWord
from tarsy.record.finding import Confidence
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.messages import ToolOutcome
from tarsy.record.run import RunOutcome, StageKind, State
from tarsy.record.timeline import EventType, TimelineEvent
from tarsy.record.waiting import RunWaits
from unit.engine.build import FakeToolboxes, Scene, ScriptedModels, agent, by_turn, call, live, plan, says, scene, stage
from unit.engine.people import ScriptedPeople
from wire.scripted_client import Answer

SCALE, LOOK = "k8s.scale", "k8s.get"


def finding(summary: str, confidence: str = "Low") -> str:
    block = json.dumps({"summary": summary, "confidence": confidence, "claims": []})
    return f"{summary}\n\n```finding\n{block}\n```"


def acting(name: str = "act") -> StagePlan:
    return stage(name, agent("actor", servers=["k8s"])).model_copy(update={"acts": True})


FOUND = stage("look", agent("triage", servers=["k8s"]))
CHAIN = plan(FOUND, acting())
LAUNDERED = finding("The moon did it.", "High")


def script(
    end: str = "YES", *, acts: bool = True, more: dict[str, list[Answer]] | None = None
) -> dict[str, list[Answer]]:
    scale = [Answer("One replica is too few.", tool_calls=(call(SCALE),))] if acts else []
    return {
        "triage": [Answer(tool_calls=(call(LOOK),)), Answer(finding("One replica is too few."))],
        "actor": [*scale, Answer(f"I looked at it. {LAUNDERED}\n\n{end}")],
        **(more or {}),
    }


def start(of: dict[str, list[Answer]] | None = None) -> tuple[Scene, ScriptedPeople]:
    tools = FakeToolboxes({SCALE: says("scaled"), LOOK: says("one replica")}, repeatables=frozenset({LOOK}))
    tools.gated = frozenset({SCALE})
    made = scene(by_turn(of or script()), toolboxes=tools)
    people = ScriptedPeople(made.record)
    made.approvals = people
    people.approve(SCALE)
    return made, people


def told(made: Scene) -> TimelineEvent:
    (event,) = [one for one in made.record.events.values() if one.metadata.get("reason") == "Acted"]
    return event


def summary(outcome: RunOutcome) -> tuple[str, Confidence]:
    assert outcome.finding is not None
    return outcome.finding.summary, outcome.finding.confidence


def word(made: Scene) -> ModelWord | None:
    (row,) = [one for one in made.record.stages.values() if one.start.kind is StageKind.ACTION]
    return None if row.outcome is None or row.outcome.acted is None else row.outcome.acted.word


async def test_it_acts_by_an_approved_call_and_the_finding_is_that_of_the_stage_before() -> None:
    made, _ = start()
    outcome = await made.run(CHAIN)
    assert (outcome.state, summary(outcome)) == (State.COMPLETED, ("One replica is too few.", Confidence.LOW))
    assert "moon" not in (outcome.final_analysis or "")
    assert [name for name, *_ in made.toolboxes.called] == [LOOK, SCALE]
    event = told(made)
    assert event.type is EventType.NOTICE and event.content.startswith("An action was taken: k8s.scale (call_")
    assert (event.metadata["acted"], event.metadata["word"], "contradiction" in event.metadata) == (True, "Yes", False)
    assert word(made) is ModelWord.YES


async def test_the_marker_is_in_no_event() -> None:
    made, _ = start()
    await made.run(CHAIN)
    finals = [e.content for e in made.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert any(text.startswith("I looked at it.") for text in finals)
    assert not any(text.rstrip().endswith("YES") for text in finals)


async def test_it_is_sent_the_finding_as_data_and_told_to_prefer_inaction() -> None:
    made, _ = start()
    await made.run(CHAIN)
    request = next(one for one in made.models.requests if one.agent == "actor")
    system, user = (one.content for one in request.messages[:2])
    assert "Prefer inaction" in system and "YES if you took an action" in system and "finding block" not in system
    before, _, after = user.partition("<!-- STAGE_CONCLUSION_START -->")
    assert "What earlier stages concluded" in before and "One replica is too few." in after


async def test_nothing_is_executed_before_people_approved() -> None:
    made, people = start()
    people._decided.clear()
    with pytest.raises(RunWaits):
        await made.run(CHAIN)
    assert [name for name, *_ in made.toolboxes.called] == [LOOK]
    people.reject(SCALE)
    made.resume()
    outcome = await made.run(CHAIN)
    assert [name for name, *_ in made.toolboxes.called] == [LOOK]
    assert outcome.state is State.COMPLETED
    event = told(made)
    assert event.content == (
        "No action was taken. The model says that it took an action, but the record has no approved call that was sent."
    )
    assert event.type is EventType.ERROR and event.metadata["acted"] is False


@pytest.mark.parametrize(
    ("end", "acts", "said", "contradicts"),
    [
        ("YES", True, "Yes", False),
        ("NO", True, "No", True),
        ("YES", False, "Yes", True),
        ("NO", False, "No", False),
        ("yes", True, "Unknown", False),
        ("**YES**", True, "Unknown", False),
        ("YES.", False, "Unknown", False),
        ("YES, it is done", False, "Unknown", False),
        ("", True, "Unknown", False),
        ("YES\n\nMore follows.", True, "Unknown", False),
        ("  NO  \n\n", False, "No", False),
    ],
)
async def test_the_last_line_is_read_strictly_and_the_record_wins(
    end: str, acts: bool, said: str, contradicts: bool
) -> None:
    made, _ = start(script(end, acts=acts))
    await made.run(CHAIN)
    event = told(made)
    assert (event.metadata["acted"], event.metadata["word"]) == (acts, said)
    assert ("contradiction" in event.metadata) is contradicts


async def test_a_later_stage_that_investigates_has_the_finding_and_knows_what_is_on_record() -> None:
    verify = [Answer(tool_calls=(call(LOOK),)), Answer(finding("Three replicas; it has recovered.", "Low"))]
    made, _ = start(script("NO", more={"verifier": verify}))
    outcome = await made.run(plan(FOUND, acting(), stage("verify", agent("verifier", servers=["k8s"]))))
    assert summary(outcome)[0] == "Three replicas; it has recovered."
    request = next(one for one in made.models.requests if one.agent == "verifier")
    assert "On record: An action was taken: k8s.scale" in request.messages[1].content


async def test_what_an_action_stage_looks_at_supports_no_finding() -> None:
    of = script("NO", acts=False)
    of["triage"] = [Answer(finding("It is the moon.", "High"))] * 2
    of["actor"] = [Answer(tool_calls=(call(LOOK),)), Answer("It is fine.\nNO")]
    made, _ = start(of)
    outcome = await made.run(CHAIN)
    assert outcome.finding is not None and outcome.finding.no_tool_called
    assert [name for name, *_ in made.toolboxes.called] == [LOOK]


async def test_a_failed_action_stage_leaves_the_finding() -> None:
    of = script()
    of["actor"] = [Answer(" ")] * 9
    made, _ = start(of)
    outcome = await made.run(CHAIN)
    assert outcome.state is State.FAILED
    assert summary(outcome) == ("One replica is too few.", Confidence.LOW)


async def test_a_run_that_is_asked_to_conclude_does_not_begin_to_act() -> None:
    made, _ = start()
    made.control.conclude()
    outcome = await made.run(CHAIN)
    assert outcome.state is State.COMPLETED
    assert all(row.start.kind is not StageKind.ACTION for row in made.record.stages.values())
    assert SCALE not in [name for name, *_ in made.toolboxes.called]


async def test_a_run_that_is_asked_to_conclude_while_people_decide_keeps_its_finding_and_acts_not() -> None:
    made, people = start()
    people._decided.clear()
    with pytest.raises(RunWaits):
        await made.run(CHAIN)
    made.resume()
    made.control.conclude()
    people.approve(SCALE)
    outcome = await made.run(CHAIN)
    assert (outcome.state, summary(outcome)) == (State.COMPLETED, ("One replica is too few.", Confidence.LOW))
    assert [name for name, *_ in made.toolboxes.called] == [LOOK]


async def test_what_an_action_changed_contradicts_no_claim_about_the_cause() -> None:
    """The cause is a state, which the agent that acts reads again after it has changed it."""
    left = ["replicas: 1 of 3", "replicas: 3 of 3"]

    async def look(_: str) -> ToolOutcome:
        return await says(left.pop(0), EvidenceMarks(Integrity.K, state=True))("")

    def brain(request: GenerateRequest) -> Answer:
        if request.agent == "actor":
            return by_turn({"actor": [Answer("Few.", tool_calls=(call(SCALE),)), look_again, Answer("Done.\nYES")]})(
                request
            )
        refs = re.findall(r"\[callId: (call_[0-9a-f]{12})\]", "\n".join(m.content for m in request.messages))
        if not refs:
            return Answer(tool_calls=(call(LOOK),))
        claim = {"text": "There is one.", "citations": [{"callId": refs[0], "quote": "replicas: 1 of 3"}]}
        block = json.dumps({"summary": "One replica.", "confidence": "High", "claims": [claim]})
        return Answer(f"One.\n\n```finding\n{block}\n```")

    look_again = Answer(tool_calls=(call(LOOK),))
    made, _ = start()
    made.toolboxes.functions = {SCALE: says("scaled"), LOOK: look}
    made.models = ScriptedModels(brain)
    outcome = await made.run(CHAIN)

    assert [name for name, *_ in made.toolboxes.called] == [LOOK, SCALE, LOOK] and left == []
    assert outcome.finding is not None
    (claim,) = outcome.finding.claims
    assert (claim.supported, claim.contradicted, outcome.finding.confidence) == (True, False, Confidence.HIGH)


async def test_a_replay_says_that_nothing_is_done_whatever_the_model_says() -> None:
    made, people = start()
    made.toolboxes.gated = frozenset()  # a record answers, so nobody is asked
    replayed: Plan = CHAIN.replaying(ReplayPlan(source="Investigation a"))
    await made.run(replayed)
    event = told(made)
    assert people.asked == [] and event.type is EventType.NOTICE
    assert event.content == "No action was taken: this is a replay." and event.metadata["acted"] is False


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
async def test_no_action_is_taken_twice_wherever_the_process_dies(before: bool) -> None:
    for die_at in range(80):
        made, _ = start()
        made.resume(die_at=die_at, before=before)
        if await live(made, CHAIN) is not None:
            break
        sent = [name for name, *_ in made.toolboxes.called].count(SCALE)
        made.resume()
        outcome = await made.run(CHAIN)
        calls = [name for name, *_ in made.toolboxes.called].count(SCALE)
        assert sent <= calls <= 1 and outcome.state is State.COMPLETED
        assert summary(outcome) == ("One replica is too few.", Confidence.LOW)
        # Only where the process died between the approval's use and the call is it not sent, and nobody knows.
        assert told(made).metadata["acted"] is True
    else:
        raise AssertionError("it never lived")
    assert die_at > 15


def test_only_plans_with_an_action_stage_have_a_field_that_older_workers_refuse() -> None:
    stored = CHAIN.stages[1].model_dump(mode="json")
    assert stored["acts"] is True
    assert "acts" not in CHAIN.stages[0].model_dump(mode="json"), "older workers read all other plans"
