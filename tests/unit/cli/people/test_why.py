"""Each claim with what it rests on, as far as the caller may read it."""

import json
from io import StringIO
from uuid import UUID

import pytest
from rich.cells import cell_len
from rich.console import Console

from tarsy.cli.runs.render import RunSummary, status_line
from tarsy.cli.runs.why import Why, explain_finding, render_finding, resolve_citations
from tarsy.client.errors import ApiUseError
from tarsy.http.models import View
from tarsy.http.views.common import OtherRunView
from tarsy.http.views.timeline import ChangeForGitView, CitationView, ClaimView, FindingView, ManagedObjectView
from tarsy.http.views.trace import Owner, ToolCallDetails
from tarsy.record.finding import Confidence
from tarsy.record.messages import Access
from tarsy.record.run import InteractionState, State
from unit.cli.people.doors import NOW, FakeDoor, head, page

CALL = UUID(int=7)
RESULT = "NAME  READY\npod-a  0/1\nLast State: OOMKilled\x1b[2J\nExit Code: 137\n"


def citation(quote: str, *, interaction: UUID | None = CALL, reason: str | None = None) -> CitationView:
    return CitationView(
        call_id="call_1",
        quote=quote,
        supported=reason is None,
        reason=reason,
        interaction=interaction,
        stage="look" if interaction else None,
        agent="triage" if interaction else None,
        tool="kubernetes-tools.describe" if interaction else None,
    )


def finding(*claims: ClaimView) -> FindingView:
    return FindingView(
        summary="The pod runs out of memory.",
        confidence=Confidence.MEDIUM,
        structured=True,
        claims=claims,
        notes=("Confidence lowered from High to Medium.",),
    )


GOOD = ClaimView(text="It was killed.", supported=True, citations=(citation("Last State: OOMKilled"),))
BAD = ClaimView(
    text="It will pass.",
    supported=False,
    citations=(citation("all is well", reason="the quote is not in the result of this call"),),
)
MADE_UP = ClaimView(
    text="It is the node.",
    supported=False,
    citations=(citation("node", interaction=None, reason="no tool call of this run has this id"),),
)
EMPTY = ClaimView(text="I think so.", supported=False, citations=())


def tool_call(result: str = RESULT) -> ToolCallDetails:
    return ToolCallDetails(
        id=CALL,
        state=InteractionState.COMPLETED,
        started_at=NOW,
        finished_at=NOW,
        duration_ms=12,
        server="kubernetes-tools",
        tool="describe",
        ref="call_1",
        attempt=0,
        made=True,
        repeated_of=None,
        refused=None,
        access=Access.READ_ONLY,
        owner=Owner(stage="look", agent="triage", execution=UUID(int=8), chat_message=None),
        call_id="call_1",
        arguments='{"name": "pod-a"}',
        result=result,
        idempotency_key="k",
        repeatable=True,
        tries=(CALL,),
    )


async def resolved(*claims: ClaimView, call: View | Exception | None = None) -> tuple[Why, FakeDoor]:
    door = FakeDoor({f"trace/mcp/{CALL}": [call or tool_call()]}, [])
    return await resolve_citations(door, head(State.COMPLETED), finding(*claims)), door


def text_of(why: Why, width: int = 100) -> str:
    out = StringIO()
    Console(file=out, width=width, markup=False, highlight=False).print(render_finding(why))
    return out.getvalue()


async def test_a_confidence_is_shown_with_the_count_that_the_server_gives() -> None:
    high = finding(GOOD).model_copy(update={"confidence": Confidence.HIGH})
    for shown, line in (("High (12 of 20 right)", "High (12 of 20 right)"), ("High", "High"), (None, "High")):
        told = high.model_copy(update={"shown_confidence": shown})
        door = FakeDoor({f"trace/mcp/{CALL}": [tool_call()]}, [])
        why = await resolve_citations(door, head(State.COMPLETED), told)
        assert f"Confidence: {line}\n" in text_of(why).replace(" \n", "\n")
        assert why.confidence is Confidence.HIGH


async def test_the_runs_that_it_reruns_and_that_rerun_it_are_named() -> None:
    door = FakeDoor({f"trace/mcp/{CALL}": [tool_call()]}, [])
    retries = {
        "retry_of": OtherRunView(name="first\x1b[2J", uid=UUID(int=1)),
        "retried_by": OtherRunView(name="third", uid=UUID(int=3)),
    }
    run = head(State.COMPLETED).model_copy(update=retries)
    text = text_of(await resolve_citations(door, run, finding(GOOD)))
    assert "Retry of first" in text and "Retried by third" in text and "\x1b" not in text
    summary = RunSummary.of_head(run)
    assert summary.retries == ("Retry of first[2J", "Retried by third")
    assert "Retried by third" in status_line(summary).plain


