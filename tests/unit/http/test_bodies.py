"""Tests request bodies: nesting, duration, and displacement."""

import asyncio
import time
from typing import Any

import pytest

from tarsy.http.bodies import BodyRoom, SlowBody, depth_of
from tarsy.http.errors import BadRequest, Unavailable

SECONDS = 5.0


class Sent:
    """A request whose body comes in pieces: bytes, an error, or None for one that never comes."""

    content_length = None

    def __init__(self, *pieces: bytes | Exception | None) -> None:
        self._pieces = pieces
        self.asked = asyncio.Event()

    @property
    def content(self) -> "Sent":
        return self

    async def iter_any(self) -> Any:
        for piece in self._pieces:
            self.asked.set()
            if piece is None:
                await asyncio.Event().wait()
            if isinstance(piece, Exception):
                raise piece
            yield piece


async def _read(room: BodyRoom, sent: Sent, group: str = "shop", limit: int = 10) -> tuple[bytes, bool]:
    async with asyncio.timeout(SECONDS):
        return await room.read(sent, group, limit)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "depth"),
    [
        (b"", 0),
        (b"1", 0),
        (b"{}", 1),
        (b'{"a": [1, {"b": []}]}', 4),
        (b'{"a": "[[[["}', 1),
        (b'{"a": "\\"[[[["}', 1),
        (b'{"a\\\\": [["]"]]}', 3),
        (b'"[[[', 0),
        (b'"[[[\\', 0),
        (b"]]]]", 0),
        (b"[][][]", 1),
        (b"[" * 1000, 1000),
    ],
)
def test_depth_is_that_of_brackets_outside_of_strings(content: bytes, depth: int) -> None:
    assert max(0, depth_of(content)) == depth


@pytest.mark.parametrize("hostile", [b'"' + b'\\"' * 500_000, b'"' + b'\\"' * 500_000 + b"\\", b'"' * 1_000_001])
def test_depth_of_hostile_text_is_known_at_once(hostile: bytes) -> None:
    began = time.process_time()
    assert depth_of(hostile) == 0
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize(("size", "whole"), [(9, True), (10, True), (11, False)])
async def test_body_is_read_up_to_its_limit(size: int, whole: bool) -> None:
    content, all_of_it = await _read(BodyRoom(), Sent(b"x" * 5, b"x" * (size - 5)))
    assert (content, all_of_it) == (b"x" * min(size, 10), whole)


async def test_slow_body_is_given_up() -> None:
    with pytest.raises(SlowBody, match="was not received within"):
        await _read(BodyRoom(seconds=0.05), Sent(b"x", None))


async def test_body_that_breaks_off_is_told() -> None:
    with pytest.raises(BadRequest, match="is incomplete"):
        await _read(BodyRoom(), Sent(b"x", ConnectionResetError()))


@pytest.mark.parametrize(("others", "sent_away"), [(1, False), (2, False), (3, True)])
async def test_oldest_body_of_a_namespace_makes_room_for_its_next(others: int, sent_away: bool) -> None:
    room = BodyRoom(10, 3)
    slow = [Sent(b"x", None) for _ in range(others)]
    tasks = [asyncio.create_task(_read(room, one)) for one in slow]
    for one in slow:
        await one.asked.wait()
    await asyncio.sleep(0)
    assert await _read(room, Sent(b"x")) == (b"x", True)
    await asyncio.sleep(0.01)
    assert tasks[0].done() is sent_away
    if sent_away:
        with pytest.raises(Unavailable, match="too many request bodies"):
            tasks[0].result()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_loud_namespace_makes_room_for_a_quiet_one() -> None:
    room = BodyRoom(3)
    quiet = asyncio.create_task(_read(room, Sent(None), "quiet"))
    loud = [asyncio.create_task(_read(room, Sent(None), "loud")) for _ in range(2)]
    await asyncio.sleep(0.01)
    assert await _read(room, Sent(b"x"), "third") == (b"x", True)
    await asyncio.sleep(0.01)
    assert [task.done() for task in (quiet, *loud)] == [False, True, False]
    for task in (quiet, *loud):
        task.cancel()
    await asyncio.gather(quiet, *loud, return_exceptions=True)
