"""Stages in order, agents side by side, policies, synthesis, contexts, the executive summary."""

import asyncio

import pytest

from tarsy.engine.agent import AgentResult
from tarsy.engine.findings.conclusion import whole_text
from tarsy.engine.stage import apply_success_policy
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.plan.model import SuccessPolicy
from tarsy.record.finding import Confidence
from tarsy.record.ids import execution_id, stage_id
from tarsy.record.messages import Role
from tarsy.record.run import Failure, StageKind, State
from tarsy.record.timeline import EventStatus, EventType
from unit.engine.build import RUN, FakeToolboxes, agent, by_turn, call, plan, says, scene, stage, until
from unit.engine.clock import in_virtual_time
from wire.scripted_client import Answer

FINDING = 'The pod dies.\n\n```finding\n{"summary": "Bad config", "confidence": "high"}\n```'
REFUSED = ModelError(ModelErrorCode.CREDENTIALS, "the key was refused", retryable=False)


def kinds(s: object) -> list[tuple[int, str, StageKind]]:
    rows = sorted(s.record.stages.values(), key=lambda r: r.start.index)  # type: ignore[attr-defined]
    return [(r.start.index, r.start.name, r.start.kind) for r in rows]


async def test_one_stage_with_one_agent_ends_in_its_finding() -> None:
    s = scene({"triage": [Answer(FINDING)]})

    outcome = await s.run(plan(stage("look", agent())))

    assert outcome.state is State.COMPLETED
    assert outcome.final_analysis == "The pod dies."
    assert outcome.finding is not None
    assert (outcome.finding.summary, outcome.finding.confidence) == ("Bad config", Confidence.LOW)  # it cites nothing
    assert kinds(s) == [(0, "look", StageKind.INVESTIGATION)]
    events = list(s.record.events.values())
    assert [(e.type, e.status, e.content) for e in events] == [
        (EventType.FINAL_ANALYSIS, EventStatus.COMPLETED, "The pod dies.")
    ], "people read the analysis"
    assert [whole_text(e) for e in events] == [FINDING], "programs find the block beside it"
    assert s.record.texts("triage")[-1] == (Role.ASSISTANT, FINDING), "the record is what the model said"


async def test_every_client_and_toolbox_is_closed_at_the_end() -> None:
    s = scene({"a": [Answer("one")], "b": [Answer(error=REFUSED)], "look-synth": [Answer("both")]})

    await s.run(plan(stage("look", agent("a"), agent("b"))))

    assert all(client.closed for client in s.models.clients)
    assert s.toolboxes.open_now == 0


async def test_agents_of_a_stage_run_side_by_side() -> None:
    together = asyncio.Barrier(3)

    async def meet(_: str) -> object:
        await together.wait()
        return await says("met")("")

    script = {name: [Answer(tool_calls=(call("k.meet"),)), Answer(f"{name} done")] for name in "abc"}
    s = scene(by_turn(script | {"look-synth": [Answer("all met")]}), toolboxes=FakeToolboxes({"k.meet": meet}))  # type: ignore[dict-item]

    async with asyncio.timeout(60):  # one after the other, the barrier would never open
        outcome = await s.run(plan(stage("look", agent("a"), agent("b"), agent("c"))))

    assert outcome.final_analysis == "all met"


async def test_parallel_stage_waits_for_every_agent_when_one_fails() -> None:
    gate = asyncio.Event()
    answers = {
        "bad": Answer(error=REFUSED),
        "slow": Answer("found it", wait=gate),
        "look-synth": Answer("combined"),
    }
    s = scene(lambda request: answers[request.agent])

    running = asyncio.create_task(s.run(plan(stage("look", agent("bad"), agent("slow")))))
    bad = execution_id(stage_id(RUN, 0), 0)
    await until(lambda: bad in s.record.executions and s.record.executions[bad].outcome)
    assert not running.done()
    gate.set()
    outcome = await running

    assert outcome.state is State.COMPLETED
    assert outcome.final_analysis == "combined"


async def test_stage_fails_when_every_agent_fails_and_names_each_of_them() -> None:
    s = scene(lambda request: Answer(error=REFUSED))

    outcome = await s.run(plan(stage("look", agent("a"), agent("b")), stage("after", agent("c"))))

    assert outcome.state is State.FAILED
    assert outcome.failure is not None
    assert outcome.failure.reason == "CredentialsRejected"
    assert "agent a:" in outcome.failure.message and "agent b:" in outcome.failure.message
    assert kinds(s) == [(0, "look", StageKind.INVESTIGATION)]  # no synthesis, no later stage


