"""Events come out of a stream whatever way it is cut, and never more of it is kept than the limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from tarsy.llm.openai_native.sse import EventParser, EventTooLong

LIMIT = 64


def events(*blocks: bytes, limit: int = 1 << 20) -> list[bytes]:
    parser = EventParser(limit)
    found = [event for block in blocks for event in parser.feed(block)]
    return found + parser.end()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@given(data=st.data())
def test_any_cut_of_the_bytes_gives_the_same_events(end: bytes, data: st.DataObject) -> None:
    lines = [
        "data: {}",
        "",
        ": keep-alive",
        "",
        "event: x",
        "data: é🔥",
        "id: 1",
        "",
        "data:a",
        "data: b",
        "",
        "data: [",
    ]
    raw = end.join(line.encode() for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)))))
    blocks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert events(*blocks) == [b"{}", "é🔥".encode(), b"a\nb", b"["]


def test_a_byte_order_mark_is_read_over_at_the_very_beginning_only() -> None:
    mark = b"\xef\xbb\xbf"
    assert events(mark + b"data: a\n\ndata: " + mark + b"\n\n") == [b"a", mark]


def test_an_event_without_data_is_none_and_empty_data_is_one() -> None:
    assert events(b"event: ping\n\n\n\n:\n\ndata:\n\nnonsense\n\n") == [b""]


def test_an_error_line_is_the_error_object_that_others_send_as_data() -> None:
    assert events(b'error: {"code":500}\n\n') == [b'{"error": {"code":500}}']


@for_each(("length", "fits"), [(LIMIT - 1, True), (LIMIT, True), (LIMIT + 1, False)])
@for_each("step", [1, 7, 1000])
@for_each("kind", ["one line", "many lines", "unfinished", "comment"])
def test_an_event_is_as_long_as_the_limit_and_no_longer(length: int, fits: bool, step: int, kind: str) -> None:
    raw = {
        "one line": b"data: " + b"x" * (length - 6) + b"\n\n",
        "many lines": b"data:\n" * 5 + b"data:" + b"x" * (length - 30) + b"\n\n",
        "unfinished": b"x" * length,
        "comment": b":" * length,
    }[kind]
    blocks = [raw[start : start + step] for start in range(0, len(raw), step)]
    if fits:
        events(*blocks, limit=LIMIT)
    else:
        with pytest.raises(EventTooLong):
            events(*blocks, limit=LIMIT)


def test_each_event_has_the_whole_limit() -> None:
    assert len(events(*[b"data: " + b"x" * (LIMIT - 6) + b"\n\n"] * 3, limit=LIMIT)) == 3


PARTS = [b"data: ", b"data:", b"data: {}\n\n", b"\n", b"\n\n", b"\r", b"error: x", b": ", b"a", b" ", b"\xef\xbb\xbf"]


@given(raw=st.lists(st.sampled_from(PARTS)).map(b"".join))
def test_a_packet_of_whole_events_is_read_as_its_bytes_one_by_one_are(raw: bytes) -> None:
    begun = b"data: first\n\n"
    assert events(begun, raw) == events(begun, *(raw[at : at + 1] for at in range(len(raw))))
