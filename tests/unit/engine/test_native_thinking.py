"""Native thinking at the chunk protocol: thoughts, signatures that come back, the provider's own tools."""

import pytest

from tarsy.llm.protocol import (
    CodeExecutionChunk,
    GroundingChunk,
    GroundingKind,
    GroundingSource,
    ModelError,
    ModelErrorCode,
)
from tarsy.plan.model import AgentPlan, Strategy
from tarsy.record.messages import Role
from tarsy.record.run import State
from tarsy.record.timeline import EventStatus, EventType
from unit.engine.build import Answer, FakeToolboxes, Scene, agent, by_turn, call, plan, says, scene, single, stage

SIGNED = {"thought_signature": "AAECAwQ=", "parts": [{"thought": True}]}
CODE = CodeExecutionChunk("print(6 * 7)", "42\n", "python")
SEARCH = GroundingChunk(
    GroundingKind.SEARCH, ("exit code 137",), (GroundingSource("OOM killer", "https://docs.example/oom"),)
)
PAGES = GroundingChunk(GroundingKind.URL_CONTEXT, (), (GroundingSource("", "https://docs.example/runbook"),))
NATIVE_TOOLS = ("google_search", "url_context")


def native(strategy: Strategy = Strategy.NATIVE_THINKING, iterations: int = 5, name: str = "triage") -> AgentPlan:
    return agent(name, strategy=strategy, iterations=iterations).model_copy(update={"native_tools": NATIVE_TOOLS})


def thinking(script: list[Answer]) -> Scene:
    return scene(by_turn({"triage": script}), toolboxes=FakeToolboxes({"k.get": says("node: full")}))


SCRIPT = [
    Answer("let me look", thinking="it may be the node", tool_calls=(call("k.get"),), provider_state=SIGNED),
    Answer("the node is full", thinking="it is the node", provider_state={"thought_signature": "BQY="}),
]


async def test_thoughts_are_events_and_tools_are_bound() -> None:
    s = thinking(SCRIPT)

    outcome = await s.run(plan(stage("look", native())))

    assert (outcome.state, outcome.final_analysis) == (State.COMPLETED, "the node is full")
    assert [[tool.name for tool in request.tools] for request in s.models.requests] == [["k.get"], ["k.get"]]
    told = [(e.type, e.content) for e in sorted(s.record.events.values(), key=lambda e: e.seq)]
    assert [kind for kind, _ in told] == [
        EventType.LLM_THINKING,
        EventType.LLM_RESPONSE,
        EventType.LLM_TOOL_CALL,
        EventType.LLM_THINKING,
        EventType.FINAL_ANALYSIS,
    ]
    assert told[0][1] == "it may be the node"
    assert [row.start.strategy for row in s.record.model_calls.values()] == ["native-thinking"] * 2


async def test_thoughts_are_no_part_of_the_conversation_but_their_signatures_come_back() -> None:
    s = thinking(SCRIPT)

    await s.run(plan(stage("look", native())))

    (assistant,) = [m for m in s.models.requests[1].messages if m.role is Role.ASSISTANT]
    assert assistant.provider_state == SIGNED
    assert "it may be the node" not in "".join(m.content for m in s.models.requests[1].messages)
    assert s.record.execution("triage").conversation[-1].provider_state == {"thought_signature": "BQY="}


async def test_signatures_come_back_after_a_death_too() -> None:
    s = thinking(SCRIPT)
    s.resume(die_at=6)  # between the tool's answer and the second model call
    with pytest.raises(BaseException):  # noqa: B017 - the death of a process in a task group
        await s.run(plan(stage("look", native())))
    s.resume()

    await s.run(plan(stage("look", native())))

    assert [m.provider_state for m in s.models.requests[-1].messages if m.role is Role.ASSISTANT] == [SIGNED]


@pytest.mark.parametrize(
    ("strategy", "offered"),
    [
        (Strategy.NATIVE_THINKING, NATIVE_TOOLS),
        (Strategy.SYNTHESIS_NATIVE_THINKING, NATIVE_TOOLS),
        (Strategy.LANGCHAIN, ()),
        (Strategy.REACT, ()),
        (Strategy.SYNTHESIS, ()),
        (Strategy.SINGLE_CALL, ()),
    ],
)
async def test_only_the_native_strategies_have_tools_of_the_provider(strategy: Strategy, offered: object) -> None:
    s = thinking([Answer("Final Answer: done")])

    outcome = await s.run(plan(stage("look", native(strategy))))

    assert outcome.state is State.COMPLETED
    assert [request.native_tools for request in s.models.requests] == [offered]


async def test_a_forced_conclusion_is_without_tools_of_either_kind() -> None:
    s = thinking([Answer(tool_calls=(call("k.get"),)), Answer("my guess")])

    await s.run(plan(stage("look", native(iterations=1))))

    assert [(r.offers_tools, r.native_tools) for r in s.models.requests] == [(True, NATIVE_TOOLS), (False, ())]


async def test_what_the_provider_did_itself_is_told_and_traced() -> None:
    s = thinking([Answer("42, says the page", thinking="hm", native=(CODE, SEARCH, PAGES))])

    await s.run(plan(stage("look", native())))

    events = {e.type: e for e in s.record.events.values()}
    assert all(e.status is EventStatus.COMPLETED for e in events.values())
    code, search, pages = (
        events[EventType.CODE_EXECUTION],
        events[EventType.GOOGLE_SEARCH_RESULT],
        events[EventType.URL_CONTEXT_RESULT],
    )
    assert (code.content, code.metadata) == ("42\n", {"code": "print(6 * 7)", "language": "python"})
    assert search.content == "OOM killer https://docs.example/oom"
    assert search.metadata["queries"] == ["exit code 137"]
    assert pages.metadata["sources"] == [{"title": "", "url": "https://docs.example/runbook"}]
    (row,) = s.record.model_calls.values()
    assert row.result is not None
    assert row.result.response_metadata == {
        "finish_reason": "stop",
        "code_execution": [{"code": "print(6 * 7)", "output": "42\n", "language": "python"}],
        "grounding": [
            {
                "kind": "search",
                "queries": ["exit code 137"],
                "sources": [{"title": "OOM killer", "url": "https://docs.example/oom"}],
            },
            {"kind": "url_context", "queries": [], "sources": [{"title": "", "url": "https://docs.example/runbook"}]},
        ],
    }


async def test_what_the_provider_did_for_a_lost_answer_is_closed_with_it() -> None:
    lost = ModelError(ModelErrorCode.PARTIAL_STREAM, "the connection broke", retryable=True, started=True)
    answers = [Answer("4", native=(CODE,), error=lost), Answer("42")]
    s = scene({"triage": answers})

    await s.run(plan(stage("look", native())))

    (code,) = [e for e in s.record.events.values() if e.type is EventType.CODE_EXECUTION]
    assert code.status is EventStatus.FAILED


async def test_both_kinds_of_synthesis_combine_the_agents_of_a_stage() -> None:
    for strategy in (Strategy.SYNTHESIS, Strategy.SYNTHESIS_NATIVE_THINKING):
        s = scene({"a": [Answer("1")], "b": [Answer("2")], "look-synth": [Answer("12", thinking="both")]})
        of = stage("look", agent("a"), agent("b")).model_copy(update={"synthesis": single("look-synth", strategy)})

        outcome = await s.run(plan(of))

        assert outcome.final_analysis == "12"
        (request,) = s.models.requests_of("look-synth")
        assert request.tools == ()
        thoughts = [e.content for e in s.record.events.values() if e.type is EventType.LLM_THINKING]
        assert thoughts == ["both"]
