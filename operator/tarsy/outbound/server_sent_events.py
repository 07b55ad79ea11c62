"""Parses server-sent events from the chunks of a response, as the HTML standard defines it.

Decision: lines are assembled here and not by the HTTP library, whose maximum line is shorter than the largest timeline
event.
"""

import codecs
from collections.abc import AsyncIterator
from dataclasses import dataclass

LARGEST_EVENT = 64 * 1024 * 1024
_TOO_LARGE = f"an event of the server is larger than {LARGEST_EVENT // 2**20} MiB"


class EventTooLarge(Exception):
    """A server sends an event above the size limit."""


@dataclass(frozen=True, slots=True)
class ServerSent:
    """An event; `id` is the last id received so far, empty before the first."""

    type: str
    data: str
    id: str


@dataclass(slots=True)
class StreamPosition:
    """The place from which an interrupted stream can be resumed: the last id, and the seconds to wait before."""

    id: str = ""
    retry_seconds: float | None = None


async def parse_events(
    pieces: AsyncIterator[bytes], position: StreamPosition | None = None
) -> AsyncIterator[ServerSent]:
    """Yields the events of a stream, in order; drops an unfinished one at its end, as the standard requires.

    Args:
        pieces: the body of the response, cut anywhere.
        position: is kept up to date, also by events without data, which are not yielded; None: nobody asks.

    Raises:
        EventTooLarge: an event is larger than 64 MiB.
    """
    position = position or StreamPosition()
    kind, data, size = "", list[str](), 0
    async for line in _lines(pieces):
        if not line:
            if data:
                yield ServerSent(kind or "message", "\n".join(data), position.id)
            kind, data, size = "", [], 0
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
            if (size := size + len(value)) > LARGEST_EVENT:
                raise EventTooLarge(_TOO_LARGE)
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            position.id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            position.retry_seconds = int(value) / 1000


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Yields lines that end with LF, CR or both."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    parts: list[str] = []
    size, after_cr = 0, False
    async for piece in pieces:
        text = decoder.decode(piece)
        if after_cr and text:
            text, after_cr = text.removeprefix("\n"), False
        # Only what is new is looked through, so that one long line in many pieces is read once.
        *ended, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        after_cr = after_cr or text.endswith("\r")
        for line in ended:
            yield "".join([*parts, line])
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > LARGEST_EVENT:
            raise EventTooLarge(_TOO_LARGE)
