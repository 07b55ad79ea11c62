"""Two investigations side by side."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tarsy.cli.compare import MOST_CALLS, compare_runs
from tarsy.client.errors import ApiUseError
from tarsy.client.refusals import Right
from tarsy.http.models import View
from tarsy.http.views.common import RunRef, Spent
from tarsy.http.views.timeline import ClaimView, FindingView, ReplayView, RunHead, TimelineView
from tarsy.http.views.trace import AgentTrace, Owner, StageTrace, ToolCallDetails, ToolCallView, TraceView
from tarsy.record.finding import Confidence
from tarsy.record.messages import Access
from tarsy.record.replay import ReplayDivergence, ReplayReport, ReplayStep
from tarsy.record.run import InteractionState, StageKind, State
from unit.cli.people.doors import NOW, RUN, FakeDoor, head

SPENT = Spent(input_tokens=100, output_tokens=10, total_tokens=110, cost_usd=0.25)


class TwoRuns(FakeDoor):
    """Serves views by the whole path below the namespace."""

    def __init__(self, views: Mapping[str, View]) -> None:
        super().__init__({}, [])
        self._views = views

    async def read(self, path: str, right: Right, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        found = self._views.get(path.removeprefix("/namespaces/shop/investigations/"))
        if found is None:
            raise ApiUseError(f"there is no {path}", 404)
        return found.model_dump(mode="json", by_alias=True)


def call_view(number: int, tool: str) -> ToolCallView:
    return ToolCallView(
        id=UUID(int=number),
        state=InteractionState.COMPLETED,
        started_at=NOW,
        finished_at=NOW,
        duration_ms=20,
        server="k",
        tool=tool,
        ref=f"call_{number}",
        attempt=0,
        made=True,
        repeated_of=None,
        refused=None,
        access=Access.READ_ONLY,
    )


def details(view: ToolCallView, arguments: str, tries: tuple[UUID, ...] = ()) -> ToolCallDetails:
    return ToolCallDetails(
        **dict(view),
        owner=Owner(stage="look", agent="triage", execution=UUID(int=50), chat_message=None),
        call_id=view.ref,
        arguments=arguments,
        result="fine",
        idempotency_key="key",
        repeatable=True,
        tries=tries or (view.id,),
    )


def agent(calls: tuple[ToolCallView, ...], name: str = "triage") -> AgentTrace:
    return AgentTrace(
        id=UUID(int=50),
        name=name,
        agent="triage",
        strategy="langchain",
        provider="default",
        model="m",
        state=State.COMPLETED,
        started_at=NOW,
        finished_at=NOW,
        failure=None,
        model_calls=1,
        tool_calls=len(calls),
        spent=SPENT,
        llm=(),
        mcp=calls,
    )


def stage(*agents: AgentTrace) -> StageTrace:
    return StageTrace(
        id=UUID(int=60),
        index=0,
        name="look",
        kind=StageKind.INVESTIGATION,
        state=State.COMPLETED,
        started_at=NOW,
        finished_at=NOW,
        parallel=None,
        success_policy=None,
        expected_agents=len(agents),
        failure=None,
        agents=agents,
    )


def finding(summary: str) -> FindingView:
    claim = ClaimView(text="the key is missing", supported=True, citations=())
    return FindingView(summary=summary, confidence=Confidence.HIGH, structured=True, notes=(), claims=(claim,))


def run(name: str, calls: list[tuple[str, str]], start: int, summary: str = "A key is missing.") -> dict[str, View]:
    """The views of a run whose one agent made these calls (tool, arguments); ids count from `start`."""
    views = tuple(call_view(start + i, tool) for i, (tool, _) in enumerate(calls))
    top: RunHead = head(State.COMPLETED, finding=finding(summary)).model_copy(
        update={"name": name, "finished_at": NOW + timedelta(seconds=90)}
    )
    whole = TraceView(
        investigation=RunRef(namespace="shop", name=name, uid=RUN),
        started_at=NOW,
        finished_at=NOW,
        stages=(stage(agent(views)),),
        next=None,
    )
    return {
        f"{name}/timeline": TimelineView(investigation=top, items=(), revision=1, more=False),
        f"{name}/trace": whole,
        **{f"{name}/trace/mcp/{v.id}": details(v, calls[i][1]) for i, v in enumerate(views)},
    }


async def compared(capsys: pytest.CaptureFixture[str], views: Mapping[str, View]) -> dict[str, Any]:
    assert await compare_runs(TwoRuns(views), "shop", "a", "b", "json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


async def test_runs_part_at_the_first_call_that_differs(capsys: pytest.CaptureFixture[str]) -> None:
    views = run("a", [("pods", "{}"), ("logs", '{"pod": "x", "tail": 5}')], 1) | run(
        "b", [("pods", "{ }"), ("events", "{}")], 11
    )
    found = await compared(capsys, views)
    assert found["agents"] == [
        {
            "stage": "look",
            "agent": "triage",
            "same": 1,
            "first": {"tool": "k.logs", "arguments": '{"pod":"x","tail":5}'},
            "second": {"tool": "k.events", "arguments": "{}"},
            "onlyIn": None,
        }
    ]
    assert found["first"]["seconds"] == 90.0
    assert found["first"]["toolCalls"] == 2
    assert found["first"]["spent"]["costUSD"] == 0.25
    assert found["first"]["claims"] == ["the key is missing"]


async def test_runs_with_the_same_calls_are_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    views = run("a", [("pods", '{"b":1,"a":2}')], 1) | run("b", [("pods", '{"a": 2, "b": 1}')], 11, "Other words.")
    assert await compare_runs(TwoRuns(views), "shop", "a", "b", "text") == 0
    shown = capsys.readouterr().out
    assert "1 tool calls, the same in both" in shown
    assert "Other words." in shown


async def test_a_call_that_was_tried_again_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    views = run("a", [("pods", "{}"), ("pods", "{}")], 1) | run("b", [("pods", "{}")], 11)
    tries = (UUID(int=1), UUID(int=2))
    for number in (1, 2):
        views[f"a/trace/mcp/{UUID(int=number)}"] = details(call_view(number, "pods"), "{}", tries)
    found = await compared(capsys, views)
    assert found["agents"][0]["same"] == 1
    assert found["agents"][0]["first"] is None
    assert found["agents"][0]["second"] is None


async def test_an_agent_of_one_run_only_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    views = run("a", [], 1) | run("b", [], 11)
    trace = views["b/trace"]
    assert isinstance(trace, TraceView)
    views["b/trace"] = trace.model_copy(update={"stages": (stage(agent(()), agent((), "second")),)})
    found = await compared(capsys, views)
    assert [(one["agent"], one["onlyIn"]) for one in found["agents"]] == [("triage", None), ("second", "second")]


async def test_what_models_and_tools_wrote_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    views = run("a", [("logs", '{"pod":"\\u001b[2J"}')], 1, "gone \x1b[2J") | run("b", [("pods\x1b[1m", "{}")], 11)
    assert await compare_runs(TwoRuns(views), "shop", "a", "b", "text") == 0
    assert "\x1b[2J" not in capsys.readouterr().out


@pytest.mark.parametrize(("made", "refused"), [(MOST_CALLS, False), (MOST_CALLS + 1, True)])
async def test_a_run_of_too_many_calls_is_refused(made: int, refused: bool, capsys: pytest.CaptureFixture[str]) -> None:
    views = run("a", [("pods", "{}")] * made, 1) | run("b", [], 5_000)
    if refused:
        with pytest.raises(ApiUseError, match="at most 1,000 can be compared"):
            await compare_runs(TwoRuns(views), "shop", "a", "b", "json")
    else:
        assert await compare_runs(TwoRuns(views), "shop", "a", "b", "json") == 0


async def test_a_replay_tells_its_coverage_its_rungs_and_where_it_first_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    views = run("a", [("pods", "{}")], 1) | run("b", [("pods", "{}")], 11)
    report = ReplayReport(
        rungs={"exact": 2, "miss": 1},
        unused=4,
        divergence=ReplayDivergence(stage=0, agent=1, index=2, recorded=ReplayStep(tool="k.logs", arguments="{}")),
    )
    page = views["b/timeline"]
    assert isinstance(page, TimelineView)
    top = page.investigation.model_copy(update={"replay": ReplayView.of(report)})
    views["b/timeline"] = page.model_copy(update={"investigation": top})
    assert await compare_runs(TwoRuns(views), "shop", "a", "b", "text") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "b is a replay coverage 67% (exact 2, miss 1); 4 recorded calls are not used" in shown
    assert "First divergence: Stage 1, agent 2, call 3: recorded k.logs {}; now no further call" in shown
    assert "a is a replay" not in shown
    found = await compared(capsys, views)
    assert found["first"]["replay"] is None and found["second"]["replay"]["rungs"] == {"exact": 2, "miss": 1}


async def test_a_run_that_is_not_on_record_is_named() -> None:
    with pytest.raises(ApiUseError, match="there is no"):
        await compare_runs(TwoRuns(run("a", [], 1)), "shop", "a", "b", "text")
