"""Tests parsing of channel names and cursors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.http.errors import BadRequest
from tarsy.http.live.authorization import read_topic
from tarsy.http.live.cursor import Cursor, read_cursor


@pytest.mark.parametrize(
    "channel", ["investigations", "investigations:team-a", "investigation:team-a/alert-1", "investigation:a/b.c"]
)
def test_a_channel_is_called_as_it_is_written(channel: str) -> None:
    assert read_topic(channel).channel == channel


def test_a_list_and_an_investigation_need_rights_of_their_own() -> None:
    listed, one = read_topic("investigations:team-a").permission, read_topic("investigation:team-a/x").permission
    assert (listed.verb, listed.group, listed.resource, listed.subresource) == (
        "list",
        "tarsy.dev",
        "investigations",
        "",
    )
    assert (one.verb, one.group, one.subresource) == ("get", "record.tarsy.dev", "events")


@pytest.mark.parametrize(
    "channel",
    [
        "",
        "investigation",
        "investigations:",
        "investigations:team-a/x",
        "investigations:Team",
        "investigations:a,b",
        "investigation:team-a",
        "investigation:/x",
        "investigation:team-a/",
        "investigation:team-a/x/y",
        "investigation:team-a/../x",
        f"investigations:{'a' * 64}",
        f"investigation:a/{'b' * 254}",
    ],
)
def test_what_is_no_channel_is_refused(channel: str) -> None:
    with pytest.raises(BadRequest):
        read_topic(channel)


@given(st.dictionaries(st.integers(0, 999), st.integers(0, 10**18 - 1), max_size=20))
def test_a_cursor_is_read_as_it_was_written(revisions: dict[int, int]) -> None:
    cursor = Cursor(revisions)
    read = read_cursor(str(cursor))
    assert [read.of(place) for place in range(1000)] == [cursor.of(place) for place in range(1000)]


def test_without_questions_a_cursor_is_a_revision() -> None:
    assert str(Cursor({0: 57})) == "57"
    assert str(Cursor({0: 57, 2: 3, 1: 12})) == "57,1:12,2:3"
    assert str(Cursor()) == "0"


@pytest.mark.parametrize(
    "text", ["", "-1", "x", "1,", "1,2", "1,2:", "1,:2", " 1", "1\n", "١", "1" * 19, "1" + ",1:1" * 1100]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="id of a message"):
        read_cursor(text)
