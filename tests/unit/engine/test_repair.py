"""A finding that cannot be used is sent back once, in the execution whose answer is the run's, and never lost."""

import asyncio
import re
from collections.abc import Callable

import orjson
import pytest

from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.plan.model import AgentLimits, PlannedBudget, Strategy
from tarsy.record.finding import Confidence
from tarsy.record.messages import Role, ToolOutcome
from tarsy.record.run import InteractionState, ModelCallKind, State
from tarsy.record.timeline import EventType
from tarsy.record.usage import Usage
from unit.engine.build import FakeToolboxes, Scene, agent, call, live, plan, says, scene, stage, until
from wire.scripted_client import Answer

SENT_BACK = "cannot be used"
ONCE = AgentLimits(finding_repairs=1)


def written(ref: str, quote: str = "No space left on device", *, summary: str = "The disk is full") -> str:
    citation = {"callId": ref, "quote": quote}
    claims = [{"text": "The disk is full.", "citations": [citation]}]
    data = orjson.dumps({"summary": summary, "confidence": "Medium", "claims": claims}).decode()
    return f"```finding\n{data}\n```"


def refs(request: GenerateRequest) -> list[str]:
    return re.findall(r"\[callId: (call_[0-9a-f]{12})\]", "\n".join(m.content for m in request.messages))


def model(final: Callable[[str], Answer], repair: Callable[[str], Answer]) -> Callable[[GenerateRequest], Answer]:
    """Calls a tool, gives its final answer, and, sent back, its repair; both are told the id of the call."""

    def answer(request: GenerateRequest) -> Answer:
        if SENT_BACK in "".join(m.content for m in request.messages if m.role is Role.USER):
            return repair(refs(request)[0])
        if not refs(request):
            return Answer(tool_calls=(call("k.logs"),))
        return final(refs(request)[0])

    return answer


def start(final: Callable[[str], Answer], repair: Callable[[str], Answer]) -> Scene:
    return scene(model(final, repair), toolboxes=FakeToolboxes({"k.logs": says("error: No space left on device")}))


OF = plan(stage("look", agent()), limits=ONCE)
UNUSED = ModelError(ModelErrorCode.INVALID_REQUEST, "this should not have been asked", retryable=False)


def never(_: str) -> Answer:
    return Answer(error=UNUSED)


def kinds(s: Scene) -> list[ModelCallKind]:
    return [row.start.kind for row in s.record.model_calls.values()]


async def test_a_finding_that_holds_is_not_sent_back() -> None:
    s = start(lambda ref: Answer(f"It is full.\n\n{written(ref)}"), never)

    outcome = await s.run(OF)

    assert ModelCallKind.FINDING_REPAIR not in kinds(s)
    assert outcome.finding is not None and outcome.finding.claims[0].supported
    (citation,) = outcome.finding.claims[0].citations
    assert (citation.stage, citation.agent, citation.tool) == ("look", "triage", "k.logs")
    assert citation.interaction in s.record.tool_calls
    assert (outcome.finding.confidence, outcome.final_analysis) == (Confidence.MEDIUM, "It is full.")


async def test_a_row_of_the_record_is_cited_as_well_as_its_call() -> None:
    s = start(lambda _: Answer(written(str(next(iter(s.record.tool_calls))))), never)

    outcome = await s.run(OF)

    assert outcome.finding is not None and outcome.finding.supported_claims == 1


