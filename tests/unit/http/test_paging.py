"""Tests `continue` tokens: issued ones are accepted, all others are refused with a message."""

from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from tarsy.http.errors import BadRequest
from tarsy.http.routes import paging
from tarsy.http.routes.investigations import page_position
from tarsy.http.routes.objects import paginate
from tarsy.http.routes.parameters import MAX_TOKEN, ListQuery
from tarsy.http.routes.timeline import with_limit
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent

WORDS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=4))
def test_a_token_gives_its_place_back(question: str, place: list[str]) -> None:
    assert paging.decode_continue(question, paging.encode_continue(question, place), len(place)) == place


@given(st.text(alphabet="ABCXYZabcxyz0189_-", min_size=1, max_size=200))
def test_what_was_never_given_out_is_refused(token: str) -> None:
    with pytest.raises(BadRequest, match="does not belong to this list"):
        paging.decode_continue("question", token, 2)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_token_of_another_shape_is_refused(parts: int) -> None:
    with pytest.raises(BadRequest):
        paging.decode_continue("question", paging.encode_continue("question", ("a", "b")), parts)


def test_the_longest_place_of_an_object_fits_a_token() -> None:
    place = ("n" * 63, "LLMProvider", "x" * 253, "Verified")
    assert len(paging.encode_continue("warnings", place)) <= MAX_TOKEN


@pytest.mark.parametrize("written", ["", "x", "-1", "1.5", "١", "9" * 10, "1e3"])
def test_a_number_is_digits_and_not_too_many(written: str) -> None:
    with pytest.raises(BadRequest):
        paging.number(written)


@pytest.mark.parametrize("written", ["", "now", "2026-13-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_is_one_that_there_is(written: str) -> None:
    with pytest.raises(BadRequest):
        paging.moment(written)


def test_a_time_has_a_zone() -> None:
    assert paging.moment("2026-11-22T12:00:00+01:00") == datetime(2026, 11, 22, 11, tzinfo=UTC)
    assert paging.moment("2026-11-22T12:00:00").tzinfo is UTC


@for_each("amount", ["NaN", "Infinity", "1E+1000000", "x", "-1E+19", "1E-100000", "", "1" * 19])
@for_each("sort", ["cost", "tokens", "duration", "severity", "confidence"])
def test_an_amount_that_is_none_is_refused(amount: str, sort: str) -> None:
    with pytest.raises(BadRequest):
        page_position([amount, str(uuid4())], sort)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 7))
def test_pages_hold_every_item_once_in_order(numbers: list[int], limit: int) -> None:
    items = [SimpleNamespace(place=(f"{number:03}", str(index))) for index, number in enumerate(numbers)]
    found: list[tuple[str, ...]] = []
    token: str | None = None
    while True:
        query = ListQuery.model_validate({"limit": limit, "continue": token})
        shown, token = paginate("question", query, items, lambda item: item.place, 2)
        assert len(shown) <= limit
        found += [item.place for item in shown]
        if token is None:
            break
    assert found == sorted(item.place for item in items)


def _event(seq: int, revision: int, characters: int) -> TimelineEvent:
    return TimelineEvent(
        id=uuid4(),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content="x" * characters,
        seq=seq,
        revision=revision,
    )


def test_a_page_of_a_timeline_ends_between_revisions_before_it_is_too_long() -> None:
    events = [_event(1, 3, 5), _event(2, 1, 5), _event(3, 2, 5), _event(4, 2, 5)]
    assert [event.revision for event in with_limit(events, 20)] == [1, 2, 2, 3]
    assert [event.revision for event in with_limit(events, 19)] == [1, 2, 2]
    assert [event.revision for event in with_limit(events, 15)] == [1, 2, 2]
    assert [event.revision for event in with_limit(events, 14)] == [1]
    assert [event.revision for event in with_limit(events, 1)] == [1]
    assert with_limit([], 1) == []
