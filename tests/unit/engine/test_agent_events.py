"""Timeline events of each strategy: their types, order and lives."""

import pytest

from tarsy.engine.model_calls.late_events import LATE_SECONDS
from tarsy.llm.protocol import (
    CodeExecutionChunk,
    GroundingChunk,
    GroundingKind,
    GroundingSource,
    ModelError,
    ModelErrorCode,
)
from tarsy.plan.model import Strategy
from tarsy.record.messages import ToolOutcome
from tarsy.record.run import State
from tarsy.record.timeline import EventStatus, EventType
from unit.engine.build import FakeToolboxes, call, plan, says, scene, single, stage
from unit.engine.clock import in_virtual_time
from unit.engine.one_agent import (
    ALONE,
    FUNCTIONS,
    LOOPS,
    SYNTHESES,
    Done,
    asks,
    concludes,
    run,
    run_synthesis,
    tools,
    who,
)
from wire.scripted_client import Answer

THINKING, RESPONSE, CALL = EventType.LLM_THINKING, EventType.LLM_RESPONSE, EventType.LLM_TOOL_CALL
FINAL, ERROR = EventType.FINAL_ANALYSIS, EventType.ERROR
REFUSED = ModelError(ModelErrorCode.CREDENTIALS, "the key was refused", retryable=False)
GET = (call("k.get"),)


def types(done: Done) -> list[EventType]:
    return [event.type for event in done.events]


async def test_row_llm_response_is_text_beside_tool_calls_and_never_raw_react() -> None:
    for strategy in FUNCTIONS:
        done = await run(strategy, Answer("I look", tool_calls=GET), Answer("done"))
        assert types(done) == [RESPONSE, CALL, FINAL]
        silent = await run(strategy, Answer(tool_calls=GET), Answer("done"))
        assert types(silent) == [CALL, FINAL], "no text, no event"
    react = await run(Strategy.REACT, asks(Strategy.REACT), concludes(Strategy.REACT))
    assert RESPONSE not in types(react)
    for strategy in SYNTHESES:
        assert RESPONSE not in types(await run_synthesis(strategy, Answer("both")))


async def test_row_llm_thinking_is_a_thought_or_native_reasoning_and_says_which() -> None:
    react = await run(Strategy.REACT, asks(Strategy.REACT), concludes(Strategy.REACT))
    assert [(e.content, e.metadata) for e in react.events if e.type is THINKING] == [
        ("look at it", {"source": "react"}),
        ("I know", {"source": "react"}),
    ]
    both = await run(Strategy.REACT, Answer("Thought: I know\nFinal Answer: full", thinking="let me see"))
    assert [(e.content, e.metadata["source"]) for e in both.events if e.type is THINKING] == [
        ("let me see", "native"),
        ("I know", "react"),
    ]
    for strategy in (*FUNCTIONS, *ALONE):
        done = await run(strategy, Answer("done", thinking="I know"))
        assert [(e.content, e.metadata) for e in done.events if e.type is THINKING] == [
            ("I know", {"source": "native"})
        ]
        assert THINKING not in types(await run(strategy, Answer("done"))), "no thought, no event"


@pytest.mark.parametrize("strategy", LOOPS)
async def test_rows_tool_call_and_tool_result_are_one_event(strategy: Strategy) -> None:
    done = await run(strategy, asks(strategy), concludes(strategy))

    (event,) = [event for event in done.events if event.type is CALL]
    assert (event.content, event.status) == ("node: full", EventStatus.COMPLETED)
    said = event.metadata
    assert (said["server"], said["tool"], said["arguments"], said["is_error"]) == ("k", "get", '{"name": "web"}', False)
    begun, ended = [event for event in done.written if event.type is CALL]
    assert (begun.id, begun.status, begun.content) == (ended.id, EventStatus.STREAMING, "")
    assert begun.metadata["arguments"] == '{"name": "web"}', "arguments are there from the start"


