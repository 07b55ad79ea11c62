"""A timeline on a terminal and for programs."""

import json
from uuid import UUID

import pytest

from tarsy.cli.runs.timeline import ApiTimeline, show_timeline
from tarsy.client.errors import ApiUseError
from tarsy.http.views.common import FailureView
from tarsy.http.views.timeline import FindingView
from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.shown_confidence import HighVerdicts
from tarsy.record.run import State
from tarsy.record.timeline import EventType
from unit.cli.people.doors import FakeDoor, event, head, page, told

CALL = event(2, "a\x1b[2J\u202eresult", kind=EventType.LLM_TOOL_CALL, name="k.\x1blogs", arguments="{}", call_id="c1")
CALL = CALL.model_copy(update={"tool_call": UUID(int=5)})


def door(*, state: State = State.COMPLETED) -> FakeDoor:
    pages = [page(event(1), CALL, more=True), page(CALL, event(3, "done"), state=state)]
    answers = {
        "timeline": [*pages],
        "timeline?first": [page(event(1, "still full"), state=State.COMPLETED)],
        "timeline?refused": [ApiUseError("no answer", 404)],
    }
    return FakeDoor(answers, [], ("first", "refused"))


async def test_pages_are_joined_with_the_answers_to_questions(capsys: pytest.CaptureFixture[str]) -> None:
    assert await show_timeline(ApiTimeline(door(), "shop", "run"), "json", following=False) == 0
    document = json.loads(capsys.readouterr().out)
    assert [item["seq"] for item in document["items"]] == [1, 2, 3]
    assert document["more"] is False and document["investigation"]["state"] == "completed"
    (answer,) = document["questions"]
    assert answer["items"][0]["content"] == "still full"


async def test_people_see_no_escape_and_ids_only_when_they_want_them(capsys: pytest.CaptureFixture[str]) -> None:
    await show_timeline(ApiTimeline(door(), "shop", "run"), "text", following=False)
    text = capsys.readouterr().out
    assert "a[2Jresult" in text and "k.logs" in text and "\x1b" not in text and "\u202e" not in text
    assert "shop/run: Succeeded" in text and "still full" in text and "--mcp" not in text
    await show_timeline(ApiTimeline(door(), "shop", "run"), "wide", following=False)
    assert f"--mcp {UUID(int=5)}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("floor", "shown"),
    [(0.5, "High (12 of 20 right)"), (0.387, "High (12 of 20 right)"), (0.386, "High"), (0.0, "High")],
)
async def test_the_confidence_of_a_finding_is_shown_by_the_floor_of_the_server(
    floor: float, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = Finding(summary="The disk is full.", confidence=Confidence.HIGH)
    view = FindingView.of(finding, HighVerdicts(12, 20, floor))
    ended = page(event(1), state=State.COMPLETED).model_copy(
        update={"investigation": head(State.COMPLETED, finding=view)}
    )
    await show_timeline(ApiTimeline(FakeDoor({"timeline": [ended]}, []), "shop", "run"), "text", following=False)
    assert f"Finding ({shown}): The disk is full." in capsys.readouterr().out


async def test_programs_follow_by_one_document_an_event(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def is_accepted(*_: object) -> None:
        pass

    monkeypatch.setattr("tarsy.cli.runs.timeline.accepted", is_accepted)
    failed = head(State.FAILED).model_copy(update={"failure": FailureView(reason="ModelError", message="away")})
    answers = {"timeline": [page(event(1)), page(event(2), state=State.FAILED)]}
    following = FakeDoor({**answers}, [[told(event(2)), told(failed)]])
    assert await show_timeline(ApiTimeline(following, "shop", "run"), "json", following=True) == 0
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [d["event"]["seq"] for d in documents if "event" in d] == [1, 2]
    assert documents[-1]["investigation"]["state"] == "failed"
