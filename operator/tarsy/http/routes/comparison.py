"""Compares two investigations of a namespace.

Decision: a comparison contains the finding and the calls of both runs, so it requires the right to read the timeline
and the trace of each. Both are asked about before a record is looked up, so a refusal is the same whether or not there
is such a run.
"""

from uuid import UUID

from pydantic import Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import Conflict, NotFound
from tarsy.http.models import Query
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.views.comparison import Calls, ComparedRun, Comparison, calls_by_agent, compare_calls
from tarsy.resources.schema import ObjectName
from tarsy.store.reading.trace import Trace

MOST_CALLS = 1_000
"""Maximum tool calls of each run."""
_TRACE = Permission("get", "investigations", "trace")
_TIMELINE = Permission("get", "investigations", "timeline")


class ComparisonQuery(Query):
    """Selects both runs."""

    other: ObjectName = Field(description="Name of the investigation to compare with, in the same namespace.")
    uid: UUID | None = Field(
        default=None, description="Uid of an older investigation of the name in the path. The latest one when omitted."
    )
    other_uid: UUID | None = Field(
        default=None, description="Uid of an older investigation of the name `other`. The latest one when omitted."
    )


async def compare_investigations(ask: CheckedRequest) -> Comparison:
    """Returns two investigations side by side.

    Raises:
        Forbidden: the caller may not read timeline and trace of both.
        NotFound: one of them has no record.
        Conflict: one of them made too many calls.
    """
    query, access = ask.query(ComparisonQuery), ask.services.access
    await access.demand(ask.caller, _TIMELINE, ask.namespace, ask.name)
    for permission in (_TIMELINE, _TRACE):
        await access.demand(ask.caller, permission, ask.namespace, query.other)
    first, our_calls = await _side(ask, ask.name, query.uid)
    second, their_calls = await _side(ask, query.other, query.other_uid)
    return Comparison(first=first, second=second, agents=compare_calls(our_calls, their_calls))


async def _side(ask: CheckedRequest, name: str, uid: UUID | None) -> tuple[ComparedRun, Calls]:
    where, trace = f"investigation {ask.namespace}/{name}", Trace(ask.services.pool)
    run = await trace.locate(ask.namespace, name, ask.namespace_uid, uid)
    record = None if run is None else await ask.services.reads.record(run)
    if run is None or record is None:
        raise NotFound(f"there is no record of {where}; an investigation has a record once it is accepted")
    stages = await trace.stages(run)
    calls = await trace.placed_calls(run, MOST_CALLS + 1)
    if len(calls) > MOST_CALLS:
        raise Conflict(f"{where} made more than {MOST_CALLS:,} tool calls, which is the most that can be compared")
    return ComparedRun.of(record, stages), calls_by_agent(stages, calls)


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/trace/comparison",
        operation="compareInvestigations",
        summary="Compare two investigations: outcome, finding, cost, and the tool calls from the first difference on",
        handler=compare_investigations,
        permission=_TRACE,
        query=ComparisonQuery,
        response=Comparison,
        aggregated=True,
    ),
)
