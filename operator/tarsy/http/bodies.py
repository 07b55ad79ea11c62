"""Reads request bodies within limits on their number, their duration and the nesting of JSON.

Decision: no request waits for a slow body. Bodies are members of a `FairSet`: when it is full, the oldest body of the
largest group is refused with 503. So slow bodies displace each other, and those of one namespace never those of another
with fewer bodies. The body of an unauthenticated caller is read only if it contains the credential (a signature, a
one-time code), in a set of its own.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from itertools import accumulate
from typing import Final

from aiohttp import web

from tarsy.http.errors import BadRequest, HttpError, TooLarge, Unavailable
from tarsy.listening.fair_set import FairSet

BODY_SECONDS = 10.0
BODIES: Final = 128
BODIES_EACH: Final = 32
UNSIGNED_BODIES: Final = 32
UNSIGNED_EACH: Final = 8
JSON_DEPTH: Final = 64
"""Maximum nesting of objects and lists. A Kubernetes object has about 20 levels, an Alertmanager notification 4."""

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class SlowBody(HttpError):
    """The body was not received in time."""

    status, reason = 408, "RequestTimeout"


class _Reading:
    """A body that is being read."""

    def __init__(self) -> None:
        self.deadline: asyncio.Timeout | None = None
        self.sent_away = False

    def send_away(self) -> None:
        """Stops reading, to make room for another body."""
        self.sent_away = True
        if self.deadline is not None:
            self.deadline.reschedule(asyncio.get_running_loop().time())


class BodyRoom:
    """Reads a limited number of bodies at once.

    Args:
        limit: maximum number of bodies.
        each: maximum number of bodies of one namespace.
        seconds: maximum duration of reading a body; BODY_SECONDS if None.
    """

    def __init__(self, limit: int = BODIES, each: int = BODIES_EACH, *, seconds: float | None = None) -> None:
        self._crowd: FairSet[str, _Reading] = FairSet(limit, each)
        self._seconds = seconds

    async def read(self, request: web.Request, group: str, limit: int) -> tuple[bytes, bool]:
        """Reads a body.

        Args:
            request: the request.
            group: namespace of the request; empty: none.
            limit: maximum number of bytes to read.

        Returns:
            The bytes, and whether they are the whole body; a larger body is not read to its end.

        Raises:
            BadRequest: the body is incomplete.
            SlowBody: the body was not received in time.
            Unavailable: the body was displaced by another one.
        """
        content = bytearray()
        async with self._room(group):
            try:
                async for piece in request.content.iter_any():
                    content += piece
                    if len(content) > limit:
                        return bytes(content[:limit]), False
            except (web.RequestPayloadError, ConnectionError):
                raise BadRequest("the request body is incomplete; send all of it") from None
        return bytes(content), True

    @contextlib.asynccontextmanager
    async def _room(self, group: str) -> AsyncIterator[None]:
        reading, seconds = _Reading(), BODY_SECONDS if self._seconds is None else self._seconds
        try:
            async with asyncio.timeout(seconds) as reading.deadline:
                for other in self._crowd.enter(group, reading):
                    other.send_away()
                yield
        except TimeoutError:
            if reading.sent_away:
                raise Unavailable("too many request bodies are being received; try again", retry_after=2) from None
            raise SlowBody(f"the request body was not received within {seconds:g} s; try again") from None
        finally:
            self._crowd.leave(reading)


async def read_whole(room: BodyRoom, request: web.Request, group: str, limit: int) -> bytes:
    """Reads a whole body.

    Args:
        room: bounds concurrent reading.
        request: the request.
        group: namespace of the request; empty: none.
        limit: maximum size in bytes.

    Raises:
        TooLarge: the body is larger than `limit`.
        HttpError: see `BodyRoom.read`.
    """
    said = request.content_length or 0
    content, whole = await room.read(request, group, limit) if said <= limit else (b"", False)
    if not whole:
        raise TooLarge(f"the body is larger than {limit} bytes")
    return content


def demand_depth(content: bytes) -> None:
    """Refuses JSON of more than JSON_DEPTH levels before it is parsed.

    Raises:
        BadRequest: the nesting is too deep.
    """
    if depth_of(content) > JSON_DEPTH:
        raise BadRequest(f"the body nests more than {JSON_DEPTH} levels deep; send JSON of at most {JSON_DEPTH} levels")


def depth_of(content: bytes) -> int:
    """Returns the nesting depth of a JSON text, ignoring brackets in strings."""
    brackets = _STRING.sub(b"", content).translate(None, delete=_NO_BRACKET)
    return max(accumulate(_STEPS[one] for one in brackets), default=0)
