"""Runs an investigation again, with live tools: a new Investigation of the same alert.

Decision: both objects are read and written with the caller's own token, as for `kubectl create`. Admission stamps the
author, and acceptance judges the right to the alert and to the chain. What can be known at once is refused at once.
"""

from typing import Any

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import Conflict, NotFound
from tarsy.http.failures import as_caller_said
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.retry_manifest import NotRetried, alert_gone, retry_manifest
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.views.retries import RetryRequest, StartedRetry
from tarsy.kube.client import ApiError


async def submit_retry(ask: CheckedRequest) -> StartedRetry:
    """Creates an Investigation of the same alert.

    Raises:
        NotFound: there is no object of the investigation.
        Conflict: it has not finished, is a replay, or its Alert does not exist any more.
    """
    body, as_caller = ask.body(RetryRequest), ask.as_caller()
    try:
        found = await as_caller.find("Investigation", ask.namespace, ask.name)
        if found is None:
            raise NotFound(
                f"there is no Investigation {ask.namespace}/{ask.name}, or it has expired; submit its alert again"
            )
        wanted = retry_manifest(found, body.chain, body.llm_provider, body.name)
        ref = found["spec"].get("alertRef")
        if ref is not None and await as_caller.find("Alert", ask.namespace, ref["name"]) is None:
            raise alert_gone(found)
        made: dict[str, Any] = await as_caller.create(wanted)
    except NotRetried as error:
        raise Conflict(str(error)) from None
    except ApiError as error:
        raise as_caller_said(error) from None
    meta = made["metadata"]
    return StartedRetry(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"], retry_of=ask.name)


ROUTES = (
    Route(
        method="POST",
        path="/namespaces/{namespace}/investigations/{name}/retries",
        operation="startRetry",
        summary="Run an investigation again: investigate the same alert anew, with the same or another chain or model",
        handler=submit_retry,
        permission=Permission("create", "investigations", group=PRODUCT_GROUP),
        body=RetryRequest,
        response=StartedRetry,
        status=202,
    ),
)