async def test_stage_under_all_fails_when_one_agent_fails_and_keeps_the_others_work() -> None:
    answers = {"a": Answer("found it"), "b": Answer(error=REFUSED)}
    s = scene(lambda request: answers[request.agent])

    outcome = await s.run(plan(stage("look", agent("a"), agent("b"), policy=SuccessPolicy.ALL)))

    assert outcome.state is State.FAILED
    found = s.record.execution("a").outcome
    assert found is not None and found.result == "found it"


@pytest.mark.parametrize(
    ("states", "policy", "expected"),
    [
        ("CC", SuccessPolicy.ALL, State.COMPLETED),
        ("CF", SuccessPolicy.ANY, State.COMPLETED),
        ("CF", SuccessPolicy.ALL, State.FAILED),
        ("TT", SuccessPolicy.ANY, State.TIMED_OUT),
        ("XX", SuccessPolicy.ANY, State.CANCELLED),
        ("TX", SuccessPolicy.ANY, State.FAILED),
        ("TF", SuccessPolicy.ANY, State.FAILED),
        ("T", SuccessPolicy.ALL, State.TIMED_OUT),
    ],
)
def test_the_ends_of_the_agents_make_the_end_of_the_stage(states: str, policy: SuccessPolicy, expected: State) -> None:
    ends = {"C": State.COMPLETED, "F": State.FAILED, "T": State.TIMED_OUT, "X": State.CANCELLED}
    agents = [agent(f"a{i}") for i in range(len(states))]
    results = [AgentResult(RUN, ends[s], failure=None if s == "C" else Failure("Bad", "it broke")) for s in states]

    state, failure = apply_success_policy(stage("look", *agents, policy=policy), results)

    assert state is expected
    assert (failure is None) == (expected is State.COMPLETED)


async def test_synthesis_replaces_the_result_of_several_agents_and_sees_all_their_work() -> None:
    script = {
        "a": [Answer(thinking="hm", tool_calls=(call("k.get", "c1", '{"pod": "x"}'),)), Answer("a concludes")],
        "b": [Answer(error=REFUSED)],
        "look-synth": [Answer("combined")],
    }
    s = scene(by_turn(script), toolboxes=FakeToolboxes({"k.get": says("exit code 137")}))

    outcome = await s.run(plan(stage("look", agent("a"), agent("b"))))

    assert outcome.final_analysis == "combined"
    assert kinds(s) == [(0, "look", StageKind.INVESTIGATION), (1, "look-synthesis", StageKind.SYNTHESIS)]
    (request,) = s.models.requests_of("look-synth")
    assert request.tools == ()
    text = request.messages[-1].content
    for part in ("hm", 'k.get({"pod": "x"})', "exit code 137", "a concludes", "the key was refused", "Agent 2: b"):
        assert part in text


async def test_one_agent_needs_no_synthesis() -> None:
    s = scene({"triage": [Answer("done")]})

    await s.run(plan(stage("look", agent())))

    assert [k for _, _, k in kinds(s)] == [StageKind.INVESTIGATION]


async def test_a_failed_synthesis_fails_the_chain() -> None:
    answers = {"a": Answer("1"), "b": Answer("2"), "look-synth": Answer(error=REFUSED)}
    s = scene(lambda request: answers[request.agent])

    outcome = await s.run(plan(stage("look", agent("a"), agent("b")), stage("after", agent("c"))))

    assert outcome.state is State.FAILED
    assert outcome.failure is not None and "look-synthesis" in outcome.failure.message
    assert s.models.requests_of("c") == []


async def test_a_stage_sees_what_earlier_stages_concluded_and_nothing_else_of_them() -> None:
    script = {
        "first": [Answer(tool_calls=(call("k.get"),)), Answer("the node is full")],
        "second": [Answer("clean it")],
    }
    s = scene(by_turn(script), toolboxes=FakeToolboxes({"k.get": says("raw tool output")}))

    outcome = await s.run(plan(stage("look", agent("first")), stage("fix", agent("second"))))

    (request,) = s.models.requests_of("second")
    text = "".join(m.content for m in request.messages)
    assert "<!-- STAGE_CONCLUSION_START -->\nthe node is full\n<!-- STAGE_CONCLUSION_END -->" in text
    assert "raw tool output" not in text
    assert outcome.final_analysis == "clean it"


