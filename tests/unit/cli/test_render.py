"""What the terminal shows of a record."""

from datetime import UTC, datetime
from io import StringIO
from uuid import UUID

from rich.console import Console

from tarsy.cli.runs.render import RunSummary, event_block, outcome_block
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.record.run import DesiredState, InvestigationRecord, RunOutcome, State
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent
from tarsy.record.usage import Usage

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


def shown(block: object) -> str:
    console = Console(width=200, color_system=None, file=StringIO())
    console.print(block)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def record(finding: Finding) -> InvestigationRecord:
    return InvestigationRecord(
        id=UUID(int=1),
        namespace="team-a",
        name="run",
        alert_type="DiskFull",
        chain="disk",
        chain_namespace="team-a",
        plan_hash="",
        stages_planned=1,
        state=State.COMPLETED,
        desired_state=DesiredState.RUNNING,
        attempt=1,
        revision=1,
        published_revision=0,
        accepted_at=NOW,
        started_at=NOW,
        finished_at=NOW,
        deadline=None,
        usage=Usage(),
        model_calls=1,
        interrupted_model_calls=0,
        tool_calls=1,
        stages=(),
        outcome=RunOutcome(State.COMPLETED, "analysis", finding),
    )


def test_a_finding_is_shown_with_what_each_claim_rests_on_and_what_does_not_hold() -> None:
    good = Citation(
        call_id="call_1", quote="No space left", supported=True, stage="look", agent="triage", tool="k.logs"
    )
    bad = Citation(call_id="call_2", quote="invented", reason="no tool call of this run has this id")
    claims = (
        Claim(text="It is full.", citations=(good,), supported=True),
        Claim(text="It will pass.", citations=(bad,)),
    )
    finding = Finding(summary="Full.", confidence=Confidence.LOW, claims=claims, notes=("Confidence lowered.",))

    text = shown(outcome_block(RunSummary.of_record(record(finding))))

    assert "Finding (Low): Full." in text
    assert "- supported: It is full." in text
    assert "call_1 look/triage/k.logs: “No space left”" in text
    assert "- not supported: It will pass." in text
    assert "“invented” (no tool call of this run has this id)" in text
    assert "Confidence lowered." in text


def test_a_tool_call_shows_what_it_is_cited_with() -> None:
    event = TimelineEvent(
        id=UUID(int=2),
        type=EventType.LLM_TOOL_CALL,
        status=EventStatus.COMPLETED,
        content="No space left",
        metadata={"name": "k.logs", "arguments": "{}", "call_id": "call_1"},
        created_at=NOW,
    )

    assert "k.logs {}  call_1" in shown(event_block(event))


def test_a_question_shows_who_asked_it_and_through_what() -> None:
    told = {"author": "alice@example.org", "via": "Slack"}
    event = TimelineEvent(
        id=UUID(int=2),
        type=EventType.USER_QUESTION,
        status=EventStatus.COMPLETED,
        content="Why?",
        metadata=told,
        created_at=NOW,
    )
    assert "alice@example.org via Slack  " in shown(event_block(event))
    del told["via"]
    assert "alice@example.org  " in shown(event_block(event))


def test_a_tool_call_of_a_replay_shows_the_origin_of_its_answer() -> None:
    told = {"rung": "exact", "line": 3}
    event = TimelineEvent(
        id=UUID(int=2),
        type=EventType.LLM_TOOL_CALL,
        status=EventStatus.COMPLETED,
        content="x",
        metadata={"name": "k.logs", "arguments": "{}", "call_id": "call_1", **told},
        created_at=NOW,
    )
    assert "k.logs {}  replay: exact, line 3 of the record  call_1" in shown(event_block(event))


def test_a_range_result_is_drawn_below_its_text_with_its_onset() -> None:
    content = (
        "1 series\nseries up{}\n  now 7 at x | onset 2026-11-20T09:02:00Z (first > 5: 0 -> 7)\n"
        "  shape 2026-11-20T09:00:00Z +60s: 0 - 7 7"
    )
    event = TimelineEvent(
        id=UUID(int=2),
        type=EventType.LLM_TOOL_CALL,
        status=EventStatus.COMPLETED,
        content=content,
        metadata={"name": "prometheus.query_range"},
        created_at=NOW,
    )
    assert "▁ ██  up{}  onset 2026-11-20T09:02:00Z" in shown(event_block(event))


def test_every_kind_of_event_can_be_shown() -> None:
    for kind in EventType:
        event = TimelineEvent(id=UUID(int=3), type=kind, status=EventStatus.COMPLETED, content="x", created_at=NOW)
        assert "x" in shown(event_block(event))


def test_an_event_of_a_type_that_this_version_does_not_know_is_shown_with_its_type() -> None:
    event = TimelineEvent(
        id=UUID(int=4), type="something_newer", status=EventStatus.COMPLETED, content="x", created_at=NOW
    )
    text = shown(event_block(event))
    assert "something newer" in text and "x" in text