async def test_synthesis_has_no_tool_events() -> None:
    for strategy in SYNTHESES:
        assert CALL not in types(await run_synthesis(strategy, Answer("both", tool_calls=GET)))


@pytest.mark.parametrize("strategy", Strategy)
async def test_row_final_analysis_is_the_last_event_of_an_agent(strategy: Strategy) -> None:
    done = await run(strategy, concludes(strategy))

    last = done.events[-1]
    assert (last.type, last.status) == (FINAL, EventStatus.COMPLETED)
    assert last.content == done.outcome.final_analysis
    assert types(done).count(FINAL) == 1


@pytest.mark.parametrize("strategy", Strategy)
async def test_row_error_is_there_on_failure_and_nothing_else_is(strategy: Strategy) -> None:
    done = await run(strategy, Answer(error=REFUSED))

    assert done.outcome.state is State.FAILED
    assert [(e.type, e.status, e.content) for e in done.events] == [
        (ERROR, EventStatus.COMPLETED, "provider local: the key was refused")
    ]


async def test_flow_of_react_by_iteration() -> None:
    malformed, unknown = "I shall look.", "Thought: try\nAction: k.drop\nAction Input: {}"
    done = await run(
        Strategy.REACT,
        asks(Strategy.REACT),
        Answer(malformed),
        Answer(unknown),
        Answer("It is the node."),
        iterations=3,
    )

    assert types(done) == [THINKING, CALL, ERROR, THINKING, ERROR, FINAL]
    assert done.events[-1].metadata == {"forced_conclusion": True}
    reasons = [event.metadata["reason"] for event in done.events if event.type is ERROR]
    assert reasons == ["MalformedAnswer", "UnknownTool"]


@pytest.mark.parametrize("strategy", FUNCTIONS)
async def test_flow_of_function_calls_by_iteration(strategy: Strategy) -> None:
    done = await run(
        strategy,
        Answer("I look", thinking="hm", tool_calls=(call("k.get", "c1"), call("k.logs", "c2"))),
        Answer(thinking="once more", tool_calls=(call("k.get", "c3", '{"again": 1}'),)),
        Answer("It is the node.", thinking="enough"),
        iterations=2,
    )

    assert types(done) == [THINKING, RESPONSE, CALL, CALL, THINKING, CALL, THINKING, FINAL]
    assert done.events[-1].metadata == {"forced_conclusion": True}


@pytest.mark.parametrize("strategy", SYNTHESES)
async def test_flow_of_synthesis(strategy: Strategy) -> None:
    done = await run_synthesis(strategy, Answer("both", thinking="hm"))

    (row,) = [r for r in done.scene.record.executions.values() if r.start.display_name == "look-synth"]
    told = [(event.type, event.content) for event in done.events if event.execution == row.start.id]
    assert told == [(THINKING, "hm"), (FINAL, "both")]


@pytest.mark.parametrize("strategy", FUNCTIONS)
def test_an_event_of_a_stream_that_lasts_begins_while_it_does_and_ends_with_it(strategy: Strategy) -> None:
    done = in_virtual_time(run(strategy, Answer("a b c", thinking="hm", pause=LATE_SECONDS + 0.01)))

    told = [(event.type, event.status, event.content) for event in done.written]
    assert told == [
        (THINKING, EventStatus.STREAMING, ""),
        (RESPONSE, EventStatus.STREAMING, ""),
        (THINKING, EventStatus.COMPLETED, "hm"),
        (FINAL, EventStatus.COMPLETED, "a b c"),
    ]
    assert len({event.id for event in done.written}) == 2


@pytest.mark.parametrize("strategy", FUNCTIONS)
def test_an_event_of_a_short_stream_is_written_once(strategy: Strategy) -> None:
    done = in_virtual_time(run(strategy, Answer("a b c", thinking="hm", pause=LATE_SECONDS - 0.01)))

    told = [(event.type, event.status, event.content) for event in done.written]
    assert told == [(THINKING, EventStatus.COMPLETED, "hm"), (FINAL, EventStatus.COMPLETED, "a b c")]


