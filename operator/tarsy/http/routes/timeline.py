"""The timeline of an investigation, or of an answer to a question about it.

Decision: paged by revision, not by place. What a reader has is always "all up to revision N", and the next page is also
what changed since: an event that was open comes again when it is closed. A page ends early where its texts are long.
"""

from collections.abc import Sequence
from itertools import groupby

from aiohttp import web
from pydantic import Field

from tarsy.http.cursor import Cursor
from tarsy.http.route import Ask, Permission, Route
from tarsy.http.routes.lookup import run_of
from tarsy.http.routes.parameters import RunQuery
from tarsy.http.sse import follow
from tarsy.http.views.timeline import TimelineView
from tarsy.record.timeline import TimelineEvent

READ_TIMELINE = Permission("get", "investigations", "timeline")
MAX_EVENTS = 1000
MAX_REVISION = 2**63 - 1
PAGE_CHARACTERS = 4_000_000


class TimelineQuery(RunQuery):
    """From where on, and how much."""

    after: int = Field(default=0, ge=0, le=MAX_REVISION, description="Only what changed after this revision.")
    limit: int = Field(default=200, ge=1, le=MAX_EVENTS, description="Events; more come that changed at once.")
    follow: bool = Field(
        default=False, description="Answer as server-sent events that go on; `Last-Event-ID` counts before `after`."
    )


async def get_timeline(ask: Ask) -> TimelineView | web.StreamResponse:
    """What changed after a revision."""
    query = ask.query(TimelineQuery)
    if query.follow:
        return await follow(ask, query, Cursor({0: query.after}), READ_TIMELINE, timeline_only=True)
    record = await run_of(ask, query)  # before its events: when it says that it has ended, all of them are there
    events = await ask.services.reads.timeline(record.id, query.after, query.limit)
    kept = bounded(events)
    revision = max((event.revision for event in kept), default=query.after)
    more = len(kept) < len(events) or len(events) >= query.limit
    return TimelineView.of(record, kept, revision, more)


def bounded(events: Sequence[TimelineEvent], characters: int = PAGE_CHARACTERS) -> list[TimelineEvent]:
    """The first revisions of some events, whole ones, as many as hold so many characters; one at least."""
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
        summary="What happened, in order, and what was found",
        handler=get_timeline,
        permission=READ_TIMELINE,
        query=TimelineQuery,
        response=TimelineView,
        aggregated=True,
    ),
)
