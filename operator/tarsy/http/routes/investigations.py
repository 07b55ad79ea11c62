"""Lists investigations with filters and search, and returns one of them.

A caller without the right to list in all namespaces must name namespaces (`namespace`). Search uses the full-text index
by default; with `searchIn=timeline` it finds a substring in everything that people read.
"""

from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import BadRequest, NotFound
from tarsy.http.models import PRODUCT_GROUP, Query
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes import paging
from tarsy.http.routes.lookup import located
from tarsy.http.routes.parameters import Limit, Moment, Namespaces, Token
from tarsy.http.views.investigations import InvestigationItem, InvestigationList, InvestigationView
from tarsy.plan.model import Plan
from tarsy.record.judging.incident_outcome import IncidentOutcome
from tarsy.record.reading.flaws import Flaw
from tarsy.record.reading.listing import PagePosition
from tarsy.record.run import State
from tarsy.record.words import state_of
from tarsy.resources.v1alpha1.alert import Severity
from tarsy.store.questions import Questions
from tarsy.store.reading.search import LOOKED_AT, Filters, Search, Sort, tsquery
from tarsy.store.reading.trace import Trace

_LIST = Permission("list", "investigations", group=PRODUCT_GROUP)
_GET = Permission("get", "investigations", group=PRODUCT_GROUP)
_MOST = 17
_LEAST_EXPONENT = -60


def _state(told: object) -> object:
    """Converts a phase, as kubectl shows it, to its state."""
    return state_of(told) if isinstance(told, str) else told


class InvestigationsQuery(Query):
    """Filters, order and page of the list."""

    namespace: Namespaces = ()
    state: Annotated[
        tuple[Annotated[State, BeforeValidator(_state)], ...],
        Field(
            max_length=len(State),
            description="Only this state, or phase such as Succeeded. Repeatable.",
        ),
    ] = ()
    alert_type: Annotated[str, StringConstraints(min_length=1, max_length=253)] | None = Field(
        default=None, description="Only this alert type."
    )
    chain: Annotated[str, StringConstraints(pattern=r"^[a-z0-9.-]+(/[a-z0-9.-]+)?$", max_length=317)] | None = Field(
        default=None, description="Only this chain: `name`, or `namespace/name`."
    )
    author: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = Field(
        default=None, description="Only investigations that this user requested."
    )
    flaw: Annotated[
        tuple[Flaw, ...],
        Field(max_length=len(Flaw), description="Only investigations with this flaw. Repeatable: with any of them."),
    ] = ()
    severity: Annotated[
        tuple[Severity, ...],
        Field(max_length=3, description="Only alerts of this severity. Repeatable."),
    ] = ()
    outcome: Annotated[
        tuple[IncidentOutcome, ...],
        Field(
            max_length=len(IncidentOutcome),
            description="Only investigations whose alert had this outcome. Repeatable: any of them.",
        ),
    ] = ()
    since: Moment | None = Field(default=None, description="Only investigations accepted at or after this time.")
    until: Moment | None = Field(default=None, description="Only investigations accepted before this time.")
    replays: bool = Field(default=False, description="Whether replays are listed too.")
    search: Annotated[str, StringConstraints(min_length=3, max_length=200)] | None = Field(
        default=None, description="Text to search for, at least 3 characters."
    )
    search_in: Literal["summary", "timeline"] = Field(
        default="summary",
        description="summary: searches name, alert type, chain, finding and summary for all words or word prefixes. "
        "timeline: also searches the alert and the whole timeline for the exact text; each page scans "
        f"{LOOKED_AT} investigations, so a page may be empty although there is a next one.",
    )
    sort: Sort = Field(
        default="newest",
        description="newest, oldest: by time of acceptance. finished: only finished ones, the last finished first. "
        "duration: only finished ones, the longest first. severity, confidence: the highest first, and of equal ones "
        "the newest. cost, tokens: the highest first.",
    )
    limit: Limit = 50
    token: Token | None = Field(default=None, alias="continue")


