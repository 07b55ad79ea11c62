"""Starts a replay of a recorded investigation.

Decision: the Investigation is created with the caller's own token, as for `kubectl create`. Admission stamps its
author, and acceptance judges the right to the trace, to the chain and to the provider. What can be known at once is
refused at once, so the caller need not look for it in a condition.
"""

from typing import Any

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import Conflict
from tarsy.http.failures import as_caller_said
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.replay_manifest import replay_manifest
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.lookup import find_run
from tarsy.http.routes.parameters import RunQuery
from tarsy.http.views.replays import ReplayRequest, StartedReplay
from tarsy.kube.client import ApiError


async def submit_replay(ask: CheckedRequest) -> StartedReplay:
    """Creates a replay of the latest investigation of the name.

    Raises:
        NotFound: there is no record to replay.
        Conflict: the recorded run has not finished.
    """
    body = ask.body(ReplayRequest)
    record = await find_run(ask, RunQuery())
    if not record.state.finished:
        raise Conflict(f"investigation {ask.namespace}/{ask.name} has not finished; replay it when it has")
    fields = body.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"name"})
    try:
        made: dict[str, Any] = await ask.as_caller().create(replay_manifest(ask.namespace, ask.name, fields, body.name))
    except ApiError as error:
        raise as_caller_said(error) from None
    meta = made["metadata"]
    return StartedReplay(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"], replay_of=ask.name)


ROUTES = (
    Route(
        method="POST",
        path="/namespaces/{namespace}/investigations/{name}/replays",
        operation="startReplay",
        summary="Replay a finished investigation, with the same or another chain or model",
        handler=submit_replay,
        permission=Permission("create", "investigations", group=PRODUCT_GROUP),
        body=ReplayRequest,
        response=StartedReplay,
        status=202,
    ),
)
