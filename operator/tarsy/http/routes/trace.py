"""Returns the trace of an investigation: the list of its calls, and the details of one call.

Decision: a call is looked up within the investigation in the path, because the permission was checked for that one; a
call of another investigation is never found. The calls of answers belong to the investigation.
"""

import asyncio
import base64

from pydantic import Field

from tarsy.engine.findings.conclusion import read_finding
from tarsy.evals.cassette import CassetteError, write_cassette
from tarsy.evals.recording import cassette_of
from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import Conflict, NotFound
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes import paging
from tarsy.http.routes.investigations import RunUidQuery
from tarsy.http.routes.lookup import find_run, located
from tarsy.http.routes.parameters import RunQuery, Token
from tarsy.http.views.seal import ErasedView, RunSealView, SealView, published_seals
from tarsy.http.views.trace import CassetteView, ModelCallDetails, ToolCallDetails, TraceView
from tarsy.resources.v1alpha1 import ChatMessage, Investigation
from tarsy.store.judging.replays import Replays
from tarsy.store.reading.trace import Trace
from tarsy.store.sealing.sealed_record import SealedRecord

MAX_CALLS = 2000
_TRACE = Permission("get", "investigations", "trace")


class TraceQuery(RunQuery):
    """Run, and page of its calls."""

    limit: int = Field(default=1000, ge=1, le=MAX_CALLS, description="Maximum number of model calls and tool calls.")
    token: Token | None = Field(default=None, alias="continue")


async def get_trace(ask: CheckedRequest) -> TraceView:
    """Returns the stages and agents of a run with a page of their calls."""
    query = ask.query(TraceQuery)
    record, trace = await find_run(ask, query), Trace(ask.services.pool)
    question, after = f"trace/{record.id}", None
    if query.token is not None:
        begun, last = paging.decode_continue(question, query.token, 2)
        after = (paging.moment(begun), paging.identity(last))
    calls = await trace.calls(record.id, query.limit + 1, after)
    token = None
    if len(calls) > query.limit:
        calls = calls[: query.limit]
        token = paging.encode_continue(question, (calls[-1].started_at.isoformat(), str(calls[-1].id)))
    return TraceView.of(record, await trace.stages(record.id), calls, token)


async def get_model_call(ask: CheckedRequest) -> ModelCallDetails:
    """Returns a model call with its messages."""
    run = await located(ask, ask.query(RunUidQuery).uid)
    found = await Trace(ask.services.pool).model_call(run, ask.id)
    if found is None:
        raise NotFound(f"investigation {ask.namespace}/{ask.name} made no model call {ask.id}")
    return ModelCallDetails.detailed(found, await ask.services.reads.sent(ask.id))


async def get_tool_call(ask: CheckedRequest) -> ToolCallDetails:
    """Returns a tool call with its result."""
    run = await located(ask, ask.query(RunUidQuery).uid)
    found = await Trace(ask.services.pool).tool_call(run, ask.id)
    if found is None:
        raise NotFound(f"investigation {ask.namespace}/{ask.name} made no tool call {ask.id}")
    return ToolCallDetails.detailed(found)


async def get_cassette(ask: CheckedRequest) -> CassetteView:
    """Returns the recorded calls of a finished run as a cassette, masked as they are stored.

    Raises:
        NotFound: there is no such run.
        Conflict: it has not finished, is itself a replay, or is too large.
    """
    run = await located(ask, ask.query(RunUidQuery).uid)
    found, where = await Replays(ask.services.pool).source(run), f"investigation {ask.namespace}/{ask.name}"
    if found is None:
        raise NotFound(f"{where} has no record")
    if not found.state.finished:
        raise Conflict(f"{where} has not finished; wait for it")
    if found.replay:
        raise Conflict(f"{where} is itself a replay; export the investigation that it replays")
    try:
        data = await asyncio.to_thread(lambda: write_cassette(cassette_of(found.run, lambda t: read_finding(t)[0])))
    except CassetteError as error:
        raise Conflict(f"{where}: {error}") from error
    return CassetteView(cassette=base64.b64encode(data).decode(), calls=len(found.run.calls))


async def get_seal(ask: CheckedRequest) -> SealView:
    """Checks the record of a run, and of the answers about it, against their seals and the status of the object.

    Raises:
        NotFound: there is no record, and none was deleted.
    """
    sealed = SealedRecord(ask.services.pool)
    run = await Trace(ask.services.pool).locate(ask.namespace, ask.name, ask.namespace_uid, ask.query(RunUidQuery).uid)
    if run is None:
        erased = await sealed.erased(ask.namespace, ask.name, ask.namespace_uid)
        if erased is None:
            raise NotFound(f"investigation {ask.namespace}/{ask.name} has no record, and none was deleted")
        return SealView(erased=ErasedView.of(erased))
    # The objects are read first: their heads are never newer than the record that is checked against them.
    raw = [await ask.services.kube.find(Investigation.KIND, ask.namespace, ask.name) or {}]
    raw += await ask.services.kube.list(ChatMessage.KIND, ask.namespace)
    return SealView(runs=[RunSealView.of(one) for one in await sealed.check(run, published_seals(raw))])


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/trace/seal",
        operation="getSeal",
        summary="Check the record of a run against its seals: whether anything was changed, added or deleted",
        handler=get_seal,
        permission=_TRACE,
        query=RunUidQuery,
        response=SealView,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/trace/cassette",
        operation="getCassette",
        summary="Get the recorded tool calls of a finished run as a cassette, to be replayed",
        handler=get_cassette,
        permission=_TRACE,
        query=RunUidQuery,
        response=CassetteView,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/trace",
        operation="getTrace",
        summary="List model calls and tool calls by stage and agent, with their times",
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
        summary="Get a model call with the exact messages sent and the response",
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
        summary="Get a tool call with its arguments and its result",
        handler=get_tool_call,
        permission=_TRACE,
        query=RunUidQuery,
        response=ToolCallDetails,
        aggregated=True,
    ),
)
