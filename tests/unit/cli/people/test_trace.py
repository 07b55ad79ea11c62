"""The calls of an investigation, and one of them."""

from datetime import timedelta
from io import StringIO
from uuid import UUID

import pytest
from rich.console import Console

from tarsy.cli.runs.trace import listed, model_call_block, show_call, show_trace, tool_call_block
from tarsy.client.errors import ApiUseError
from tarsy.http.views.common import FailureView, RunRef, Spent
from tarsy.http.views.trace import (
    AgentTrace,
    MessageView,
    ModelCallDetails,
    ModelCallView,
    Owner,
    StageTrace,
    ToolCallDetails,
    ToolCallView,
    ToolUse,
    TraceView,
)
from tarsy.record.judging.replay import Rung
from tarsy.record.messages import Access, Role
from tarsy.record.run import InteractionState, ModelCallKind, StageKind, State
from unit.cli.people.doors import NOW, RUN, FakeDoor

AGENT = UUID(int=50)
SPENT = Spent(input_tokens=1200, output_tokens=34, total_tokens=1234, cost_usd=0.5)
OWNER = Owner(stage="look", agent="triage", execution=AGENT, chat_message=None)


def call_id(start: str) -> UUID:
    return UUID(start.ljust(32, "0"))


def model_call(start: str, second: int = 0, failure: FailureView | None = None) -> ModelCallView:
    return ModelCallView(
        id=call_id(start),
        state=InteractionState.FAILED if failure else InteractionState.COMPLETED,
        started_at=NOW + timedelta(seconds=second),
        finished_at=NOW,
        duration_ms=1500,
        number=0,
        kind=ModelCallKind.FORCED_CONCLUSION,
        provider="default",
        model="m\x1b[1m",
        strategy="langchain",
        spent=None if failure else SPENT,
        failure=failure,
    )


def tool_call(start: str, second: int = 0, refused: str | None = None) -> ToolCallView:
    return ToolCallView(
        id=call_id(start),
        state=InteractionState.COMPLETED,
        started_at=NOW + timedelta(seconds=second),
        finished_at=NOW,
        duration_ms=20,
        server="k",
        tool="logs",
        ref="call_1",
        attempt=1,
        made=refused is None,
        repeated_of=None,
        refused=refused,
        access=Access.READ_ONLY,
    )


def trace(llm: tuple[ModelCallView, ...], mcp: tuple[ToolCallView, ...], following: str | None = None) -> TraceView:
    agent = AgentTrace(
        id=AGENT,
        name="triage",
        agent="triage",
        strategy="langchain",
        provider="default",
        model="m",
        state=State.COMPLETED,
        started_at=NOW,
        finished_at=NOW,
        failure=None,
        model_calls=len(llm),
        tool_calls=len(mcp),
        spent=SPENT,
        llm=llm,
        mcp=mcp,
    )
    stage = StageTrace(
        id=UUID(int=51),
        index=0,
        name="look",
        kind=StageKind.INVESTIGATION,
        state=State.COMPLETED,
        started_at=NOW,
        finished_at=NOW,
        parallel=None,
        success_policy=None,
        expected_agents=1,
        failure=None,
        agents=(agent,),
    )
    about = RunRef(namespace="shop", name="run", uid=RUN)
    return TraceView(investigation=about, started_at=NOW, finished_at=NOW, stages=(stage,), next=following)


def lines(block: object, width: int = 120) -> list[str]:
    out = StringIO()
    Console(file=out, width=width, markup=False, highlight=False).print(block)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_calls_are_listed_in_the_order_in_which_they_were_begun() -> None:
    failure = FailureView(reason="RateLimited", message="later")
    found = lines(listed(trace((model_call("a", 0), model_call("c", 9, failure)), (tool_call("b", 3),))))
    assert found[0] == "look/triage m of default, langchain 1,200 in, 34 out, $0.5000 Succeeded"
    assert found[1] == "+0.0s 1.5s model forced conclusion 1,200 in, 34 out, $0.5000 --llm a0000000"
    assert found[2] == "+3.0s 0.0s tool k.logs try 2 --mcp b0000000"
    assert found[3] == "+9.0s Failed model forced conclusion RateLimited tokens unknown --llm c0000000"


def test_a_stage_that_asks_no_model_names_none() -> None:
    found = trace((), (tool_call("b", 3),))
    (stage,) = found.stages
    reader = stage.agents[0].model_copy(update={"strategy": "changes", "provider": "", "model": ""})
    plain = found.model_copy(update={"stages": (stage.model_copy(update={"agents": (reader,)}),)})
    assert lines(listed(plain))[0] == "look/triage changes Succeeded"


