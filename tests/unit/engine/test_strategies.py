"""Offers, calls and ends of each strategy: what one does otherwise than another."""

import pytest

from tarsy.engine.prompts.builder import conclusion_message
from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.plan.model import Strategy
from tarsy.record.messages import Role
from tarsy.record.run import InteractionState, ModelCallKind, StageKind, State
from tarsy.record.timeline import EventType
from tarsy.record.usage import Usage
from tarsy.resources.parse import InvalidResource, parse_object
from unit.engine.one_agent import (
    ALONE,
    ARGUMENTS,
    FUNCTIONS,
    LOOPS,
    SYNTHESES,
    asks,
    concludes,
    run,
    run_synthesis,
)
from wire.scripted_client import Answer

CUT = ModelError(ModelErrorCode.PARTIAL_STREAM, "the connection broke", retryable=True, started=True)
REFUSED = ModelError(ModelErrorCode.CREDENTIALS, "the key was refused", retryable=False)


@pytest.mark.parametrize("strategy", Strategy)
async def test_a_strategy_offers_tools_in_its_own_way(strategy: Strategy) -> None:
    done = await run(strategy, concludes(strategy))

    (request,) = done.scene.models.requests
    bound, described = [tool.name for tool in request.tools], "k.get" in request.messages[0].content
    expected = {
        Strategy.REACT: ([], True),
        Strategy.NATIVE_THINKING: (["k.get", "k.logs"], False),
        Strategy.LANGCHAIN: (["k.get", "k.logs"], False),
    }
    assert (bound, described) == expected.get(strategy, ([], False))
    assert done.outcome.final_analysis in ("the node is full", "Thought: I know\nFinal Answer: the node is full")


@pytest.mark.parametrize("dropped", ["react-stage", "react-final-analysis", "chat-react", "nonsense", ""])
def test_a_strategy_that_does_not_exist_is_refused_by_name_of_its_field(dropped: str) -> None:
    document = {
        "apiVersion": "tarsy.dev/v1alpha1",
        "kind": "Agent",
        "metadata": {"name": "a", "namespace": "team-a"},
        "spec": {"instructions": "look", "strategy": dropped},
    }
    with pytest.raises(InvalidResource) as raised:
        parse_object(document)
    assert [error.path for error in raised.value.errors] == ["spec.strategy"]


async def test_row_tool_calling_and_response_parsing() -> None:
    for strategy in LOOPS:
        done = await run(strategy, asks(strategy), concludes(strategy))
        assert [(name, arguments) for name, arguments, _ in done.scene.toolboxes.called] == [("k.get", ARGUMENTS)]
    for strategy in FUNCTIONS:
        done = await run(strategy, asks(Strategy.REACT))
        assert done.scene.toolboxes.called == [], "text that looks like a call is text"
        assert done.outcome.final_analysis == asks(Strategy.REACT).text


async def test_row_tool_definitions() -> None:
    react = await run(Strategy.REACT, asks(Strategy.REACT), concludes(Strategy.REACT))
    assert all(request.tools == () for request in react.scene.models.requests)
    for strategy in FUNCTIONS:
        done = await run(strategy, asks(strategy), concludes(strategy))
        assert [[t.name for t in r.tools] for r in done.scene.models.requests] == [["k.get", "k.logs"]] * 2


async def test_row_thinking_content() -> None:
    for strategy in LOOPS:
        done = await run(strategy, asks(strategy), concludes(strategy))
        thoughts = [event.content for event in done.events if event.type is EventType.LLM_THINKING]
        assert thoughts == ["look at it", "I know"]


async def test_row_message_format() -> None:
    for strategy in LOOPS:
        done = await run(strategy, asks(strategy), concludes(strategy))
        roles = [role for role, _ in done.scene.record.texts("triage")]
        answered = Role.USER if strategy is Strategy.REACT else Role.TOOL
        assert roles == [Role.SYSTEM, Role.USER, Role.ASSISTANT, answered, Role.ASSISTANT]


async def test_row_completion_signal() -> None:
    done = await run(Strategy.REACT, Answer("the node is full"), concludes(Strategy.REACT, "really"))
    assert (done.outcome.final_analysis, len(done.scene.models.requests)) == ("really", 2)
    for strategy in FUNCTIONS:
        done = await run(strategy, Answer("the node is full"))
        assert (done.outcome.final_analysis, len(done.scene.models.requests)) == ("the node is full", 1)


# The loop and its end.


