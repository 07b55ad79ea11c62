"""A run followed over connections that end: nothing is missed and nothing is told twice."""

from uuid import UUID

import pytest

from tarsy.client import following
from tarsy.client.errors import ApiUseError, BrokenOff
from tarsy.client.following import follow_investigation
from tarsy.http.live.messages import StageChange
from tarsy.http.views.timeline import EventView, RunHead
from tarsy.record.run import State
from tarsy.record.timeline import EventStatus
from unit.cli.people.doors import FakeDoor, event, head, page, sent, told


class Notes:
    """A teller that writes down what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.begins: list[UUID] = []
        self.pieces: list[str] = []
        self.aways: list[str] = []

    def closed(self, event: EventView, *, truncated: bool) -> None:
        self.texts.append(event.content + ("…" if truncated else ""))

    def begun(self, event: EventView) -> None:
        self.begins.append(event.id)

    def words(self, event: UUID, offset: int, text: str) -> None:
        self.pieces.append(text)

    def run(self, head: RunHead) -> None:
        pass

    def stage(self, stage: StageChange) -> None:
        pass

    def away(self, why: str) -> None:
        self.aways.append(why)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "RECONNECT_SECONDS", 0.0)


async def test_a_finished_run_is_read_page_by_page_and_not_followed() -> None:
    pages = [page(event(1), event(2), more=True), page(event(3), state=State.COMPLETED)]
    door, notes = FakeDoor({"timeline": [*pages]}, []), Notes()
    assert (await follow_investigation(door, "shop", "run", notes)).state is State.COMPLETED
    assert notes.texts == ["event 1", "event 2", "event 3"]
    assert [query["after"] for _, query in door.asked] == ["0", "2"]


async def test_what_comes_again_after_a_lost_connection_is_told_once() -> None:
    open_one = event(3, status=EventStatus.STREAMING)
    first = [told(open_one, "3"), told(event(2), "4"), BrokenOff("away")]
    second = [told(event(2), "4"), told(event(5), "5"), told(event(3), "6")]
    third = [told(event(3), "6"), sent("later.kind", "{}"), told(head(State.COMPLETED))]
    door = FakeDoor({"timeline": [page(event(1)), page(state=State.COMPLETED)]}, [first, second, third])
    notes = Notes()
    assert (await follow_investigation(door, "shop", "run", notes)).state is State.COMPLETED
    assert notes.texts == ["event 1", "event 2", "event 5", "event 3"]
    assert notes.begins == [open_one.id]
    assert notes.aways == ["away"]
    assert [query["after"] for part, query in door.asked if part == "events"] == ["1", "4", "6"]


async def test_an_overflow_is_read_by_pages() -> None:
    overflow = sent("overflow", '{"type": "overflow", "channel": "c", "after": "1", "id": "3"}', "3")
    rest = page(event(2), event(3), state=State.COMPLETED)
    door, notes = FakeDoor({"timeline": [page(event(1)), rest]}, [[overflow]]), Notes()
    await follow_investigation(door, "shop", "run", notes)
    assert notes.texts == ["event 1", "event 2", "event 3"]


async def test_only_the_question_that_is_meant_is_told() -> None:
    stream = [
        told(event(1, "of the investigation")),
        told(head(State.COMPLETED)),
        told(event(1, "of another"), question="other"),
        told(event(1, "mine"), question="mine"),
        told(head(State.FAILED), question="mine"),
    ]
    answers = {"timeline": [page(event(9), state=State.COMPLETED)], "timeline?mine": [ApiUseError("not yet", 404)]}
    door, notes = FakeDoor(answers, [stream]), Notes()
    assert (await follow_investigation(door, "shop", "run", notes, "mine")).state is State.FAILED
    assert notes.texts == ["mine"]


async def test_an_error_that_passes_is_waited_out_and_another_ends_it() -> None:
    def error(reason: str) -> bytes:
        return sent("error", f'{{"type": "error", "reason": "{reason}", "message": "no\\u001b"}}')

    streams = [[error("ServiceUnavailable")], [error("Forbidden")]]
    door, notes = FakeDoor({"timeline": [page(event(1))]}, streams), Notes()
    with pytest.raises(ApiUseError, match=r"^no \(Forbidden\)$"):
        await follow_investigation(door, "shop", "run", notes)
    assert notes.aways == ["no (ServiceUnavailable)"]


async def test_an_api_that_stays_away_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "AWAY_SECONDS", -1.0)
    door = FakeDoor({"timeline": [page(event(1))]}, [[BrokenOff("away")]])
    with pytest.raises(BrokenOff, match="away"):
        await follow_investigation(door, "shop", "run", Notes())


async def test_an_answer_of_another_version_is_a_sentence() -> None:
    door = FakeDoor({"timeline": [page(event(1))]}, [[sent("delta", '{"what": 1}')]])
    with pytest.raises(ApiUseError, match="of different versions"):
        await follow_investigation(door, "shop", "run", Notes())