@pytest.mark.parametrize(
    "final",
    [
        "The disk is full.",
        "The disk is full.\n\n```finding\n{]\n```",
        f"The disk is full.\n\n{written('call_000000000000')}",
    ],
    ids=["no block", "no JSON", "no such call"],
)
async def test_a_finding_that_cannot_be_used_is_repaired_and_its_analysis_kept(final: str) -> None:
    s = start(lambda _: Answer(final), lambda ref: Answer(written(ref)))

    outcome = await s.run(OF)

    assert kinds(s) == [ModelCallKind.ITERATION, ModelCallKind.ITERATION, ModelCallKind.FINDING_REPAIR]
    assert outcome.final_analysis == "The disk is full."
    assert outcome.finding is not None and outcome.finding.supported_claims == 1
    assert s.models.requests[-1].tools == s.models.requests[0].tools != ()
    assert outcome.finding.confidence is Confidence.MEDIUM
    notices = [e.content for e in s.record.events.values() if e.type is EventType.NOTICE]
    assert len(notices) == 1 and "sent back once" in notices[0]
    analyses = [e.content for e in s.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert analyses == ["The disk is full."]


@pytest.mark.parametrize(
    "repair",
    [
        Answer("I cannot."),
        Answer(""),
        Answer(error=ModelError(ModelErrorCode.SERVER, "it is down", retryable=False)),
        Answer("```finding\n{]\n```"),
    ],
    ids=["prose", "nothing", "error", "bad again"],
)
async def test_a_model_that_cannot_repair_keeps_its_text_and_it_is_marked_uncited(repair: Answer) -> None:
    s = start(lambda _: Answer("The disk is full."), lambda _: repair)

    outcome = await s.run(OF)

    assert outcome.state is State.COMPLETED
    assert kinds(s).count(ModelCallKind.FINDING_REPAIR) == 1
    assert outcome.finding is not None
    assert (outcome.finding.structured, outcome.finding.confidence) == (False, Confidence.INCONCLUSIVE)
    assert (outcome.finding.claims, outcome.final_analysis) == ((), "The disk is full.")


async def test_citations_that_fail_again_are_said_to_and_not_sent_back_again() -> None:
    s = start(lambda _: Answer(written("call_1")), lambda ref: Answer(written(ref, "made up entirely")))

    outcome = await s.run(OF)

    assert kinds(s).count(ModelCallKind.FINDING_REPAIR) == 1
    assert outcome.finding is not None
    (citation,) = outcome.finding.claims[0].citations
    assert citation.reason == "the quote is not in the result of this call"
    assert (outcome.finding.confidence, outcome.finding.supported_claims) == (Confidence.INCONCLUSIVE, 0)


async def test_without_repairs_the_text_is_kept_at_once() -> None:
    s = start(lambda _: Answer("The disk is full."), never)

    outcome = await s.run(plan(stage("look", agent()), limits=AgentLimits(finding_repairs=0)))

    assert ModelCallKind.FINDING_REPAIR not in kinds(s)
    assert outcome.finding is not None and not outcome.finding.structured


async def test_a_repair_lost_on_the_way_is_asked_again_and_is_still_one() -> None:
    lost = iter([Answer("half of", cut=True)])
    s = start(lambda _: Answer("The disk is full."), lambda ref: next(lost, Answer(written(ref))))

    outcome = await s.run(OF)

    assert kinds(s).count(ModelCallKind.FINDING_REPAIR) == 2
    assert outcome.finding is not None and outcome.finding.supported_claims == 1


async def test_only_the_answer_that_is_the_runs_is_sent_back() -> None:
    asked: list[str] = []

    def answer(request: GenerateRequest) -> Answer:
        if SENT_BACK in request.messages[-1].content:
            asked.append(request.agent)
            return Answer(written("call_1"))
        return Answer(f"{request.agent} says")

    s = scene(answer)
    await s.run(plan(stage("one", agent("first")), stage("two", agent("a"), agent("b")), summary=True, limits=ONCE))

    assert asked == ["two-synth"]


async def test_a_run_that_is_concluded_early_has_its_last_answer_sent_back() -> None:
    def answer(request: GenerateRequest) -> Answer:
        if SENT_BACK in request.messages[-1].content:
            return Answer('```finding\n{"summary": "repaired"}\n```')
        s.control.concluding = True
        return Answer("so far")

    s = scene(answer)
    outcome = await s.run(plan(stage("one", agent("a")), stage("two", agent("b")), limits=ONCE))

    assert outcome.finding is not None and outcome.finding.summary == "repaired"
    assert outcome.final_analysis == "so far"


async def test_a_synthesis_may_cite_what_another_agent_saw() -> None:
    def answer(request: GenerateRequest) -> Answer:
        if request.agent == "look-synth":
            return Answer(written(refs(request)[-1]))
        if request.agent == "b" or refs(request):
            return Answer("I looked.")
        return Answer(tool_calls=(call("k.logs"),))

    s = scene(answer, toolboxes=FakeToolboxes({"k.logs": says("error: No space left on device")}))
    outcome = await s.run(plan(stage("look", agent("a"), agent("b")), limits=ONCE))

    assert outcome.finding is not None
    (citation,) = outcome.finding.claims[0].citations
    assert (citation.supported, citation.agent, citation.stage) == (True, "a", "look")


async def test_a_call_whose_outcome_is_unknown_is_no_evidence() -> None:
    async def dies(_: str) -> ToolOutcome:
        s.recorder.die()
        return ToolOutcome("never")

    s = start(lambda ref: Answer(written(ref, "The outcome of this call is unknown")), lambda _: Answer(""))
    s.toolboxes.functions = {"k.logs": dies}
    assert await live(s, OF) is None
    s.resume()
    outcome = await live(s, OF)

    assert [row.state for row in s.record.tool_calls.values()] == [InteractionState.INTERRUPTED]
    assert outcome is not None and outcome.finding is not None
    assert outcome.finding.claims[0].citations[0].reason == "no tool call of this run has this id"


async def test_react_repairs_in_its_own_conversation() -> None:
    def answer(request: GenerateRequest) -> Answer:
        if SENT_BACK in request.messages[-1].content:
            return Answer(f"Thought: I copy\nFinal Answer: {written(refs(request)[0])}")
        if not refs(request):
            return Answer("Thought: look\nAction: k.logs\nAction Input: {}")
        return Answer("Thought: done\nFinal Answer: The disk is full.")

    s = scene(answer, toolboxes=FakeToolboxes({"k.logs": says("error: No space left on device")}))
    outcome = await s.run(plan(stage("look", agent(strategy=Strategy.REACT)), limits=ONCE))

    assert outcome.finding is not None and outcome.finding.supported_claims == 1
    assert outcome.final_analysis == "The disk is full."


async def test_a_budget_that_is_used_up_leaves_no_room_for_a_repair() -> None:
    spent = Usage(input_tokens=9_000, output_tokens=2_000)
    s = start(lambda _: Answer("The disk is full.", usage=spent), never)

    outcome = await s.run(OF.model_copy(update={"budget": PlannedBudget(tokens=10_000)}))

    assert ModelCallKind.FINDING_REPAIR not in [
        row.start.kind for row in s.record.model_calls.values() if row.state is not InteractionState.STARTED
    ]
    assert outcome.finding is not None and "disk is full" in (outcome.final_analysis or "")


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(24))
async def test_a_repair_survives_a_death_and_is_asked_for_once(step: int, before: bool) -> None:
    s = start(lambda _: Answer("The disk is full."), lambda ref: Answer(written(ref)))
    s.toolboxes.repeatables = frozenset({"k.logs"})
    s.resume(die_at=step, before=before)

    outcome = await live(s, OF)
    if outcome is None:
        s.resume()
        outcome = await live(s, OF)

    assert outcome is not None and outcome.finding is not None
    assert (outcome.final_analysis, outcome.finding.supported_claims) == ("The disk is full.", 1)
    sent = [text for role, text in s.record.texts("triage") if role is Role.USER and SENT_BACK in text]
    assert len(sent) == 1
    states = [r.state for r in s.record.model_calls.values() if r.start.kind is ModelCallKind.FINDING_REPAIR]
    assert states.count(InteractionState.COMPLETED) == 1
    assert len([e for e in s.record.events.values() if e.type is EventType.NOTICE]) == 1


async def test_a_repair_that_is_cancelled_is_cancelled() -> None:
    gate = asyncio.Event()
    s = start(lambda _: Answer("The disk is full."), lambda ref: Answer(written(ref), wait=gate))
    running = asyncio.create_task(s.run(OF))
    await until(lambda: ModelCallKind.FINDING_REPAIR in kinds(s))
    running.cancel()
    await asyncio.wait([running])

    assert running.cancelled()
