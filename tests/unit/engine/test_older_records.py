"""A run that an older version began goes on: older prompts, a loop state without today's fields."""

import json
from dataclasses import replace

import pytest

from tarsy.plan.model import AgentLimits, Plan, Strategy
from tarsy.record.finding import Finding
from tarsy.record.messages import Role
from tarsy.record.run import LoopState, State
from unit.engine.build import FakeToolboxes, Scene, agent, by_turn, call, live, plan, says, scene, stage
from wire.scripted_client import Answer

BLOCK = '```finding\n{"summary": "It is full.", "confidence": "Low", "claims": []}\n```'
OLD = "Agent: triage\n\n## Time\nThis investigation step began on Friday, 2026-11-20 09:30 UTC.\n\nUse the tools."
SCRIPTS = {
    Strategy.LANGCHAIN: [Answer(tool_calls=(call("k.df"),)), Answer(tool_calls=(call("k.df", "c2"),)), Answer(BLOCK)],
    Strategy.REACT: [
        Answer("Thought: look\nAction: k.df\nAction Input: {}"),
        Answer("Thought: look\nAction: k.df\nAction Input: {}"),
        Answer(f"Thought: known\nFinal Answer: {BLOCK}"),
    ],
}


def start(*answers: Answer) -> Scene:
    return scene(by_turn({"triage": answers}), toolboxes=FakeToolboxes({"k.df": says("100% used")}))


def of(strategy: Strategy = Strategy.LANGCHAIN) -> Plan:
    return plan(stage("look", agent(strategy=strategy, servers=("k",))), limits=AgentLimits())


def made_older(s: Scene) -> None:
    """The record as the version before wrote it."""
    row = s.record.execution("triage")
    for seq, message in row.messages.items():
        if message.role is Role.SYSTEM:
            row.messages[seq] = replace(message, content=OLD)
    known = row.loop.model_dump(mode="json")
    known.pop("sent_back")
    row.loop = LoopState.model_validate(known)


async def steps(strategy: Strategy) -> int:
    s = start(*SCRIPTS[strategy])
    await s.run(of(strategy))
    return len(s.recorder.calls)


@pytest.mark.parametrize("strategy", SCRIPTS)
async def test_a_run_with_older_prompts_goes_on_from_every_step(strategy: Strategy) -> None:
    for step in range(3, await steps(strategy)):
        s = start(*SCRIPTS[strategy])
        s.resume(die_at=step)
        assert await live(s, of(strategy)) is None
        made_older(s)
        s.resume()

        outcome = await live(s, of(strategy))

        assert outcome is not None and outcome.state is State.COMPLETED, step
        assert outcome.finding is not None and outcome.finding.summary == "It is full.", step
        texts = [text for role, text in s.record.texts("triage") if role is Role.USER]
        assert not any("You have not called a tool" in text for text in texts), step


async def test_a_repair_that_an_older_version_asked_for_is_answered() -> None:
    s = start(Answer(tool_calls=(call("k.df"),)), Answer("It is full."), Answer(BLOCK))
    whole = start(Answer(tool_calls=(call("k.df"),)), Answer("It is full."), Answer(BLOCK))
    await whole.run(of())
    s.resume(die_at=whole.recorder.calls.index("model_call_finished", -6))
    assert await live(s, of()) is None
    made_older(s)
    assert s.record.execution("triage").loop.final_answer == "It is full."
    s.resume()

    outcome = await live(s, of())

    assert outcome is not None and outcome.finding is not None and outcome.finding.summary == "It is full."


def test_a_finding_without_todays_fields_is_read() -> None:
    found = Finding.model_validate(json.loads('{"summary": "s", "confidence": "Low", "structured": true}'))

    assert not found.no_tool_called