async def list_investigations(ask: CheckedRequest) -> InvestigationList:
    """Returns a page of the list."""
    query = ask.query(InvestigationsQuery)
    filters = _filters(query, {name: await ask.services.namespaces.uid(name) for name in query.namespace})
    question = query.model_dump_json(exclude={"limit", "token"})
    after = page_position(paging.decode_continue(question, query.token, 2), query.sort) if query.token else None
    search = _search(ask)
    page = await search.page(filters, query.sort, query.limit, after)
    token = None
    if page.next is not None:
        key = page.next.key
        written = key.isoformat() if isinstance(key, datetime) else str(key)
        token = paging.encode_continue(question, (written, str(page.next.id)))
    counted = query.token is None and filters.text is None
    return InvestigationList.of(page, token, await search.count(filters, query.sort) if counted else None)


async def get_investigation(ask: CheckedRequest) -> InvestigationView:
    """Returns one investigation."""
    run = await located(ask, ask.query(RunUidQuery).uid)
    trace = Trace(ask.services.pool)
    item, record = await _search(ask).one(run), await ask.services.reads.record(run)
    given, stages = await trace.given(run), await trace.stages(run)
    if item is None or record is None or given is None:
        raise NotFound(f"the record of investigation {ask.namespace}/{ask.name} has just been deleted")
    report = record.outcome.replay if record.outcome else None
    source = await ask.services.reads.record(report.source) if report and report.source else None
    replay_of = source.name if source else None
    return InvestigationView.whole(InvestigationItem.of(item), record, given, stages, replay_of, await _plan(ask, run))


def _search(ask: CheckedRequest) -> Search:
    return Search(ask.services.pool, ask.services.calibration_floor)


async def _plan(ask: CheckedRequest, run: UUID) -> Plan | None:
    """Returns the frozen plan of a run; None if a newer version wrote it."""
    try:
        return await Questions(ask.services.pool).plan(run)
    except ValidationError:
        return None


class RunUidQuery(Query):
    """Selects one of several investigations of the same name."""

    uid: UUID | None = Field(
        default=None, description="Uid of an older investigation of this name. The latest one when omitted."
    )


def _filters(query: InvestigationsQuery, uids: dict[str, str]) -> Filters:
    namespace, _, chain = (query.chain or "").rpartition("/")
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise BadRequest("query parameter until: must be later than since")
    by_words = query.search is not None and query.search_in == "summary"
    if by_words and not tsquery(query.search or ""):
        raise BadRequest("query parameter search: must contain a letter or a digit; or set searchIn=timeline")
    return Filters(
        namespaces=uids or None,
        states=query.state,
        alert_type=query.alert_type,
        chain=chain or None,
        chain_namespace=namespace or None,
        author=query.author,
        flaws=query.flaw,
        severities=query.severity,
        outcomes=query.outcome,
        since=query.since,
        until=query.until,
        words=query.search if by_words else None,
        text=None if by_words else query.search,
        replays=query.replays,
    )


def page_position(place: list[str], sort: Sort) -> PagePosition:
    """Reads the position of a page from its token's parts, the sort key and the run; raises BadRequest."""
    key, run = place
    if sort in ("newest", "oldest", "finished"):
        return PagePosition(paging.moment(key), paging.identity(run))
    try:
        amount = Decimal(key)
    except InvalidOperation:
        raise paging.continue_refused() from None
    if (
        not amount.is_finite()
        or not _LEAST_EXPONENT <= int(amount.as_tuple().exponent) <= 0
        or amount.adjusted() > _MOST
    ):
        raise paging.continue_refused()
    return PagePosition(int(amount) if sort == "tokens" else amount, paging.identity(run))


ROUTES = (
    Route(
        method="GET",
        path="/investigations",
        operation="listInvestigations",
        summary="List investigations, with filters, search and sorting",
        handler=list_investigations,
        permission=_LIST,
        query=InvestigationsQuery,
        response=InvestigationList,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}",
        operation="getInvestigation",
        summary="Get an investigation with its alert, stages, agents and conditions",
        handler=get_investigation,
        permission=_GET,
        query=RunUidQuery,
        response=InvestigationView,
    ),
)
