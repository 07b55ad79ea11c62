"""Serves watches: current or logged events since a revision, then each commit, with bookmarks.

Events are filtered as they are committed and encoded once for all watches of a version. A client that does not keep up
is cut off: it comes back with its last revision, as with the real API. One whose revision the log does not hold any
more gets a 200 with one ERROR event that says 410, and nothing after it. Initial events (`sendInitialEvents`):
"Streaming lists" on kubernetes.io/docs/reference/using-api/api-concepts.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from embedded_kubeapi.errors import bad_request, expired
from embedded_kubeapi.http.answers import Form, shown
from embedded_kubeapi.http.request import Target, is_true
from embedded_kubeapi.objects import Obj, dumps
from embedded_kubeapi.resource import Resource
from embedded_kubeapi.selectors import predicate
from embedded_kubeapi.store import Event, Store

_BOOKMARK_SECONDS = 60.0
_SHORTEST = 1800.0
_MOST_WAITING = 50_000
_END_OF_INITIAL = {"annotations": {"k8s.io/initial-events-end": "true"}}


@dataclass
class Watch:
    """A client's watch of one kind."""

    store: Store
    resource: Resource
    target: Target
    query: Mapping[str, str]
    form: Form
    _lines: deque[bytes] = field(default_factory=deque)
    _more: asyncio.Event = field(default_factory=asyncio.Event)
    _first: bool = True
    _behind: bool = False

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Streams until the timeout, or until the client disconnects.

        Raises:
            ApiError: 400 for a bad selector or revision.
        """
        self._shows = predicate(
            self.resource,
            self.query.get("labelSelector", ""),
            self.query.get("fieldSelector", ""),
            self.target.name or None,
        )
        seconds = float(self.query.get("timeoutSeconds") or 0) or _SHORTEST * (1 + random.random())
        self._begin()
        stop = self.store.listen(self.resource.key, self._on_event)
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        answer.enable_chunked_encoding()
        try:
            await answer.prepare(request)
            await self._stream(answer, asyncio.get_running_loop().time() + seconds)
            await answer.write_eof()
        except ConnectionResetError:
            pass  # the client went
        finally:
            stop()
        return answer

    def _begin(self) -> None:
        since = self.query.get("resourceVersion") or ""
        initial = is_true(self.query, "sendInitialEvents")
        if since and not since.isdigit():
            raise bad_request(
                f'invalid resource version "{since}": strconv.ParseUint: parsing "{since}": invalid syntax'
            )
        if initial or since in ("", "0"):
            if initial or "sendInitialEvents" not in self.query:
                for obj in self.store.objects(self.resource.key, self.target.namespace):
                    if self._shows(self.resource.shown(obj)):
                        self._line("ADDED", self._encode(obj))
            if initial:
                self._bookmark(_END_OF_INITIAL)
        elif not self.store.holds(int(since)):
            self._line("ERROR", dumps(expired(f"too old resource version: {since} ({self.store.compacted})").status()))
            self._behind = True
        else:
            for event in self.store.events_since(self.resource.key, int(since)):
                self._on_event(event)

    async def _stream(self, answer: web.StreamResponse, end: float) -> None:
        loop = asyncio.get_running_loop()
        bookmarks = is_true(self.query, "allowWatchBookmarks")
        while True:
            if self._lines:
                batch = b"".join(self._lines)
                self._lines.clear()
                await answer.write(batch)
                continue
            if self._behind or loop.time() >= end:
                return
            self._more.clear()
            try:
                async with asyncio.timeout(min(end - loop.time(), _BOOKMARK_SECONDS)):
                    await self._more.wait()
            except TimeoutError:
                if bookmarks:
                    self._bookmark({})

    def _on_event(self, event: Event) -> None:
        namespace = self.target.namespace
        if self._behind:
            return
        if namespace is not None and event.obj["metadata"].get("namespace") != namespace:
            return
        kind: str = event.type
        shows = self._shows(self.resource.shown(event.obj))
        showed = event.old is not None and self._shows(self.resource.shown(event.old))
        if kind == "MODIFIED" and shows != showed:
            if not shows and event.old is not None:  # it went out of what the selectors select: shown as it last was
                version = event.obj["metadata"]["resourceVersion"]
                last = {**event.old, "metadata": {**event.old["metadata"], "resourceVersion": version}}
                self._line("DELETED", self._encode(self.resource.shown(last)))
                self._more.set()
                return
            kind = "ADDED"
        elif not shows:
            return
        if len(self._lines) >= _MOST_WAITING:
            self._behind = True
        elif self.form.kind:
            self._line(kind, self._encode(event.obj))
        else:
            version = self.resource.api_version
            if version not in event.encoded:
                event.encoded[version] = dumps(self.resource.shown(event.obj))
            self._line(kind, event.encoded[version])
        self._more.set()

    def _encode(self, obj: Obj) -> bytes:
        body = dumps(shown(self.resource, obj, self.form, headers=self._first))
        self._first = False
        return body

    def _bookmark(self, meta: Obj) -> None:
        body: Obj = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        body["metadata"] = {"resourceVersion": str(self.store.revision), "creationTimestamp": None, **meta}
        self._line("BOOKMARK", dumps(shown(self.resource, body, self.form, headers=False)))

    def _line(self, kind: str, body: bytes) -> None:
        self._lines.append(b'{"type":"%s","object":%s}\n' % (kind.encode(), body))