@pytest.mark.parametrize("text", ["", "\x00"], ids=["no text", "nothing but a control character"])
def test_an_answer_without_text_opens_no_event(text: str) -> None:
    answer = Answer(text, thinking=text, pause=LATE_SECONDS * 2, tool_calls=GET)
    done = in_virtual_time(run(Strategy.LANGCHAIN, answer, Answer("done")))

    assert types(done) == [CALL, FINAL]


async def test_react_shows_no_half_text_while_it_streams() -> None:
    done = await run(Strategy.REACT, asks(Strategy.REACT), concludes(Strategy.REACT))

    streaming = [event.type for event in done.written if event.status is EventStatus.STREAMING]
    assert streaming == [CALL]


@pytest.mark.parametrize("strategy", LOOPS)
async def test_a_tool_that_fails_is_told_in_the_event_of_its_call(strategy: Strategy) -> None:
    async def fails(_: str) -> ToolOutcome:
        return ToolOutcome("no such pod", is_error=True)

    done = await run(strategy, asks(strategy), concludes(strategy), toolboxes=FakeToolboxes({"k.get": fails}))

    (event,) = [event for event in done.events if event.type is CALL]
    assert (event.content, event.status, event.metadata["is_error"]) == ("no such pod", EventStatus.COMPLETED, True)
    assert done.outcome.state is State.COMPLETED


async def test_what_the_provider_did_has_events_of_its_own() -> None:
    page = (GroundingSource("a page", "https://docs.example/page"),)
    native = (
        CodeExecutionChunk("1 + 1", "2", "python"),
        GroundingChunk(GroundingKind.SEARCH, ("why",), page),
        GroundingChunk(GroundingKind.URL_CONTEXT, (), page),
    )
    done = await run(Strategy.NATIVE_THINKING, Answer("two", native=native))

    assert set(types(done)) == {
        EventType.CODE_EXECUTION,
        EventType.GOOGLE_SEARCH_RESULT,
        EventType.URL_CONTEXT_RESULT,
        FINAL,
    }


async def test_the_executive_summary_is_an_event_of_its_own_stage() -> None:
    s = scene({"triage": [Answer("full")], "summary": [Answer("In short: full.")]}, toolboxes=tools())
    await s.run(plan(stage("look", who(Strategy.LANGCHAIN)), summary=True))

    (event,) = [e for e in s.record.events.values() if e.type is EventType.EXECUTIVE_SUMMARY]
    assert event.content == "In short: full."
    assert event.stage is not None and s.record.stages[event.stage].start.name == "executive-summary"


async def test_a_later_stage_hears_conclusions_and_a_synthesis_hears_everything() -> None:
    first = [Answer("I look", thinking="private thought", tool_calls=GET), Answer("a concludes")]
    script = {"a": first, "b": [Answer("b concludes")], "look-synth": [Answer("both")], "next": [Answer("done")]}
    s = scene(script, toolboxes=FakeToolboxes({"k.get": says("raw result")}))
    a, b, later = (who(Strategy.LANGCHAIN).model_copy(update={"name": name}) for name in ("a", "b", "next"))
    two = stage("look", a, b).model_copy(update={"synthesis": single("look-synth")})

    await s.run(plan(two, stage("then", later)))

    (synthesis,), (then,) = s.models.requests_of("look-synth"), s.models.requests_of("next")
    for part in ("private thought", "I look", "k.get", "raw result", "a concludes", "b concludes"):
        assert part in synthesis.messages[-1].content
    assert "both" in then.messages[-1].content
    for part in ("private thought", "I look", "raw result", "a concludes", "b concludes"):
        assert part not in then.messages[-1].content


@pytest.mark.parametrize("strategy", LOOPS)
async def test_events_and_messages_are_counted_apart(strategy: Strategy) -> None:
    done = await run(strategy, asks(strategy), concludes(strategy))

    assert [event.seq for event in done.events] == list(range(1, len(done.events) + 1))
    assert sorted(done.scene.record.execution("triage").messages) == list(range(5))
