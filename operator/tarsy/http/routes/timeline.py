"""Returns the timeline of an investigation or of an answer to a question about it.

Decision: pages follow revisions, not positions. A client always has everything up to revision N, and the next page also
contains later changes: an open event is returned again when it is closed. A page with long texts has fewer events.
"""

from collections.abc import Sequence
from itertools import groupby

from aiohttp import web
from pydantic import Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.live.cursor import Cursor
from tarsy.http.live.sse import follow_by_sse
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.lookup import find_run
from tarsy.http.routes.parameters import RunQuery
from tarsy.http.views.timeline import TimelineView
from tarsy.record.timeline import TimelineEvent

_READ_TIMELINE = Permission("get", "investigations", "timeline")
_MAX_EVENTS = 1000
MAX_REVISION = 2**63 - 1
PAGE_CHARACTERS = 4_000_000


class TimelineQuery(RunQuery):
    """Start and size of the page, or a stream."""

    after: int = Field(default=0, ge=0, le=MAX_REVISION, description="Return only changes after this revision.")
    limit: int = Field(
        default=200,
        ge=1,
        le=_MAX_EVENTS,
        description="Maximum number of events. Changes of one revision are never split, so a page may be longer.",
    )
    follow: bool = Field(
        default=False,
        description="Stream changes as server-sent events. The header `Last-Event-ID` takes precedence over `after`.",
    )


async def get_timeline(ask: CheckedRequest) -> TimelineView | web.StreamResponse:
    """Returns the changes after a revision."""
    query = ask.query(TimelineQuery)
    if query.follow:
        return await follow_by_sse(ask, query, Cursor({0: query.after}), _READ_TIMELINE, timeline_only=True)
    record = await find_run(ask, query)  # before its events: when it says that it has ended, all of them are there
    events = await ask.services.reads.timeline(record.id, query.after, query.limit)
    kept = with_limit(events)
    revision = max((event.revision for event in kept), default=query.after)
    more = len(kept) < len(events) or len(events) >= query.limit
    return TimelineView.of(record, kept, revision, more)


def with_limit(events: Sequence[TimelineEvent], characters: int = PAGE_CHARACTERS) -> list[TimelineEvent]:
    """Truncates events to the first whole revisions that fit the limit; keeps at least one revision.

    Args:
        events: in any order.
        characters: maximum length of all texts.
    """
    kept: list[TimelineEvent] = []
    taken = 0
    for _, together in groupby(sorted(events, key=lambda event: event.revision), key=lambda event: event.revision):
        more = list(together)
        taken += sum(len(event.content) for event in more)
        if kept and taken > characters:
            break
        kept += more
    return kept


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/timeline",
        operation="getTimeline",
        summary="Get the timeline of an investigation and its finding",
        handler=get_timeline,
        permission=_READ_TIMELINE,
        query=TimelineQuery,
        response=TimelineView,
        aggregated=True,
    ),
)