async def test_a_quote_is_shown_in_its_result_with_the_call_it_comes_from() -> None:
    why, door = await resolved(GOOD, GOOD)
    text = text_of(why)
    assert "1. supported: It was killed." in text
    assert "kubernetes-tools.describe  2026-11-22 12:00:00Z  look/triage  call_1" in text
    assert "»Last State: OOMKilled«" in text and "Exit Code: 137" in text
    assert '{"name": "pod-a"}' in text
    assert "Confidence: Medium" in text and "Confidence lowered from High to Medium." in text
    assert [part for part, _ in door.asked] == [f"trace/mcp/{CALL}"]
    assert "\x1b" not in text


async def test_a_claim_that_does_not_hold_is_marked_with_the_reason() -> None:
    text = text_of((await resolved(BAD, MADE_UP, EMPTY))[0])
    assert text.count("not supported: ") == 3
    assert "does not hold: the quote is not in the result of this call" in text
    assert "an unknown call" in text and "does not hold: no tool call of this run has this id" in text
    assert "it cites nothing" in text


METRICS = """2 series
series mem{pod="a"}
  now 3 at 2026-11-22T12:00:00Z | onset 2026-11-22T11:58:00Z (first > 2: 1 -> 3)\x1b[2J
  shape 2026-11-22T11:56:00Z +60s: 1 1 3 - 3
series mem{pod="b"}
  now 1 at 2026-11-22T12:00:00Z
  shape 2026-11-22T11:56:00Z +60s: 1 2 1 1 1"""


async def test_the_series_that_a_quote_is_from_is_drawn_and_no_other() -> None:
    claim = GOOD.model_copy(update={"citations": (citation("now 3 at 2026-11-22T12:00:00Z"),)})
    why, _ = await resolved(claim, call=tool_call(METRICS))
    text = text_of(why)
    assert '▁▁█ █  mem{pod="a"}  onset 2026-11-22T11:58:00Z' in text
    assert "▁█▁▁▁" not in text and "\x1b" not in text
    assert '"series":' not in why.model_dump_json(), "programs have the result itself"


async def test_a_quote_that_is_of_no_series_draws_nothing() -> None:
    claim = GOOD.model_copy(update={"citations": (citation("2 series"),)})
    why, _ = await resolved(claim, call=tool_call(METRICS))
    assert "█" not in text_of(why)


async def test_who_may_not_read_the_trace_sees_the_quotes_and_what_is_hidden() -> None:
    why, _ = await resolved(GOOD, call=ApiUseError("ask for the role tarsy-tracer", 403))
    text = text_of(why)
    assert "“Last State: OOMKilled”" in text and "Exit Code" not in text
    assert "The results around the quotes are hidden: ask for the role tarsy-tracer" in text


async def test_another_failure_than_a_missing_right_is_not_hidden() -> None:
    with pytest.raises(ApiUseError, match="is away"):
        await resolved(GOOD, call=ApiUseError("the record is away", 503))


@pytest.mark.parametrize("width", [20, 40, 80])
async def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    why, _ = await resolved(GOOD, BAD, MADE_UP, call=tool_call("漢字" * 300 + " Last State: OOMKilled " + "x" * 500))
    assert max(cell_len(line) for line in text_of(why, width).splitlines()) <= width


async def test_programs_get_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    answer = page(state=State.COMPLETED)
    answer = answer.model_copy(update={"investigation": head(State.COMPLETED, finding=finding(GOOD, MADE_UP))})
    door = FakeDoor({"timeline": [answer], f"trace/mcp/{CALL}": [tool_call()]}, [])
    assert await explain_finding(door, "shop", "run", "json") == 0
    document = json.loads(capsys.readouterr().out)
    good, bad = document["claims"]
    assert good["citations"][0]["before"].endswith("pod-a  0/1\n")
    assert bad["citations"][0]["calledAt"] is None
    assert document["hidden"] is None


@pytest.mark.parametrize(
    ("state", "words"),
    [(State.RUNNING, "has found nothing yet; `timeline run -f`"), (State.CANCELLED, "and left no finding")],
)
async def test_without_a_finding_it_says_why(state: State, words: str) -> None:
    door = FakeDoor({"timeline": [page(state=state)]}, [])
    with pytest.raises(ApiUseError, match=words):
        await explain_finding(door, "shop", "run", "text")


async def test_a_change_for_git_is_shown_with_its_objects_and_as_text() -> None:
    change = ChangeForGitView(
        tool="k8s.scale",
        objects=(ManagedObjectView(object="Deployment shop/checkout", managed_by="Helm (release shop\x1b[2J)"),),
        patch="-  replicas: 1\n+  replicas: 3",
    )
    found = finding(GOOD).model_copy(update={"changes_for_git": (change,)})
    door = FakeDoor({f"trace/mcp/{CALL}": [tool_call()]}, [])
    text = text_of(await resolve_citations(door, head(State.COMPLETED), found))
    assert "Change to make in Git: Deployment shop/checkout is managed by Helm (release shop[2J)" in text
    assert "    +  replicas: 3" in text
