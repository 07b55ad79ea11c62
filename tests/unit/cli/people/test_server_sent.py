"""Server-sent events, however their bytes are cut."""

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.outbound import server_sent_events
from tarsy.outbound.server_sent_events import EventTooLarge, ServerSent, parse_events

STREAM = (
    "\ufeffretry: 1000\n\n: still here\n\n"
    'id: 1\nevent: delta\ndata: {"text": "für"}\n\n'
    "data: first\r\ndata:second\r\n\r\n"
    "id: 2\rdata\rdata: x: y\r\r"
    "event: nothing\n\n"
    "data: unfinished"
).encode()
EXPECTED = [
    ServerSent("delta", '{"text": "für"}', "1"),
    ServerSent("message", "first\nsecond", "1"),
    ServerSent("message", "\nx: y", "2"),
]


async def read(*pieces: bytes) -> list[ServerSent]:
    async def coming() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return [event async for event in parse_events(coming())]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
async def test_events_are_the_same_wherever_the_stream_is_cut(places: list[int]) -> None:
    cuts = [0, *sorted(places), len(STREAM)]
    assert await read(*(STREAM[a:b] for a, b in pairwise(cuts))) == EXPECTED


async def test_an_event_over_the_limit_is_refused_in_one_line_and_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_sent_events, "LARGEST_EVENT", 20)
    assert await read(b"data: " + b"x" * 14 + b"\n\n") == [ServerSent("message", "x" * 14, "")]
    with pytest.raises(EventTooLarge):
        await read(b"data: " + b"x" * 10, b"x" * 10)
    with pytest.raises(EventTooLarge):
        await read(*[b"data: xxxxxxx\n"] * 3)
