"""Bodies of requests: how many are read at once, how long each may take, how deep JSON may nest.

Decision: a body that is being read holds no place that others wait for. It has room among others (`Crowd`), and where
one more comes the oldest of the group with the most is sent away with 503; so slow bodies push out each other, and
those of one namespace never those of another that has fewer. A caller that has not signed in has a body read only where
that body is what proves who it is (a signature, a one-time code), in a room of its own.
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
"""Levels of objects and lists; an object of Kubernetes has about 20, a notification of Alertmanager 4."""

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class SlowBody(HttpError):
    """The body did not come in time."""

    status, reason = 408, "RequestTimeout"


class _Reading:
    """One body that is being read."""

    def __init__(self) -> None:
        self.deadline: asyncio.Timeout | None = None
        self.sent_away = False

    def send_away(self) -> None:
        """Ends the reading, for another one."""
        self.sent_away = True
        if self.deadline is not None:
            self.deadline.reschedule(asyncio.get_running_loop().time())


class BodyRoom:
    """Reads bodies, at most so many at once.

    Args:
        limit: bodies in all.
        each: bodies of one namespace.
        seconds: that a body may take; BODY_SECONDS when None.
    """

    def __init__(self, limit: int = BODIES, each: int = BODIES_EACH, *, seconds: float | None = None) -> None:
        self._crowd: FairSet[str, _Reading] = FairSet(limit, each)
        self._seconds = seconds

    async def read(self, request: web.Request, group: str, limit: int) -> tuple[bytes, bool]:
        """Reads a body as it comes.

        Args:
            request: whose.
            group: the namespace that it is for; empty: none.
            limit: bytes that are read of it at most.

        Returns:
            Its bytes, and whether that is all of it: a larger one is not read to its end.

        Raises:
            BadRequest: it broke off.
            SlowBody: it did not come in time.
            Unavailable: others came, and it was the one to make room.
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
    """The body, all of it.

    Raises:
        TooLarge: it is larger than `limit` bytes.
        HttpError: as `BodyRoom.read`.
    """
    said = request.content_length or 0
    content, whole = await room.read(request, group, limit) if said <= limit else (b"", False)
    if not whole:
        raise TooLarge(f"the body is larger than {limit} bytes")
    return content


def demand_depth(content: bytes) -> None:
    """Refuses JSON that nests deeper than JSON_DEPTH levels, before anything parses it.

    Raises:
        BadRequest: it does.
    """
    if depth_of(content) > JSON_DEPTH:
        raise BadRequest(f"the body nests more than {JSON_DEPTH} levels deep; send JSON of at most {JSON_DEPTH} levels")


def depth_of(content: bytes) -> int:
    """How deep the brackets of a JSON text nest; what stands in strings does not count."""
    brackets = _STRING.sub(b"", content).translate(None, delete=_NO_BRACKET)
    return max(accumulate(_STEPS[one] for one in brackets), default=0)