@pytest.mark.parametrize("strategy", LOOPS)
async def test_a_loop_goes_on_until_the_final_answer(strategy: Strategy) -> None:
    done = await run(strategy, asks(strategy), asks(strategy), asks(strategy), concludes(strategy))

    assert (done.outcome.state, done.outcome.final_analysis) == (State.COMPLETED, "the node is full")
    assert len(done.scene.models.requests) == 4
    assert done.scene.record.execution("triage").loop.iteration == 4


@pytest.mark.parametrize("strategy", LOOPS)
async def test_at_the_limit_one_call_without_tools_concludes(strategy: Strategy) -> None:
    done = await run(strategy, asks(strategy), asks(strategy), concludes(strategy), iterations=2)

    assert done.outcome.final_analysis == "the node is full"
    assert not done.scene.models.requests[-1].offers_tools
    assert done.scene.models.requests[-1].messages[-1].role is Role.USER
    assert [row.start.kind for row in done.scene.record.model_calls.values()] == [
        ModelCallKind.ITERATION,
        ModelCallKind.ITERATION,
        ModelCallKind.FORCED_CONCLUSION,
    ]


@pytest.mark.parametrize("strategy", LOOPS)
async def test_a_last_iteration_that_failed_is_concluded_too(strategy: Strategy) -> None:
    done = await run(strategy, asks(strategy), Answer("half", error=CUT), concludes(strategy), iterations=2)

    assert (done.outcome.state, done.outcome.final_analysis) == (State.COMPLETED, "the node is full")
    lost, conclude = done.scene.models.requests[-1].messages[-2:]
    assert "the connection broke" in lost.content
    assert conclude.content.startswith(conclusion_message(2, requested=False).content)


@pytest.mark.parametrize("strategy", LOOPS)
@pytest.mark.parametrize("failures", [[REFUSED], [CUT, CUT]], ids=["refused", "lost twice"])
async def test_a_forced_conclusion_that_fails_fails_the_agent(strategy: Strategy, failures: list[ModelError]) -> None:
    done = await run(strategy, asks(strategy), *(Answer(error=error) for error in failures), iterations=1)

    assert done.outcome.state is State.FAILED
    assert failures[-1].message in [event.content for event in done.events if event.type is EventType.ERROR][-1]
    assert not [event for event in done.events if event.type is EventType.FINAL_ANALYSIS]


@pytest.mark.parametrize("strategy", [*LOOPS, Strategy.SINGLE_CALL])
async def test_usage_of_all_calls_is_summed(strategy: Strategy) -> None:
    first, last = asks(strategy), concludes(strategy)
    answers = [
        Answer(a.text, a.thinking, tool_calls=a.tool_calls, usage=Usage(input_tokens=10, output_tokens=2))
        for a in ((first, last) if strategy in LOOPS else (last,))
    ]

    done = await run(strategy, *answers)

    total = done.scene.record.execution("triage").loop.usage
    assert (total.input_tokens, total.output_tokens) == (10 * len(answers), 2 * len(answers))
    for row in done.scene.record.model_calls.values():
        assert row.result is not None and row.result.usage is not None
        assert (row.state, row.start.model, row.result.usage.input_tokens) == (
            InteractionState.COMPLETED,
            "scripted",
            10,
        )


# Strategies that call once.


@pytest.mark.parametrize("strategy", ALONE)
async def test_a_strategy_without_tools_asks_once_and_its_text_is_the_answer(strategy: Strategy) -> None:
    done = await run(strategy, asks(Strategy.LANGCHAIN, thought="hm"))

    assert done.outcome.final_analysis == "I look"
    assert len(done.scene.models.requests) == 1
    assert done.scene.toolboxes.called == []


async def test_both_syntheses_differ_in_their_backend_only() -> None:
    one, other = [await run_synthesis(strategy, Answer("both", thinking="hm")) for strategy in SYNTHESES]

    for done in (one, other):
        (request,) = done.scene.models.requests_of("look-synth")
        assert (request.tools, done.outcome.final_analysis) == ((), "both")
        kinds = [row.start.kind for row in done.scene.record.stages.values()]
        assert kinds == [StageKind.INVESTIGATION, StageKind.SYNTHESIS]
    first, second = (done.scene.models.requests_of("look-synth")[0].messages for done in (one, other))
    assert first == second
    assert [(event.type, event.content) for event in one.events] == [(e.type, e.content) for e in other.events]


@pytest.mark.parametrize("strategy", SYNTHESES)
async def test_a_synthesis_that_fails_fails_and_says_why(strategy: Strategy) -> None:
    done = await run_synthesis(strategy, Answer(error=REFUSED))

    assert done.outcome.state is State.FAILED
    assert done.outcome.failure is not None and "the key was refused" in done.outcome.failure.message
