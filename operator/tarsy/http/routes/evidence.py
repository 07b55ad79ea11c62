"""Returns what changed in a namespace and which faults rules find, with the rights of the caller.

Decision: the right to `list` the resources `changes` and `triage` only permits asking. Each kind of object is read as
the caller, so nothing is in a result or in a count that they may not list.
"""

import re
from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from tarsy.evidence.alerted import read_subject
from tarsy.evidence.changes.ranking import WINDOW_BEFORE
from tarsy.http.authentication.identity import Permission
from tarsy.http.evidence.computing import Question, both_for, changes_for, triage_for, verdict_for
from tarsy.http.models import Query
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.lookup import find_run
from tarsy.http.routes.parameters import RunQuery
from tarsy.http.views.evidence import ChangesView, InvestigationChangesView, TriageView, VerdictView
from tarsy.record.reading.trace import ToolCallTrace
from tarsy.record.run import InteractionState
from tarsy.store.reading.trace import Trace

MAX_TARGET: Final = 320
MAX_SINCE: Final = timedelta(days=7)
_SERVER: Final = "tarsy"
"""Server of the calls of a stage of kind Changes."""

_FIRST_CALLS: Final = 50
"""Calls of a run among which those of its stages of kind Changes are looked for."""

_SPAN = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

Target = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_TARGET, pattern=r"^[A-Za-z0-9./:_-]+$"),
    Field(description="Object that fails, such as `deploy/checkout`. Everything in the namespace when omitted."),
]


def _span(value: Any) -> Any:
    found = _SPAN.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("must be a number and s, m, h or d, such as 2h")
    return value


def _within_days(value: str) -> str:
    if seconds_of(value) > MAX_SINCE.total_seconds():
        raise ValueError(f"must be at most {MAX_SINCE.days}d")
    return value


def seconds_of(span: str) -> int:
    """Returns the seconds of a validated span such as `2h`."""
    return int(span[:-1]) * _UNITS[span[-1]]


Since = Annotated[
    str,
    StringConstraints(max_length=8),
    BeforeValidator(_span),
    AfterValidator(_within_days),
    Field(description="How long before the onset changes count: a number and s, m, h or d, at most 7d."),
]


class TriageQuery(Query):
    """Object to examine."""

    target: Target | None = None


class VerdictQuery(Query):
    """Object to judge."""

    target: Target


class ChangesQuery(TriageQuery):
    """Object to examine, and window."""

    since: Since = f"{WINDOW_BEFORE // timedelta(hours=1)}h"


async def get_changes(ask: CheckedRequest) -> ChangesView:
    """Returns the changes of a namespace, ranked."""
    query = ask.query(ChangesQuery)
    return await changes_for(ask, Question(ask.namespace, query.target, timedelta(seconds=seconds_of(query.since))))


async def get_triage(ask: CheckedRequest) -> TriageView:
    """Returns the signals of all rules."""
    return await triage_for(ask, Question(ask.namespace, ask.query(TriageQuery).target, WINDOW_BEFORE))


async def get_verdict(ask: CheckedRequest) -> VerdictView:
    """Returns whether rules find a fault in an object."""
    return await verdict_for(ask, Question(ask.namespace, ask.query(VerdictQuery).target, WINDOW_BEFORE))


async def get_investigation_changes(ask: CheckedRequest) -> InvestigationChangesView:
    """Returns the changes around the onset of an investigation, about what its alert names.

    They are computed from the objects as they are now; the ids of the run's own calls lead to what it saw.
    """
    record, trace = await find_run(ask, ask.query(RunQuery)), Trace(ask.services.pool)
    given = await trace.given(record.id)
    subject = read_subject(given.alert_data if given is not None else "")
    calls = {
        one.tool: one.id
        for one in await trace.calls(record.id, _FIRST_CALLS)
        if isinstance(one, ToolCallTrace) and one.server == _SERVER and one.state is InteractionState.COMPLETED
    }
    began = subject.began or record.accepted_at
    return await both_for(ask, Question(ask.namespace, None, WINDOW_BEFORE, began, subject), calls)


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/changes",
        operation="getChanges",
        summary="Get what changed before a target failed, the likeliest cause first",
        handler=get_changes,
        permission=Permission("list", "changes"),
        query=ChangesQuery,
        response=ChangesView,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/triage",
        operation="getTriage",
        summary="Get the well-known faults that rules find in the objects of a namespace",
        handler=get_triage,
        permission=Permission("list", "triage"),
        query=TriageQuery,
        response=TriageView,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/verdict",
        operation="getVerdict",
        summary="Get whether rules find a fault in an object: Healthy, Faulty or Inconclusive",
        handler=get_verdict,
        permission=Permission("list", "triage"),
        query=VerdictQuery,
        response=VerdictView,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/changes",
        operation="getInvestigationChanges",
        summary="Get the changes around the onset of an investigation, and the faults that rules find",
        handler=get_investigation_changes,
        permission=Permission("get", "investigations", "timeline"),
        query=RunQuery,
        response=InvestigationChangesView,
    ),
)
