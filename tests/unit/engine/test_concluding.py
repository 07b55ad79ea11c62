"""`desiredState: Concluded` stops now: what is under way is cut, and a model, or the record, gives a conclusion."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tarsy.llm.limits import Limited
from tarsy.llm.protocol import (
    Chunk,
    EndChunk,
    GenerateRequest,
    LLMClient,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
    WaitChunk,
)
from tarsy.llm.retry import Retrying
from tarsy.plan.model import AgentLimits, AgentPlan, FallbackPlan, Plan, ProviderPlan, Strategy, SummarizationPlan
from tarsy.record.finding import Confidence
from tarsy.record.messages import Role, ToolOutcome
from tarsy.record.run import InteractionState, ModelCallKind, RunOutcome, State
from tarsy.record.timeline import EventStatus, EventType
from tarsy.record.usage import Usage
from unit.engine.build import FakeToolboxes, Scene, agent, call, plan, ref, scene, single, stage
from unit.engine.clock import in_virtual_time
from unit.engine.memory import Crash, ModelCallRow

USED = Usage(input_tokens=40, output_tokens=4)
Step = Chunk | float | ModelError
Steps = Sequence[Step]
HANG = 1e9
DONE: Steps = [TextChunk("It is the disk."), EndChunk("stop")]


def brain(*, iteration: Steps = (), conclusion: Steps = DONE, summary: Steps = DONE, synthesis: Steps = DONE) -> Any:
    """What a model answers to each kind of call."""

    def steps(request: GenerateRequest) -> Steps:
        if request.agent == "summary":
            return summary
        if request.agent.endswith("-synth"):
            return synthesis
        asked = any("to conclude (" in m.content for m in request.messages)
        return conclusion if asked else iteration

    return steps


class Models:
    """Every call is steps: chunks, seconds in which nothing comes, or an error."""

    def __init__(self, steps: Callable[[GenerateRequest], Steps], wrap: Callable[[LLMClient], LLMClient]) -> None:
        self._steps = steps
        self._wrap = wrap
        self.requests: list[GenerateRequest] = []
        self.open_now = 0

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        yield self._wrap(self)

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        self.open_now += 1
        try:
            for step in self._steps(request):
                if isinstance(step, ModelError):
                    raise step
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    yield step
        finally:
            self.open_now -= 1

    async def aclose(self) -> None:
        pass


class Stage:
    """A run that is asked to conclude after five seconds."""

    def __init__(
        self,
        answers: Any,
        *,
        at: float = 5.0,
        wrap: Callable[[LLMClient], LLMClient] | None = None,
        toolboxes: FakeToolboxes | None = None,
    ) -> None:
        self.models = Models(answers, wrap or (lambda client: client))
        self.scene: Scene = scene({}, toolboxes=toolboxes or FakeToolboxes({}))
        self.scene.models = self.models  # type: ignore[assignment]
        self.at = at
        self.ended = 0.0

    def run(self, of: Plan) -> RunOutcome:
        async def main() -> RunOutcome:
            loop = asyncio.get_running_loop()
            loop.call_later(self.at, self.scene.control.conclude)
            outcome = await self.scene.run(of)
            self.ended = loop.time()
            return outcome

        outcome = in_virtual_time(main())
        record = self.scene.record
        assert InteractionState.STARTED not in {row.state for row in record.model_calls.values()}
        assert InteractionState.STARTED not in {row.state for row in record.tool_calls.values()}
        assert EventStatus.STREAMING not in {e.status for e in record.events.values()}
        assert self.models.open_now == 0
        assert not self.scene.control.to_tell
        return outcome

    def calls(self) -> list[ModelCallRow]:
        return list(self.scene.record.model_calls.values())


def one(who: AgentPlan | None = None, *, summary: bool = True, **limits: float) -> Plan:
    return plan(stage("look", who or agent()), summary=summary, limits=AgentLimits(finding_repairs=0, **limits))  # type: ignore[arg-type]


WHO = [
    pytest.param(agent(), id="langchain"),
    pytest.param(agent(strategy=Strategy.NATIVE_THINKING), id="native-thinking"),
    pytest.param(agent(strategy=Strategy.REACT), id="react"),
]


@pytest.mark.parametrize("who", WHO)
def test_a_call_in_flight_is_cut_and_its_text_so_far_is_kept(who: AgentPlan) -> None:
    partial = [ThinkingChunk("hm"), TextChunk("Thought: the pod was "), UsageChunk(USED), HANG]
    s = Stage(brain(iteration=partial))

    outcome = s.run(one(who))

    assert s.ended == pytest.approx(5, abs=0.1)
    assert outcome.state is State.COMPLETED and "the disk" in (outcome.final_analysis or "")
    cut, conclusion, _ = s.calls()
    assert (cut.state, conclusion.state) == (InteractionState.INTERRUPTED, InteractionState.COMPLETED)
    assert conclusion.start.kind is ModelCallKind.FORCED_CONCLUSION
    assert cut.result is not None and cut.result.usage == USED and cut.result.thinking == "hm"
    assert cut.result.failure is not None and cut.result.failure.reason == "ConcludeRequested"
    told = s.models.requests[1].messages
    assert "Thought: the pod was" in told[-2].content and "cut off" in told[-2].content
    assert "stop investigating" in told[-1].content
    events = {e.type: e for e in s.scene.record.events.values() if e.status is EventStatus.INTERRUPTED}
    assert events[EventType.LLM_THINKING].content == "hm"
    assert events[EventType.LLM_RESPONSE].content == "Thought: the pod was "


@pytest.mark.parametrize(("seconds", "given"), [(59.9, True), (60.1, False)])
def test_a_conclusion_has_a_short_time_of_its_own(seconds: float, given: bool) -> None:
    s = Stage(brain(iteration=[HANG], conclusion=[TextChunk("Well, "), seconds, *DONE]))

    outcome = s.run(one(first_token_seconds=1_000, stall_seconds=1_000))

    assert outcome.state is State.COMPLETED
    assert ("It is the disk." in (outcome.final_analysis or "")) is given
    if not given:
        assert s.ended == pytest.approx(65, abs=0.1), "no further call waits for this model"
        assert s.calls()[-1].result.failure.reason == "ConclusionTimeout"  # type: ignore[union-attr]


@pytest.mark.parametrize("limit", [9, 10, 11])
def test_the_time_of_a_conclusion_is_a_setting(limit: int) -> None:
    s = Stage(brain(iteration=[HANG], conclusion=[10.0001 if limit == 10 else 10.0, *DONE]))
    outcome = s.run(one(conclusion_seconds=limit))
    assert ("It is the disk." in (outcome.final_analysis or "")) is (limit == 11)


def test_a_run_whose_model_hangs_for_good_ends_with_what_is_known_and_a_summary() -> None:
    s = Stage(brain(iteration=[TextChunk("The node is full, "), HANG], conclusion=[HANG], summary=[HANG]))

    outcome = s.run(one())

    assert s.ended == pytest.approx(65, abs=0.1)
    assert outcome.state is State.COMPLETED and outcome.failure is None
    assert outcome.finding is not None and outcome.finding.confidence is Confidence.INCONCLUSIVE
    assert "The node is full," in (outcome.final_analysis or "") and "[cut off here]" in (outcome.final_analysis or "")
    assert "without a conclusion from the model (ConclusionTimeout)" in outcome.finding.summary
    assert outcome.executive_summary == outcome.finding.summary
    assert outcome.executive_summary_error
    finals = [e for e in s.scene.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert [e.metadata["reason"] for e in finals] == ["NoConclusion"]


def test_a_server_that_refuses_tools_beside_a_conclusion_is_asked_without_them() -> None:
    """Its refusal is an answer: it is no server that hangs, which nobody asks again."""
    refused = ModelError(ModelErrorCode.INVALID_REQUEST, "no tools beside tool_choice none", retryable=False)
    usual = brain(iteration=[HANG])

    def steps(request: GenerateRequest) -> Steps:
        return [refused] if request.tools and not request.may_call else usual(request)

    async def df(arguments: dict[str, Any]) -> ToolOutcome:
        return ToolOutcome("100% used", is_error=False)

    s = Stage(steps, toolboxes=FakeToolboxes({"k.df": df}))

    outcome = s.run(one(agent(servers=("k",))))

    assert "It is the disk." in (outcome.final_analysis or "")
    assert [bool(r.tools) for r in s.models.requests if r.agent != "summary"] == [True, True, False]
    assert s.ended == pytest.approx(5, abs=0.1)


BROKEN = [
    ModelError(ModelErrorCode.CREDENTIALS, "wrong key", retryable=False),
    ModelError(ModelErrorCode.SERVER, "oh no", retryable=True),
    ModelError(ModelErrorCode.CONTENT_FILTER, "refused", retryable=False, started=True),
]


@pytest.mark.parametrize("error", BROKEN, ids=lambda e: e.code.value)
def test_a_conclusion_that_fails_otherwise_leaves_what_is_known_too(error: ModelError) -> None:
    s = Stage(brain(iteration=[HANG], conclusion=[error], summary=[error]))
    outcome = s.run(one())
    assert outcome.state is State.COMPLETED and outcome.executive_summary and outcome.finding
    assert s.ended == pytest.approx(5, abs=0.1)
    assert len(s.models.requests) == 2, "it is not asked again, not for the summary either"


def test_an_empty_conclusion_leaves_what_is_known_too() -> None:
    s = Stage(brain(iteration=[HANG], conclusion=[EndChunk("stop")], summary=[EndChunk("stop")]))
    outcome = s.run(one(empty_answers=0))
    assert outcome.state is State.COMPLETED and outcome.executive_summary and outcome.finding


def test_a_fallback_is_asked_at_once_for_the_conclusion() -> None:
    other = ProviderPlan(ref=ref("LLMProvider", "other"), type="openai", model="other")
    who = agent().model_copy(update={"fallback": (FallbackPlan(provider=other, strategy=Strategy.LANGCHAIN),)})
    seen: list[str] = []

    class Two(Models):
        @asynccontextmanager
        async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
            seen.append(provider.model)
            yield self

    s = Stage(brain())
    hangs = lambda request: [HANG] if seen[-1] == "scripted" else DONE  # noqa: E731
    s.models = Two(hangs, lambda client: client)
    s.scene.models = s.models  # type: ignore[assignment]

    outcome = s.run(one(who, summary=False))

    assert seen == ["scripted", "scripted", "other"]
    assert s.ended == pytest.approx(65, abs=0.1)
    assert "It is the disk." in (outcome.final_analysis or "")


def test_the_wait_for_a_new_try_is_cut() -> None:
    busy = ModelError(ModelErrorCode.RATE_LIMIT, "slow down", retryable=True, retry_after=50)
    s = Stage(brain(iteration=[busy]), wrap=lambda client: Retrying(client))
    outcome = s.run(one())
    assert s.ended == pytest.approx(5, abs=0.1)
    assert "It is the disk." in (outcome.final_analysis or "")


class Turn:
    """A ticket that waits for ever."""

    def __enter__(self) -> "Turn":
        return self

    def __exit__(self, *error: object) -> None:
        self.closed = True

    async def ask(self) -> WaitChunk | None:
        return WaitChunk("maxConcurrent", 1)

    async def turn(self) -> None:
        await asyncio.sleep(HANG)

    def used(self, tokens: int) -> None:
        pass


class Turnstile:
    def ticket(self, provider: ProviderPlan, tokens: int) -> Any:
        return Turn()


def test_the_wait_for_a_place_at_the_provider_is_cut_and_bounded_for_the_conclusion_too() -> None:
    provider = agent().provider
    s = Stage(brain(), wrap=lambda client: Limited(client, provider, Turnstile()))

    outcome = s.run(one(summary=False))

    assert s.ended == pytest.approx(65, abs=0.1)
    assert s.models.requests == []
    assert outcome.state is State.COMPLETED and outcome.finding is not None
    cut, _ = s.calls()
    assert cut.state is InteractionState.INTERRUPTED
    assert cut.result is not None and cut.result.usage == Usage(), "it was never sent"
    waits = [e for e in s.scene.record.events.values() if e.metadata.get("reason") == "ProviderLimit"]
    assert {e.status for e in waits} == {EventStatus.COMPLETED}
    assert [e.content.partition(" for")[0] for e in waits] == ["Waited 5.0 s", "Waited 60.0 s"]


TWO_CALLS: Steps = [ToolCallChunk(call("k.a", "c1")), ToolCallChunk(call("k.b", "c2")), EndChunk("tool_calls")]


def with_tools(s: Stage, *, reads: bool) -> list[str]:
    """Two tools that take ten seconds; those that ran to their end."""
    ran: list[str] = []

    def tool(name: str) -> Any:
        async def slow(_: str) -> ToolOutcome:
            await asyncio.sleep(10)
            ran.append(name)
            return ToolOutcome(f"{name} is done")

        return slow

    s.scene.toolboxes.functions = {"k.a": tool("a"), "k.b": tool("b")}
    s.scene.toolboxes.repeatables = frozenset({"k.a", "k.b"}) if reads else frozenset()
    return ran


def test_a_tool_call_that_only_reads_is_cut() -> None:
    s = Stage(brain(iteration=TWO_CALLS))
    ran = with_tools(s, reads=True)

    outcome = s.run(one())

    assert s.ended == pytest.approx(5, abs=0.1)
    assert ran == []
    rows = list(s.scene.record.tool_calls.values())
    assert {row.state for row in rows} == {InteractionState.INTERRUPTED}
    heard = [m.content for m in s.models.requests[1].messages if m.role is Role.TOOL]
    assert len(heard) == 2 and all("was cut off before it answered" in text for text in heard)
    assert "It is the disk." in (outcome.final_analysis or "")


def test_a_tool_call_that_may_change_something_is_waited_for_and_the_next_is_not_made() -> None:
    s = Stage(brain(iteration=TWO_CALLS))
    ran = with_tools(s, reads=False)

    s.run(one())

    assert s.ended == pytest.approx(10, abs=0.1)
    assert ran == ["a"]
    first, second = s.scene.record.tool_calls.values()
    assert (first.state, first.start.made) == (InteractionState.COMPLETED, True)
    assert not second.start.made
    heard = [m.content for m in s.models.requests[1].messages if m.role is Role.TOOL]
    assert "a is done" in heard[0] and "was not called, because the run was asked to conclude" in heard[1]


@pytest.mark.parametrize("limit", [7, 8])
def test_a_call_that_may_change_something_is_waited_for_up_to_its_timeout(limit: int) -> None:
    s = Stage(brain(iteration=TWO_CALLS))
    with_tools(s, reads=False)
    s.run(one(tool_call_seconds=limit))
    assert s.ended == pytest.approx(limit, abs=0.1)


def test_a_summary_of_a_result_that_is_being_made_is_cut() -> None:
    async def long(_: str) -> ToolOutcome:
        return ToolOutcome("much " * 9_000)

    def steps(request: GenerateRequest) -> Steps:
        return [HANG] if request.agent.endswith(":summarization") else brain(iteration=TWO_CALLS[:1])(request)

    s = Stage(lambda request: [*steps(request), EndChunk("tool_calls")] if HANG not in steps(request) else [HANG])
    who = agent(servers=("k",))
    server = who.servers[0].model_copy(update={"summarization": SummarizationPlan(threshold_tokens=100)})
    s.scene.toolboxes.functions = {"k.a": long}

    outcome = s.run(one(who.model_copy(update={"servers": (server,)})))

    assert s.ended == pytest.approx(5, abs=0.1)
    assert "It is the disk." in (outcome.final_analysis or "")
    (summary,) = [c for c in s.calls() if c.start.kind is ModelCallKind.SUMMARIZATION]
    assert summary.state is InteractionState.INTERRUPTED


def test_agents_side_by_side_are_all_cut_and_their_synthesis_is_made() -> None:
    s = Stage(brain(iteration=[HANG]))
    outcome = s.run(plan(stage("look", agent("one"), agent("two")), limits=AgentLimits(finding_repairs=0)))
    assert s.ended == pytest.approx(5, abs=0.1)
    assert outcome.final_analysis == "It is the disk."
    assert [c.start.kind for c in s.calls()].count(ModelCallKind.FORCED_CONCLUSION) == 2


def test_agents_whose_model_hangs_for_good_are_told_of_side_by_side() -> None:
    s = Stage(brain(iteration=[HANG], conclusion=[HANG], synthesis=[HANG], summary=[HANG]))
    of = plan(stage("look", agent("one"), agent("two")), summary=True, limits=AgentLimits(finding_repairs=0))
    outcome = s.run(of)
    assert s.ended == pytest.approx(65, abs=0.1)
    assert outcome.state is State.COMPLETED and outcome.executive_summary
    assert "## one" in (outcome.final_analysis or "") and "## two" in (outcome.final_analysis or "")


@pytest.mark.parametrize("what", ["synthesis", "summary"])
def test_a_call_that_concludes_anyway_is_given_its_time_and_not_begun_anew(what: str) -> None:
    slow: Steps = [20.0, *DONE]
    s = Stage(brain(iteration=DONE, synthesis=slow, summary=slow))
    of = plan(
        stage("look", agent("one"), agent("two")), summary=what == "summary", limits=AgentLimits(finding_repairs=0)
    )
    s.run(of)
    assert InteractionState.INTERRUPTED not in {c.state for c in s.calls()}


def test_a_single_call_is_given_its_time_and_then_stood_in_for() -> None:
    who = single("triage", Strategy.SINGLE_CALL)
    s = Stage(lambda request: [TextChunk("So far: "), HANG])
    outcome = s.run(one(who, summary=False, stall_seconds=1_000))
    assert s.ended == pytest.approx(65, abs=0.1)
    assert outcome.state is State.COMPLETED and outcome.finding is not None


def test_the_stages_that_follow_are_left_out() -> None:
    s = Stage(brain(iteration=[HANG]))
    of = plan(stage("look", agent()), stage("again", agent("second")), limits=AgentLimits(finding_repairs=0))
    assert s.run(of).state is State.COMPLETED
    assert len(s.scene.record.stages) == 1


STEPS = 26


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(STEPS))
def test_a_death_in_the_middle_of_it_comes_to_the_same_end(step: int, before: bool) -> None:
    of = one()

    def made() -> Stage:
        s = Stage(brain(iteration=[TextChunk("So far: "), HANG]))
        with_tools(s, reads=True)
        return s

    unharmed = made()
    expected = unharmed.run(of)
    assert len(unharmed.scene.recorder.calls) < STEPS
    s = made()
    s.scene.resume(die_at=step, before=before)

    async def main() -> RunOutcome:
        asyncio.get_running_loop().call_later(5, s.scene.control.conclude)
        try:
            return await s.scene.run(of)
        except (Crash, BaseExceptionGroup):
            s.scene.control.concluding = True
            s.scene.resume()
            return await s.scene.run(of)

    assert in_virtual_time(main()) == expected
    last = s.scene.record.execution("triage")
    assert replace(last.outcome) == unharmed.scene.record.execution("triage").outcome  # type: ignore[type-var]
