"""Returns the changes of an investigation and of its questions, as a page or as a stream.

Decision: an event is a message of the WebSocket with the same id, so a client may switch between the three transports.
"""

from typing import Annotated

from aiohttp import web
from pydantic import Field, StringConstraints

from tarsy.http.errors import BadRequest
from tarsy.http.live.authorization import READ_EVENTS
from tarsy.http.live.cursor import CURSOR_PATTERN, MAX_LENGTH, Cursor, read_cursor
from tarsy.http.live.message_factory import MessageFactory
from tarsy.http.live.messages import EventsView, TimelineMessage, in_change_order, with_last
from tarsy.http.live.sse import follow_by_sse
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.lookup import find_run
from tarsy.http.routes.parameters import RunQuery
from tarsy.http.routes.timeline import with_limit

_MAX_EVENTS = 1000


class EventsQuery(RunQuery):
    """Start and size of the page, or a stream."""

    after: Annotated[str, StringConstraints(pattern=CURSOR_PATTERN, max_length=MAX_LENGTH)] = Field(
        default="0", description="Return only later changes: a revision, or the id of the last message received."
    )
    limit: int = Field(
        default=200,
        ge=1,
        le=_MAX_EVENTS,
        description="Maximum number of messages. Changes of one revision are never split, so a page may be longer.",
    )
    follow: bool = Field(
        default=False,
        description="Stream changes as server-sent events. The header `Last-Event-ID` takes precedence over `after`.",
    )


async def get_events(ask: CheckedRequest) -> EventsView | web.StreamResponse:
    """Returns the changes after a cursor."""
    query = ask.query(EventsQuery)
    try:
        cursor = read_cursor(query.after)
    except ValueError as error:
        raise BadRequest(f"query parameter after: {error}") from None
    if query.follow:
        return await follow_by_sse(ask, query, cursor)
    return await _page(ask, query, cursor)


async def _page(ask: CheckedRequest, query: EventsQuery, cursor: Cursor) -> EventsView:
    reads = ask.services.reads
    asked = await find_run(ask, query)
    main = asked if asked.parent is None else await find_run(ask, RunQuery(uid=asked.parent))
    runs = [main, *await reads.answers(main.id)]
    notes, items, more = MessageFactory(main), list[TimelineMessage](), False
    for place, run in enumerate(runs):
        if asked.parent is not None and run.id != asked.id:
            continue
        left = query.limit - len(items)
        if left <= 0:
            more = True
            break
        events = await reads.timeline(run.id, cursor.of(place), left)
        kept = with_limit(events)
        more = more or len(kept) < len(events) or len(events) >= left
        for event, last in with_last(in_change_order(kept)):
            behind = cursor.at(place, event.revision)
            items.append(notes.message(place, run, event, behind if last else None))
            cursor = behind if last else cursor
    return EventsView(items=tuple(items), id=str(cursor), more=more)


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/events",
        operation="getEvents",
        summary="List the changes of an investigation as messages; with follow=true, stream them as server-sent events",
        handler=get_events,
        permission=READ_EVENTS,
        query=EventsQuery,
        response=EventsView,
        aggregated=True,
    ),
)
