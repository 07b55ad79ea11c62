"""The trace of an investigation: the list of its calls, and each by itself.

Decision: the id in the path is looked for within the investigation in the path, whose permission was asked; a call of
another investigation is not found, whoever asks. The calls of answers count as the investigation's.
"""

from pydantic import Field

from tarsy.http.errors import NotFound
from tarsy.http.route import Ask, Permission, Route
from tarsy.http.routes import paging
from tarsy.http.routes.investigations import RunUidQuery
from tarsy.http.routes.lookup import located, run_of
from tarsy.http.routes.parameters import RunQuery, Token
from tarsy.http.views.trace import ModelCallDetails, ToolCallDetails, TraceView
from tarsy.store.trace import Trace

MAX_CALLS = 2000
_TRACE = Permission("get", "investigations", "trace")


class TraceQuery(RunQuery):
    """Whose trace, and how much of it."""

    limit: int = Field(default=1000, ge=1, le=MAX_CALLS, description="Calls of models and tools at most.")
    token: Token | None = Field(default=None, alias="continue")


async def get_trace(ask: Ask) -> TraceView:
    """The stages and agents of a run with a page of their calls."""
    query = ask.query(TraceQuery)
    record, trace = await run_of(ask, query), Trace(ask.services.pool)
    question, after = f"trace/{record.id}", None
    if query.token is not None:
        begun, last = paging.decode(question, query.token, 2)
        after = (paging.moment(begun), paging.identity(last))
    calls = await trace.calls(record.id, query.limit + 1, after)
    token = None
    if len(calls) > query.limit:
        calls = calls[: query.limit]
        token = paging.encode(question, (calls[-1].started_at.isoformat(), str(calls[-1].id)))
    return TraceView.of(record, await trace.stages(record.id), calls, token)


async def get_model_call(ask: Ask) -> ModelCallDetails:
    """A model call with its conversation."""
    run = await located(ask, ask.query(RunUidQuery).uid)
    found = await Trace(ask.services.pool).model_call(run, ask.id)
    if found is None:
        raise NotFound(f"investigation {ask.namespace}/{ask.name} made no model call {ask.id}")
    return ModelCallDetails.detailed(found, await ask.services.reads.sent(ask.id))


async def get_tool_call(ask: Ask) -> ToolCallDetails:
    """A tool call with its result."""
    run = await located(ask, ask.query(RunUidQuery).uid)
    found = await Trace(ask.services.pool).tool_call(run, ask.id)
    if found is None:
        raise NotFound(f"investigation {ask.namespace}/{ask.name} made no tool call {ask.id}")
    return ToolCallDetails.detailed(found)


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/trace",
        operation="getTrace",
        summary="Every call of a model and of a tool, by stage and agent, with its times",
        handler=get_trace,
        permission=_TRACE,
        query=TraceQuery,
        response=TraceView,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/trace/llm/{id}",
        operation="getModelCall",
        summary="A model call: what was sent, exactly, and what was answered",
        handler=get_model_call,
        permission=_TRACE,
        query=RunUidQuery,
        response=ModelCallDetails,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/trace/mcp/{id}",
        operation="getToolCall",
        summary="A tool call: its arguments and its result",
        handler=get_tool_call,
        permission=_TRACE,
        query=RunUidQuery,
        response=ToolCallDetails,
        aggregated=True,
    ),
)
