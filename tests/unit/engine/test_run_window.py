"""Conversations that outgrow the model's window, in a run: what is sent, what is on record, and after a crash."""

import pytest

from tarsy.engine.conversation.compaction import Window, reserve
from tarsy.engine.prompts.fence import ALERT_FENCE, fenced
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.plan.model import AgentLimits, AgentPlan, Plan, Strategy
from tarsy.record.messages import Message, Role, ToolOutcome
from tarsy.record.run import ALERT_DATA, ModelCallKind, RunOutcome, State
from tarsy.record.timeline import EventType
from tarsy.record.usage import Usage
from unit.engine.build import FakeToolboxes, Scene, agent, call, live, plan, scene, single, stage
from unit.engine.clock import in_virtual_time
from unit.engine.memory import Crash, Record
from wire.scripted_client import Answer

LINES = "\n".join(f"line {i:05d} of a log" for i in range(1550))  # 30 KB
TOO_LONG = ModelError(ModelErrorCode.CONTEXT_TOO_LONG, "too long", retryable=False)


def windowed(strategy: Strategy = Strategy.LANGCHAIN, *, window: int | None = None, iterations: int = 500) -> AgentPlan:
    made = agent(strategy=strategy, iterations=iterations)
    return made.model_copy(update={"provider": made.provider.model_copy(update={"context_window": window})})


def of(one: AgentPlan) -> Plan:
    return plan(stage("look", one))


async def get(arguments: str) -> ToolOutcome:
    return ToolOutcome(f"result of {arguments}\n{LINES}")


def size(request: GenerateRequest) -> int:
    return sum(len(m.content.encode()) for m in request.messages)


def start(rounds: int, strategy: Strategy = Strategy.LANGCHAIN, *, most: int | None = None) -> Scene:
    """A model that asks for `rounds` results; one that holds only so many bytes, if `most` is given."""

    def answer(request: GenerateRequest) -> Answer:
        if most is not None and size(request) > most:
            return Answer("", error=TOO_LONG)
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        if turn == rounds:
            return Answer("Final Answer: the disk is full")
        if strategy is Strategy.REACT:
            return Answer(f'Thought: more\nAction: k.get\nAction Input: {{"n": {turn}}}')
        return Answer("more", tool_calls=(call("k.get", f"w{turn}", f'{{"n": {turn}}}'),))

    return scene(answer, toolboxes=FakeToolboxes({"k.get": get}, repeatables=frozenset({"k.get"})))


def sent(record: Record) -> list[tuple[Message, ...]]:
    """What each model call was sent, rebuilt from the record alone."""
    rebuilt = []
    rows = sorted(record.model_calls.values(), key=lambda row: row.start.number)
    for row in rows:
        whole = record.executions[row.start.execution].conversation[: row.start.message_count]
        shown = {
            seq: text
            for earlier in rows
            if earlier.start.execution == row.start.execution and earlier.start.number <= row.start.number
            for seq, text in earlier.start.superseded.items()
        }
        rebuilt.append(
            tuple(
                Message(m.role, shown.get(i, m.content), m.tool_calls, m.tool_call_id, m.tool_name, m.provider_state)
                for i, m in enumerate(whole)
            )
        )
    return rebuilt


@pytest.mark.parametrize(
    "strategy",
    [
        Strategy.LANGCHAIN,
        pytest.param(Strategy.NATIVE_THINKING, marks=pytest.mark.heavy("another strategy is beside it")),
        pytest.param(Strategy.REACT, marks=pytest.mark.heavy("another strategy is beside it")),
    ],
)
async def test_two_hundred_results_of_thirty_kilobytes_reach_a_conclusion(strategy: Strategy) -> None:
    s = start(200, strategy)

    outcome = await s.run(of(windowed(strategy)))

    assert outcome.state is State.COMPLETED and outcome.final_analysis is not None
    assert outcome.final_analysis.endswith("the disk is full")
    assert len(s.toolboxes.called) == 200
    assert all(size(request) / 4 <= 131_072 * 0.85 for request in s.models.requests)
    row = s.record.execution("triage")
    results = [m for m in row.conversation if LINES in m.content]
    assert len(results) == 200, "the record keeps every result whole"
    assert [tuple(r.messages) for r in s.models.requests] == sent(s.record)
    notices = [e for e in s.record.events.values() if e.metadata.get("reason") == "Compaction"]
    assert notices and all(e.type is EventType.NOTICE and "tool results" in e.content for e in notices)
    assert len(notices) < 70, "not every call compacts anew"