def test_ids_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    found = lines(listed(trace((model_call("aaaaaaaa1"),), (tool_call("aaaaaaaa2"),))))
    assert [line.split()[-1] for line in found[1:3]] == ["aaaaaaaa-1", "aaaaaaaa-2"]


def test_a_call_of_a_replay_tells_the_origin_of_its_answer() -> None:
    recorded = tool_call("a").model_copy(update={"rung": Rung.DERIVED, "cassette_line": 7})
    missing = tool_call("b").model_copy(update={"rung": Rung.MISS})
    found = " ".join(lines(listed(trace((), (recorded, missing)))))
    assert "replay: derived, line 7 of the record" in found and "replay: miss try 2" in found


def test_a_call_that_was_refused_says_why() -> None:
    assert "refused: NotPinned" in " ".join(lines(listed(trace((), (tool_call("a", refused="NotPinned"),)))))


async def test_pages_of_calls_are_one_list(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [trace((model_call("a"),), (), "next"), trace((), (tool_call("b", 1),))]
    door = FakeDoor({"trace": [*pages]}, [])
    assert await show_trace(door, "shop", "run", None, "text") == 0
    text = capsys.readouterr().out
    assert "--llm a0000000" in text and "--mcp b0000000" in text
    assert [query.get("continue") for _, query in door.asked] == [None, "next"]


def details(start: str) -> ToolCallDetails:
    return ToolCallDetails(
        **dict(tool_call(start)),
        owner=OWNER,
        call_id="call_1",
        arguments='{"pod": "a"}',
        result="x\x1b[2J",
        idempotency_key="k",
        repeatable=True,
        tries=(call_id(start),),
    )


async def test_the_beginning_of_an_id_is_enough_where_it_is_one_calls_only(capsys: pytest.CaptureFixture[str]) -> None:
    calls = trace((), (tool_call("aa1"), tool_call("aa2")))
    path = f"trace/mcp/{call_id('aa1')}"
    door = FakeDoor({"trace": [calls], path: [details("aa1")]}, [])
    assert await show_call(door, "shop", "run", "mcp", "AA1", "text") == 0
    assert "k.logs for look/triage" in capsys.readouterr().out
    with pytest.raises(ApiUseError, match="2 tool calls of shop/run have ids that begin with aa"):
        await show_call(door, "shop", "run", "mcp", "aa", "text")
    with pytest.raises(ApiUseError, match="has no model call whose id begins with aa"):
        await show_call(door, "shop", "run", "llm", "aa", "text")
    assert (
        await show_call(FakeDoor({path: [details("aa1")]}, []), "shop", "run", "mcp", str(call_id("aa1")), "json") == 0
    )


async def test_a_call_of_an_answer_is_found_too(capsys: pytest.CaptureFixture[str]) -> None:
    path = f"trace/mcp/{call_id('bb')}"
    answers = {"trace": [trace((), ())], "trace?q": [trace((), (tool_call("bb"),))], path: [details("bb")]}
    assert await show_call(FakeDoor({**answers}, [], ("lost", "q")), "shop", "run", "mcp", "bb", "yaml") == 0
    assert "callId: call_1" in capsys.readouterr().out


def test_a_tool_call_shows_arguments_and_result_without_escapes() -> None:
    found = lines(tool_call_block(details("a")))
    assert '"pod": "a"' in found and "x[2J" in found and "try 2" in found


def test_a_model_call_shows_what_was_sent_and_what_was_answered() -> None:
    use = ToolUse(id="call_1", name="k.logs", arguments="{}")
    found = lines(
        model_call_block(
            ModelCallDetails(
                **dict(model_call("a")),
                owner=OWNER,
                messages=(
                    MessageView(role=Role.SYSTEM, content="You are\x1b[0m careful."),
                    MessageView(role=Role.TOOL, content="OOM", tool_call_id="call_1", tool_name="k.logs"),
                ),
                tools=(),
                answer=MessageView(role=Role.ASSISTANT, content="I see.", tool_calls=(use,)),
                thinking="hm",
                metadata={},
                estimated_tokens=0,
                estimated_cost_usd=0.0,
            )
        )
    )
    for line in ("system", "You are[0m careful.", "tool of k.logs call_1", "OOM", "thinking", "hm", "answer", "I see."):
        assert line in found
    assert "calls k.logs {} call_1" in found
