"""Investigations: the list with filters and search, and one by itself.

Who may list in some namespaces only names them (`namespace`); without it the right to list in all is asked. Text is
looked for by words in what is indexed, or, with `searchIn=timeline`, as it stands in everything that people read.
"""

from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field, StringConstraints

from tarsy.http.errors import BadRequest, NotFound
from tarsy.http.route import PRODUCT_GROUP, Ask, Permission, Query, Route
from tarsy.http.routes import paging
from tarsy.http.routes.lookup import located
from tarsy.http.routes.parameters import Limit, Moment, Namespaces, Token
from tarsy.http.views.investigations import InvestigationItem, InvestigationList, InvestigationView
from tarsy.record.run import State
from tarsy.record.words import state_of
from tarsy.store.search import LOOKED_AT, Filters, Position, Search, Sort, tsquery
from tarsy.store.trace import Trace

_LIST = Permission("list", "investigations", group=PRODUCT_GROUP)
_GET = Permission("get", "investigations", group=PRODUCT_GROUP)
_MOST = 17
_LEAST_EXPONENT = -60


def _state(told: object) -> object:
    """A phase, as kubectl shows it, is as good as the state that it stands for."""
    return state_of(told) if isinstance(told, str) else told


class InvestigationsQuery(Query):
    """Which investigations, in which order."""

    namespace: Namespaces = ()
    state: Annotated[
        tuple[Annotated[State, BeforeValidator(_state)], ...],
        Field(
            max_length=len(State),
            description="Only in this state, or phase such as Succeeded; may be given several times.",
        ),
    ] = ()
    alert_type: Annotated[str, StringConstraints(min_length=1, max_length=253)] | None = Field(
        default=None, description="Only of this alert type."
    )
    chain: Annotated[str, StringConstraints(pattern=r"^[a-z0-9.-]+(/[a-z0-9.-]+)?$", max_length=317)] | None = Field(
        default=None, description="Only of this chain: `name`, or `namespace/name`."
    )
    author: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = Field(
        default=None, description="Only those that this user asked for."
    )
    since: Moment | None = Field(default=None, description="Accepted at this time or later.")
    until: Moment | None = Field(default=None, description="Accepted before this time.")
    search: Annotated[str, StringConstraints(min_length=3, max_length=200)] | None = Field(
        default=None, description="Text to look for, at least 3 characters."
    )
    search_in: Literal["summary", "timeline"] = Field(
        default="summary",
        description="summary: in name, alert, chain, finding and summary, by words and their beginnings, all of which "
        f"must be there. timeline: as it stands, in the alert and all of the timeline too; a page looks at {LOOKED_AT} "
        "investigations, so it may hold none and have a next one.",
    )
    sort: Sort = Field(
        default="newest",
        description="newest and oldest by acceptance; finished: only those that have ended, the last to end first; "
        "cost and tokens: the most first.",
    )
    limit: Limit = 50
    token: Token | None = Field(default=None, alias="continue")


async def list_investigations(ask: Ask) -> InvestigationList:
    """A page of a list."""
    query = ask.query(InvestigationsQuery)
    filters = _filters(query, {name: await ask.services.namespaces.uid(name) for name in query.namespace})
    question = query.model_dump_json(exclude={"limit", "token"})
    after = _position(paging.decode(question, query.token, 2), query.sort) if query.token else None
    page = await Search(ask.services.pool).page(filters, query.sort, query.limit, after)
    token = None
    if page.next is not None:
        key = page.next.key
        written = key.isoformat() if isinstance(key, datetime) else str(key)
        token = paging.encode(question, (written, str(page.next.id)))
    return InvestigationList.of(page, token)


async def get_investigation(ask: Ask) -> InvestigationView:
    """One investigation."""
    run = await located(ask, ask.query(RunUidQuery).uid)
    trace = Trace(ask.services.pool)
    item, record = await Search(ask.services.pool).one(run), await ask.services.reads.record(run)
    given, stages = await trace.given(run), await trace.stages(run)
    if item is None or record is None or given is None:
        raise NotFound(f"the record of investigation {ask.namespace}/{ask.name} has just been deleted")
    return InvestigationView.whole(InvestigationItem.of(item), record, given, stages)


class RunUidQuery(Query):
    """Which investigation of a name."""

    uid: UUID | None = Field(
        default=None, description="An older investigation of that name; the latest when not given."
    )


def _filters(query: InvestigationsQuery, uids: dict[str, str]) -> Filters:
    namespace, _, chain = (query.chain or "").rpartition("/")
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise BadRequest("query parameter until: must be later than since")
    by_words = query.search is not None and query.search_in == "summary"
    if by_words and not tsquery(query.search or ""):
        raise BadRequest("query parameter search: must hold a letter or a digit; or give searchIn=timeline")
    return Filters(
        namespaces=uids or None,
        states=query.state,
        alert_type=query.alert_type,
        chain=chain or None,
        chain_namespace=namespace or None,
        author=query.author,
        since=query.since,
        until=query.until,
        words=query.search if by_words else None,
        text=None if by_words else query.search,
    )


def _position(place: list[str], sort: Sort) -> Position:
    key, run = place
    if sort in ("newest", "oldest", "finished"):
        return Position(paging.moment(key), paging.identity(run))
    try:
        amount = Decimal(key)
    except InvalidOperation:
        raise paging.refused() from None
    if (
        not amount.is_finite()
        or not _LEAST_EXPONENT <= int(amount.as_tuple().exponent) <= 0
        or amount.adjusted() > _MOST
    ):
        raise paging.refused()
    return Position(amount if sort == "cost" else int(amount), paging.identity(run))


ROUTES = (
    Route(
        method="GET",
        path="/investigations",
        operation="listInvestigations",
        summary="Investigations, filtered and sorted, a page at a time",
        handler=list_investigations,
        permission=_LIST,
        query=InvestigationsQuery,
        response=InvestigationList,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}",
        operation="getInvestigation",
        summary="One investigation with its alert, stages, agents and conditions",
        handler=get_investigation,
        permission=_GET,
        query=RunUidQuery,
        response=InvestigationView,
    ),
)