async def test_the_chain_ends_at_the_first_failed_stage_with_the_last_analysis_there_was() -> None:
    answers = {"a": Answer("so far"), "b": Answer(error=REFUSED)}
    s = scene(lambda request: answers[request.agent])

    outcome = await s.run(plan(stage("one", agent("a")), stage("two", agent("b")), stage("three", agent("c"))))

    assert outcome.state is State.FAILED
    assert outcome.final_analysis == "so far"
    assert [name for _, name, _ in kinds(s)] == ["one", "two"]


async def test_executive_summary_is_made_of_the_final_analysis_alone() -> None:
    s = scene({"triage": [Answer(FINDING)], "summary": [Answer("Config broke checkout.")]})

    outcome = await s.run(plan(stage("look", agent()), summary=True), alert="secret-alert-text")

    assert outcome.executive_summary == "Config broke checkout."
    (request,) = s.models.requests_of("summary")
    text = "".join(m.content for m in request.messages)
    assert "The pod dies." in text
    assert "secret-alert-text" not in text
    assert EventType.EXECUTIVE_SUMMARY in {e.type for e in s.record.events.values()}
    analyses = [e for e in s.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert [e.content for e in analyses] == ["The pod dies."]


async def test_a_failed_executive_summary_is_noted_and_fails_nothing() -> None:
    s = scene({"triage": [Answer(FINDING)], "summary": [Answer(error=REFUSED)]})

    outcome = await s.run(plan(stage("look", agent()), summary=True))

    assert outcome.state is State.COMPLETED
    assert outcome.executive_summary is None
    assert outcome.executive_summary_error is not None and "the key was refused" in outcome.executive_summary_error


async def test_concluding_skips_the_stages_that_are_left_but_not_the_summary() -> None:
    s = scene(lambda request: answer(request))

    def answer(request: GenerateRequest) -> Answer:
        s.control.concluding = True
        return Answer(f"{request.agent} says")

    outcome = await s.run(plan(stage("one", agent("a")), stage("two", agent("b")), summary=True))

    assert outcome.state is State.COMPLETED
    assert outcome.final_analysis == "a says"
    assert outcome.executive_summary == "summary says"
    assert s.models.requests_of("b") == []


async def test_a_stage_left_by_a_crash_and_then_skipped_keeps_its_place_from_the_summary() -> None:
    never = asyncio.Event()
    answers = {"a": Answer("a says"), "b": Answer("b says", wait=never), "summary": Answer("in short")}
    s = scene(lambda request: answers[request.agent])
    of = plan(stage("one", agent("a")), stage("two", agent("b")), summary=True)
    first = asyncio.create_task(s.run(of))
    await until(lambda: s.models.requests_of("b"))
    first.cancel()
    await asyncio.wait([first])

    s.resume()
    s.control.concluding = True
    outcome = await s.run(of)

    assert (outcome.final_analysis, outcome.executive_summary) == ("a says", "in short")
    summary = s.models.requests_of("summary")[0]
    assert "a says" in summary.messages[-1].content
    assert kinds(s)[-1] == (2, "executive-summary", StageKind.EXECUTIVE_SUMMARY)


async def test_credentials_that_are_missing_end_the_agent_before_any_request() -> None:
    s = scene({})
    s.models.missing = ModelError(ModelErrorCode.CREDENTIALS_MISSING, "Secret llm has no key api-key", retryable=False)

    outcome = await s.run(plan(stage("look", agent())))

    assert outcome.failure is not None
    assert outcome.failure.reason == "CredentialsMissing"
    assert "Secret llm has no key api-key" in outcome.failure.message
    assert len(s.record.model_calls) == 1


def test_a_hundred_agents_do_not_make_a_run_slower_than_its_slowest() -> None:
    async def wait(_: str) -> object:
        await asyncio.sleep(30)
        return await says("waited")("")

    async def main() -> tuple[State, float]:
        script = {f"a{i}": [Answer(tool_calls=(call("k.wait"),)), Answer("done")] for i in range(100)}
        s = scene(by_turn(script | {"look-synth": [Answer("x")]}), toolboxes=FakeToolboxes({"k.wait": wait}))  # type: ignore[dict-item]
        outcome = await s.run(plan(stage("look", *(agent(f"a{i}") for i in range(100)))))
        return outcome.state, asyncio.get_running_loop().time()

    state, seconds = in_virtual_time(main())

    assert state is State.COMPLETED
    assert seconds == pytest.approx(30, abs=0.1)
