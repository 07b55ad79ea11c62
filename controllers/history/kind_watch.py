"""Lists and watches one kind in one namespace: plain requests, one connection, no cache of objects.

A watch that ends goes on from the last resourceVersion, without a gap. After 410, a shed change or a lost right the
kind is listed again; what was not seen meanwhile is recorded as a window. A kind that is not served, or may not be
read, is asked for again after minutes.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from tarsy.controllers.history.places import Place
from tarsy.evidence.fields import mapping, mappings, string
from tarsy.kube.client import ApiError, KubeClient
from tarsy.record.reading.object_history import WatchState
from tarsy.store.errors import StoreError

_log = logging.getLogger(__name__)

WATCH_SECONDS = 240
"""Seconds that a watch lasts, as the API server is asked; then it is opened again."""

PAGE_BYTES = 128 * 1024
"""Wanted size of a page of a listing: parsing a page is one step of the event loop."""

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_PAGE_BYTES = 64 * 1024 * 1024
_FIRST_PAGE = 20
_LARGEST_PAGE = 200


@dataclass(frozen=True, slots=True)
class WatchPauses:
    """Seconds between tries.

    Attributes:
        first: after the first failure; each further one doubles it.
        longest: the longest one after failures.
        refused: after a refusal (403), and where the kind is not served (404).
    """

    first: float = 1.0
    longest: float = 60.0
    refused: float = 120.0


class WatchListener(Protocol):
    """Takes what a watch brings."""

    async def listing_begins(self, place: Place) -> None:
        """Takes note that all objects of the kind are about to be listed."""

    async def listed(self, place: Place, objects: Sequence[Mapping[str, Any]]) -> None:
        """Takes objects of the listing."""

    async def listing_ended(self, place: Place, uids: set[str]) -> None:
        """Takes note that the listing was complete."""

    def changed(self, place: Place, action: str, document: bytes) -> None:
        """Takes an event of the watch: its `action` (ADDED, MODIFIED, DELETED) and its object as JSON."""

    def opened(self, place: Place) -> None:
        """Takes note that the watch was opened; it may still turn out to be too old (410)."""

    def heard(self, place: Place) -> None:
        """Takes note that all changes until now have come."""

    async def lost(self, place: Place, state: WatchState, told: str) -> None:
        """Takes note that the kind is not watched: in which `state`, and why, as `told` by the API."""


class _Expired(Exception):
    """The resourceVersion is too old (410): the kind must be listed again."""


class KindWatch:
    """Watches a kind in a namespace.

    Args:
        client: with room for a connection a watch.
        place: the kind and the namespace.
        listener: takes what the watch brings.
        listings: limits the listings that run at a time.
        pauses: between tries.
    """

    def __init__(
        self,
        client: KubeClient,
        place: Place,
        listener: WatchListener,
        listings: asyncio.Semaphore,
        pauses: WatchPauses,
    ) -> None:
        self._client = client
        self._place = place
        self._listener = listener
        self._listings = listings
        self._pauses = pauses

    async def run(self) -> None:
        """Watches until cancelled."""
        version, pause = "", self._pauses.first
        clock = asyncio.get_running_loop().time
        while True:
            began, refused = clock(), False
            try:
                if not version:
                    version = await self._list()
                version = await self._watch(version)
            except _Expired:
                version = ""
            except ApiError as error:
                refused = error.status in (401, 403, 404)
                state = {404: WatchState.NOT_SERVED, 401: WatchState.FORBIDDEN, 403: WatchState.FORBIDDEN}.get(
                    error.status, WatchState.UNAVAILABLE
                )
                await self._lost(state, error.message)
                if refused:
                    version = ""  # what was there may be another thing when it comes back
            except StoreError as error:
                version = ""
                await self._lost(WatchState.UNAVAILABLE, str(error))
            if clock() - began > self._pauses.longest:
                pause = self._pauses.first
                continue
            await asyncio.sleep(self._pauses.refused if refused else pause)
            pause = min(2 * pause, self._pauses.longest)

    async def _lost(self, state: WatchState, told: str) -> None:
        try:
            await self._listener.lost(self._place, state, told)
        except StoreError as error:
            _log.warning("the state of the watch of %s could not be recorded: %s", self._place, error)

    async def _list(self) -> str:
        """Lists all objects, and returns the resourceVersion to watch from."""
        async with self._listings:
            self._place.again.clear()
            await self._listener.listing_begins(self._place)
            uids: set[str] = set()
            page, size, version = "", _FIRST_PAGE, ""
            while True:
                answer, length = await self._page({"limit": str(size), **({"continue": page} if page else {})})
                objects = mappings(answer, "items")
                uids |= {string(one, "metadata", "uid") for one in objects}
                await self._listener.listed(self._place, objects)
                version = string(mapping(answer, "metadata"), "resourceVersion") or version
                page = string(mapping(answer, "metadata"), "continue")
                if not page:
                    break
                size = max(1, min(_LARGEST_PAGE, size * PAGE_BYTES // max(1, length)))
            await self._listener.listing_ended(self._place, uids)
            return version

    async def _page(self, query: Mapping[str, str]) -> tuple[Mapping[str, Any], int]:
        content = bytearray()
        target = self._place.kind.target(self._place.namespace)
        try:
            async with self._client.streaming(target, query, accept="application/json", silence_seconds=30.0) as chunks:
                async for chunk in chunks:
                    content += chunk
                    if len(content) > MAX_PAGE_BYTES:
                        raise ApiError(0, "TooLarge", f"a page of {target} is larger than {MAX_PAGE_BYTES} bytes")
            return _parsed(bytes(content), target), len(content)
        except ApiError as error:
            if error.status == 410:
                raise _Expired from error
            raise

    async def _watch(self, version: str) -> str:
        """Watches until the API server ends it, and returns the last resourceVersion.

        Raises:
            _Expired: the kind must be listed again.
        """
        query = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        target = self._place.kind.target(self._place.namespace)
        reading = asyncio.ensure_future(self._read(target, query, version))
        again = asyncio.ensure_future(self._place.again.wait())
        try:
            await asyncio.wait({reading, again}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                raise _Expired
            return reading.result()
        finally:
            for task in (reading, again):
                task.cancel()
            await asyncio.gather(reading, again, return_exceptions=True)

    async def _read(self, target: str, query: Mapping[str, str], version: str) -> str:
        try:
            async with self._client.streaming(
                target, query, accept="application/json", silence_seconds=WATCH_SECONDS + 30.0
            ) as chunks:
                self._listener.opened(self._place)
                async for line in _lines(chunks):
                    version = self._take(line, target) or version
                self._listener.heard(self._place)
        except ApiError as error:
            if error.status == 410:
                raise _Expired from error
            if error.status == 0 and error.reason == "Unreachable":
                _log.debug("the watch of %s was interrupted: %s", self._place, error.message)
            raise
        return version

    def _take(self, line: bytes, target: str) -> str:
        """Passes an event on, and returns its resourceVersion."""
        event = _parsed(line, target)
        action, found = string(event, "type"), mapping(event, "object")
        if action == "ERROR":
            code = found.get("code")
            if code == 410:
                raise _Expired
            raise ApiError(code if isinstance(code, int) else 0, string(found, "reason"), string(found, "message"))
        self._listener.heard(self._place)
        if action in ("ADDED", "MODIFIED", "DELETED"):
            self._listener.changed(self._place, action, line)
        return string(found, "metadata", "resourceVersion")


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yields the lines of a stream.

    Raises:
        ApiError: a line is too long.
    """
    rest = bytearray()
    async for chunk in chunks:
        rest += chunk
        if b"\n" in chunk:
            *lines, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for line in lines:
                if line.strip():
                    yield line
        if len(rest) > MAX_LINE_BYTES:
            raise ApiError(0, "TooLarge", f"an event of a watch is larger than {MAX_LINE_BYTES} bytes")


def _parsed(content: bytes, target: str) -> Mapping[str, Any]:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise ApiError(0, "NoKubernetesAnswer", f"GET {target}: the response is no JSON object")
    return found
