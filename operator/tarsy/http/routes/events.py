"""What changed in an investigation, its questions with it: a page of it, or all of it as it happens.

Decision: an event here is a message of the WebSocket, with the same ids, so a client may change between the three ways.
"""

from typing import Annotated

from aiohttp import web
from pydantic import Field, StringConstraints

from tarsy.http.cursor import MAX_LENGTH, PATTERN, Cursor, read_cursor
from tarsy.http.errors import BadRequest
from tarsy.http.messages import EventsView, TimelineMessage, in_order, with_last
from tarsy.http.notes import Notes
from tarsy.http.route import Ask, Route
from tarsy.http.routes.lookup import run_of
from tarsy.http.routes.parameters import RunQuery
from tarsy.http.routes.timeline import bounded
from tarsy.http.sse import follow
from tarsy.http.standing import READ_EVENTS

MAX_EVENTS = 1000


class EventsQuery(RunQuery):
    """From where on, and whether to go on with what happens."""

    after: Annotated[str, StringConstraints(pattern=PATTERN, max_length=MAX_LENGTH)] = Field(
        default="0", description="Only what changed after this: a revision, or the id of the last message."
    )
    limit: int = Field(default=200, ge=1, le=MAX_EVENTS, description="Messages; more come that changed at once.")
    follow: bool = Field(
        default=False, description="Answer as server-sent events that go on; `Last-Event-ID` counts before `after`."
    )


async def get_events(ask: Ask) -> EventsView | web.StreamResponse:
    """What changed after a cursor."""
    query = ask.query(EventsQuery)
    try:
        cursor = read_cursor(query.after)
    except ValueError as error:
        raise BadRequest(f"query parameter after: {error}") from None
    if query.follow:
        return await follow(ask, query, cursor)
    return await _page(ask, query, cursor)


async def _page(ask: Ask, query: EventsQuery, cursor: Cursor) -> EventsView:
    reads = ask.services.reads
    asked = await run_of(ask, query)
    main = asked if asked.parent is None else await run_of(ask, RunQuery(uid=asked.parent))
    runs = [main, *await reads.answers(main.id)]
    notes, items, more = Notes(main), list[TimelineMessage](), False
    for place, run in enumerate(runs):
        if asked.parent is not None and run.id != asked.id:
            continue
        left = query.limit - len(items)
        if left <= 0:
            more = True
            break
        events = await reads.timeline(run.id, cursor.of(place), left)
        kept = bounded(events)
        more = more or len(kept) < len(events) or len(events) >= left
        for event, last in with_last(in_order(kept)):
            behind = cursor.at(place, event.revision)
            items.append(notes.message(place, run, event, behind if last else None))
            cursor = behind if last else cursor
    return EventsView(items=tuple(items), id=str(cursor), more=more)


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/events",
        operation="getEvents",
        summary="What changed, as messages; with follow=true all that happens, as server-sent events",
        handler=get_events,
        permission=READ_EVENTS,
        query=EventsQuery,
        response=EventsView,
        aggregated=True,
    ),
)