async def test_two_hundred_results_of_one_answer_reach_a_conclusion() -> None:
    def answer(request: GenerateRequest) -> Answer:
        if request.messages[-1].role is Role.TOOL:
            return Answer("the disk is full")
        return Answer(tool_calls=tuple(call("k.get", f"w{i}", f'{{"n": {i}}}') for i in range(200)))

    s = scene(answer, toolboxes=FakeToolboxes({"k.get": get}, repeatables=frozenset({"k.get"})))

    outcome = await s.run(of(windowed()))

    assert outcome.state is State.COMPLETED and outcome.final_analysis == "the disk is full"
    assert size(s.models.requests[-1]) / 4 <= 131_072 * 0.85


@pytest.mark.parametrize(("window", "compacted"), [(43_000, False), (36_000, True)])
async def test_only_a_window_that_is_full_is_compacted(window: int, compacted: bool) -> None:
    s = start(3)

    await s.run(of(windowed(window=window)))

    assert any(row.start.superseded for row in s.record.model_calls.values()) is compacted


@pytest.mark.parametrize(("counted", "compacted"), [(0.2, False), (0.6, True)])
async def test_what_the_provider_counts_decides_how_full_a_window_is(counted: float, compacted: bool) -> None:
    def answer(request: GenerateRequest) -> Answer:
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        usage = Usage(input_tokens=int(size(request) * counted), output_tokens=5)
        return Answer(
            "ok", tool_calls=() if turn == 3 else (call("k.get", f"w{turn}", f'{{"n": {turn}}}'),), usage=usage
        )

    s = scene(answer, toolboxes=FakeToolboxes({"k.get": get}))

    await s.run(of(windowed(window=50_000)))

    assert any(row.start.superseded for row in s.record.model_calls.values()) is compacted


async def test_an_alert_that_alone_fills_the_window_is_cut_and_the_run_concludes() -> None:
    s = start(0, most=20_000 * 4)

    outcome = await s.run(of(windowed(window=20_000)), alert="the disk " * 100_000)

    assert outcome.state is State.COMPLETED
    (request,) = s.models.requests
    assert "left out here" in request.messages[1].content and "ALERT_DATA_END" in request.messages[1].content


@pytest.mark.parametrize("strategy", [Strategy.LANGCHAIN, Strategy.REACT])
async def test_a_provider_whose_window_is_smaller_than_believed_is_asked_again_with_less(strategy: Strategy) -> None:
    s = start(12, strategy, most=100_000)

    outcome = await s.run(of(windowed(strategy)))

    assert outcome.state is State.COMPLETED and outcome.final_analysis is not None
    refused = [row for row in s.record.model_calls.values() if row.result and row.result.failure]
    assert 0 < len(refused) <= 2, "what was learned stays"
    assert len(s.toolboxes.called) == 12


async def test_a_provider_that_always_refuses_is_not_asked_for_ever() -> None:
    s = start(5, most=0)

    outcome = await s.run(of(windowed()), alert="x" * 400_000)

    assert outcome.state is State.FAILED
    assert outcome.failure is not None and outcome.failure.reason == "ContextTooLong"
    assert 1 <= len(s.models.requests) <= 4


async def test_what_cannot_be_shortened_fails_at_once() -> None:
    s = start(5, most=0)

    outcome = await s.run(of(windowed()))

    assert outcome.state is State.FAILED and len(s.models.requests) == 1


async def test_a_result_that_was_shortened_is_fetched_again_when_it_is_asked_for() -> None:
    def answer(request: GenerateRequest) -> Answer:
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        if turn == 8:
            return Answer("done")
        return Answer(tool_calls=(call("k.get", f"w{turn}", f'{{"n": {turn % 7}}}'),))

    s = scene(answer, toolboxes=FakeToolboxes({"k.get": get}, repeatables=frozenset({"k.get"})))

    await s.run(of(windowed(window=40_000)))

    assert len(s.toolboxes.called) == 8
    assert all(row.start.made for row in s.record.tool_calls.values())


async def test_a_synthesis_of_very_much_work_is_asked_within_the_window() -> None:
    s = start(4)
    both = stage("look", windowed(), single("other"))
    synthesis = both.synthesis
    assert synthesis is not None
    small = synthesis.model_copy(update={"provider": synthesis.provider.model_copy(update={"context_window": 12_000})})

    outcome = await s.run(plan(both.model_copy(update={"synthesis": small})))

    assert outcome.state is State.COMPLETED
    (request,) = s.models.requests_of("look-synth")
    assert size(request) <= 12_000 * 4


BIG = of(windowed(window=30_000))


@pytest.fixture(scope="module")
def whole() -> tuple[Scene, RunOutcome | None]:
    """The run that nothing happened to."""
    s = start(6)
    return s, in_virtual_time(live(s, BIG))


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.sweep("a death at another step")
@pytest.mark.parametrize("step", range(44))
async def test_a_death_at_any_step_sends_what_would_have_been_sent(
    step: int, before: bool, whole: tuple[Scene, RunOutcome | None]
) -> None:
    unharmed, expected = whole
    assert len(unharmed.recorder.calls) < 44
    s = start(6)
    s.resume(die_at=step, before=before)

    outcome = await live(s, BIG)
    if outcome is None:
        s.resume()
        outcome = await live(s, BIG)

    assert outcome == expected
    assert s.record.execution("triage").conversation == unharmed.record.execution("triage").conversation
    assert sent(s.record)[-1] == sent(unharmed.record)[-1]
    asked = [row for row in s.record.model_calls.values() if row.start.kind is ModelCallKind.ITERATION]
    assert len(asked) <= 8


