"""Stages on record, and the order in which the agents of a stage are told to the next."""

import asyncio

from tarsy.llm.protocol import GenerateRequest
from tarsy.plan.model import SuccessPolicy
from tarsy.record.run import StageKind, State
from unit.engine.build import agent, plan, scene, stage, until
from wire.scripted_client import Answer


async def test_a_stage_is_on_record_with_its_agents_its_kind_and_its_policy() -> None:
    answers = {"a": "1", "b": "2", "look-synth": "both", "c": "done"}
    s = scene(lambda request: Answer(answers[request.agent]))
    both = stage("look", agent("a"), agent("b"), policy=SuccessPolicy.ALL)

    await s.run(plan(both.model_copy(update={"parallel": "multi_agent"}), stage("then", agent("c"))))

    rows = sorted((row.start for row in s.record.stages.values()), key=lambda start: start.index)
    assert [(r.index, r.name, r.kind, r.expected_agents, r.parallel, r.success_policy) for r in rows] == [
        (0, "look", StageKind.INVESTIGATION, 2, "multi_agent", "All"),
        (1, "look-synthesis", StageKind.SYNTHESIS, 1, None, "Any"),
        (2, "then", StageKind.INVESTIGATION, 1, None, "Any"),
    ]


async def test_agents_are_told_in_launch_order_whoever_ends_first() -> None:
    gate = asyncio.Event()

    def answer(request: GenerateRequest) -> Answer:
        if request.agent == "a":
            return Answer("a came last", wait=gate)
        return Answer(f"{request.agent} says so")

    s = scene(answer)
    running = asyncio.create_task(s.run(plan(stage("look", agent("a"), agent("b")))))
    await until(lambda: any(row.outcome for row in s.record.executions.values()))
    gate.set()
    outcome = await running

    assert outcome.state is State.COMPLETED
    (request,) = s.models.requests_of("look-synth")
    text = request.messages[-1].content
    assert text.index("a came last") < text.index("b says so")
