"""Streams an investigation as server-sent events, for clients without a WebSocket.

The id of an event is the cursor after it, so a disconnected client (the aggregated API ends requests after a minute)
reconnects with `Last-Event-ID` and misses nothing. Decision: the messages are those of the WebSocket, including the
whole past. A slow client delays only its own catch-up, and is disconnected if it cannot keep up with live messages.
"""

import asyncio
import contextlib
from collections.abc import Callable

from aiohttp import web

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import BadRequest
from tarsy.http.live.authorization import READ_EVENTS, StreamAuthorization, Topic
from tarsy.http.live.cursor import Cursor, read_cursor
from tarsy.http.live.follow_session import FollowSession, closing_error
from tarsy.http.live.messages import ErrorMessage, written
from tarsy.http.live.send_queue import QueuedMessage, SendQueue
from tarsy.http.route import CheckedRequest
from tarsy.http.routes.lookup import find_run
from tarsy.http.routes.parameters import RunQuery

HEARTBEAT_SECONDS = 15.0
_WRITE_SECONDS = 10.0
LAST_EVENT_ID = "Last-Event-ID"
_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}
_BEGINNING = b"retry: 1000\n\n"
_HEARTBEAT = b": still here\n\n"
_TIMELINE = ("timelineEvent.", "investigation.", "caughtUp")
Wanted = Callable[[QueuedMessage], bool]


async def follow_by_sse(
    ask: CheckedRequest,
    query: RunQuery,
    after: Cursor,
    permission: Permission = READ_EVENTS,
    *,
    timeline_only: bool = False,
) -> web.StreamResponse:
    """Streams an investigation, or one question about it, until the client disconnects.

    Args:
        ask: the authorized request.
        query: selects the investigation or the question.
        after: position of the client; `Last-Event-ID` takes precedence.
        permission: permission to check again while streaming.
        timeline_only: omits stages and deltas.

    Raises:
        HttpError: the stream cannot start.
    """
    authorization = StreamAuthorization(ask, Topic(ask.namespace, ask.name), permission)
    await authorization.demand()
    record, place, last = await find_run(ask, query), None, _last_event_id(ask)
    cursor = last or after
    if record.parent is not None:
        answer, record = record, await find_run(ask, RunQuery(uid=record.parent))
        answers = await ask.services.reads.answers(record.id)
        place = next((number for number, one in enumerate(answers, 1) if one.id == answer.id), None)
        cursor = last or Cursor({0: record.revision, **after.revisions})
    outbox = SendQueue()
    session = FollowSession(ask.services.hub, authorization, record, outbox, None)
    session.catch_up(cursor)
    with ask.services.hub.admit(ask.caller.username):
        ask.untimed()
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(ask.request)
        await _stream(ask, response, outbox, session, _wanted(place, timeline_only))
    return response


async def _stream(
    ask: CheckedRequest, response: web.StreamResponse, outbox: SendQueue, session: FollowSession, wanted: Wanted
) -> None:
    writing = asyncio.create_task(_write(response, outbox, wanted))
    following = asyncio.create_task(session.run())
    stopping = asyncio.create_task(ask.services.stopping.wait())
    tasks = {writing, following, stopping}
    try:
        await asyncio.wait(tasks, timeout=ask.stream_seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if not writing.cancelled() and writing.exception() is not None:
        if (transport := ask.request.transport) is not None:
            transport.abort()
        return
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(_WRITE_SECONDS):
            if not following.cancelled() and (ended := following.exception()) is not None:
                if (error := closing_error(ended)) is None:
                    raise ended
                told = ErrorMessage(reason=error.reason, message=error.message)
                await response.write(_frame(QueuedMessage(told.type, written(told))))
            await response.write_eof()


async def _write(response: web.StreamResponse, outbox: SendQueue, wanted: Wanted) -> None:
    """Writes until the client is overrun. Raises TimeoutError or ConnectionError if the client does not read."""
    await response.write(_BEGINNING)
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                notes = await outbox.take()
        except TimeoutError:
            frames = _HEARTBEAT
        else:
            if not notes:
                return
            frames = b"".join(_frame(note) for note in notes if wanted(note))
        async with asyncio.timeout(_WRITE_SECONDS):
            await response.write(frames)


def _frame(note: QueuedMessage) -> bytes:
    identity = f"id: {note.id}\n" if note.id is not None else ""
    return f"{identity}event: {note.type}\ndata: {note.data}\n\n".encode()


def _wanted(place: int | None, timeline_only: bool) -> Wanted:
    def wanted(note: QueuedMessage) -> bool:
        if place is not None and note.place not in (None, place):
            return False
        return not timeline_only or note.type.startswith(_TIMELINE)

    return wanted


def _last_event_id(ask: CheckedRequest) -> Cursor | None:
    given = ask.request.headers.get(LAST_EVENT_ID)
    if not given:
        return None
    try:
        return read_cursor(given)
    except ValueError as error:
        raise BadRequest(f"header {LAST_EVENT_ID}: {error}") from None