async def test_figures_can_be_set() -> None:
    s = start(6)

    await s.run(plan(stage("look", windowed()), limits=AgentLimits(context_tokens=20_000, finding_repairs=0)))

    assert all(size(request) / 4 <= 20_000 for request in s.models.requests)


@pytest.mark.parametrize(("share", "cut"), [(0.5, False), (0.99, False), (1.02, True), (3.0, True)])
async def test_alert_reaches_the_model_whole_where_its_window_allows_and_else_that_is_a_condition(
    share: float, cut: bool
) -> None:
    window = 100_000

    def answer(request: GenerateRequest) -> Answer:
        return Answer("the disk is full")

    probe = scene(answer)
    await probe.run(of(windowed(window=window)), alert="x")
    beside = size(probe.models.requests[0])
    full = Window(window, reserve(window, None)).full
    text = "".join(f"line {n:09d}\n" for n in range(40_000))[: int((full - beside) * share)]

    s = scene(answer)
    outcome = await s.run(of(windowed(window=window)), alert=text)

    assert outcome.state is State.COMPLETED
    shown = fenced(ALERT_FENCE, s.models.requests[0].messages[1].content)
    assert shown is not None
    assert (shown == text) is not cut
    assert size(s.models.requests[0]) <= full
    if not cut:
        assert s.record.missing == {}
    else:
        said = s.record.missing[ALERT_DATA]
        assert f"is shown {len(shown.encode()):,} of its {len(text):,} bytes" in said and "100,000 tokens" in said


async def test_cut_of_something_else_is_no_cut_of_the_alert() -> None:
    s = start(12)
    await s.run(of(windowed(window=36_000)))
    assert any(row.start.superseded for row in s.record.model_calls.values())
    assert s.record.missing == {}


@pytest.mark.parametrize("asked", [None, 60_000])
async def test_a_window_that_the_server_states_is_used_from_then_on(asked: int | None) -> None:
    """It holds 10,000 tokens of four bytes: one refusal is enough to know."""

    def answer(request: GenerateRequest) -> Answer:
        if size(request) > 40_000:
            error = ModelError(ModelErrorCode.CONTEXT_TOO_LONG, "too long", retryable=False, window=10_000, asked=asked)
            return Answer("", error=error)
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        if request.agent != "triage" or turn == 6:
            return Answer("the disk is full")
        return Answer("more", tool_calls=(call("k.get", f"w{turn}", f'{{"n": {turn}}}'),))

    s = scene(answer, toolboxes=FakeToolboxes({"k.get": get}, repeatables=frozenset({"k.get"})))
    later = stage("again", windowed().model_copy(update={"name": "second"}))

    outcome = await s.run(plan(stage("look", windowed()), later), alert="the disk " * 20_000)

    assert outcome.state is State.COMPLETED
    refused = [row for row in s.record.model_calls.values() if row.result and row.result.failure]
    assert len(refused) == 1, "nor does a later agent of the run ask for more"
    row = s.record.execution("triage")
    assert row.loop.window == 10_000
    assert s.record.execution("second").loop.window == 10_000
    if asked is not None:
        density = refused[0].result.loop.tokens_per_byte  # type: ignore[union-attr]
        assert density is not None and density == pytest.approx(asked / size(s.models.requests[0]), rel=0.05)


def test_an_attempt_that_resumes_knows_the_window_that_was_stated() -> None:
    def answer(request: GenerateRequest) -> Answer:
        if size(request) > 40_000:
            error = ModelError(ModelErrorCode.CONTEXT_TOO_LONG, "too long", retryable=False, window=10_000)
            return Answer("", error=error)
        return Answer("the disk is full")

    for step in range(12):
        s = scene(answer)
        s.resume(die_at=step, before=False)
        in_virtual_time(_live_twice(s))
        refused = [row for row in s.record.model_calls.values() if row.result and row.result.failure]
        assert len(refused) <= 1
        assert s.record.execution("triage").loop.window == 10_000


async def _live_twice(s: Scene) -> None:
    first = await live_with(s, "the disk " * 20_000)
    if first is None:
        s.resume()
        assert (await live_with(s, "the disk " * 20_000)) is not None


async def live_with(s: Scene, alert: str) -> RunOutcome | None:
    try:
        return await s.run(of(windowed()), alert=alert)
    except (Crash, BaseExceptionGroup):
        return None
