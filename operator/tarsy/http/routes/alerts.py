"""Handing in alerts, and asking what became of them.

Decision: the Alert is created with the caller's own token. What may be created, who did it and what else admission says
is the Kubernetes API's to decide, exactly as for `kubectl apply`; its words are passed on. What no run of the alert
could have is said before that (`tarsy.http.mistakes`): a sender that waits for an answer is told at once, not by the
status of an object.
"""

from typing import Any

from tarsy.http.errors import BadRequest, NotFound, TooLarge, Unprocessable
from tarsy.http.failures import as_caller_said
from tarsy.http.idempotency import (
    BODY_ANNOTATION,
    IDEMPOTENCY_KEY,
    KEY_ANNOTATION,
    Idempotency,
    read_idempotency,
)
from tarsy.http.mistakes import mistakes
from tarsy.http.route import PRODUCT_GROUP, Ask, Permission, Route
from tarsy.http.views.alerts import MAX_SUBMITTED_BYTES, AlertSubmission, AlertView, SubmittedAlert
from tarsy.kube.client import ApiError
from tarsy.resources.meta import API_VERSION
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1 import Alert
from tarsy.resources.v1alpha1.alert import MAX_DATA_BYTES

BODY_BYTES = 4 * MAX_SUBMITTED_BYTES
"""Room for 1 MiB of text as JSON clients escape it (`\\n`, `\\u00e9`), and for the rest of the alert."""


async def submit_alert(ask: Ask) -> SubmittedAlert:
    """Creates an Alert, once for each Idempotency-Key.

    Raises:
        BadRequest: it names a server, a tool or a native tool that no run of it can have.
        TooLarge: its data has more than 1 MiB.
    """
    body = ask.body(AlertSubmission)
    size = len(body.data.encode()) if body.data is not None else 0
    if size > MAX_SUBMITTED_BYTES:
        raise TooLarge(f"data has {size} bytes; at most {MAX_SUBMITTED_BYTES} (1 MiB) are taken")
    if found := await mistakes(ask, body):
        raise BadRequest("; ".join(found))
    key = read_idempotency(ask.request, ask.caller.username, body)
    as_caller, spec = ask.as_caller(), body.to_dict()
    spec.pop("name", None)
    if body.data is not None and size > MAX_DATA_BYTES:
        del spec["data"]
        spec |= await ask.services.large_texts.keep(ask.namespace, body.data)
    name = body.name or (f"alert-{key.name}" if key else None)
    meta: dict[str, Any] = {"namespace": ask.namespace, **({"name": name} if name else {"generateName": "alert-"})}
    if key is not None:
        meta["annotations"] = key.annotations
    try:
        made = await as_caller.create({"apiVersion": API_VERSION, "kind": Alert.KIND, "metadata": meta, "spec": spec})
    except ApiError as error:
        before = await _made_before(ask, name, key) if error.reason == "AlreadyExists" and name and key else None
        if before is None:
            raise as_caller_said(error) from None
        made = before
    meta = made["metadata"]
    return SubmittedAlert(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"], alert_type=body.alert_type)


async def _made_before(ask: Ask, name: str, key: Idempotency) -> dict[str, Any] | None:
    """What the caller made with the same key; None: what has the name is another's.

    Raises:
        Unprocessable: the key was used for something else.
    """
    found = await ask.services.kube.find(Alert.KIND, ask.namespace, name)
    if found is None:
        return None
    annotations = found["metadata"].get("annotations") or {}
    author = (found["spec"].get("author") or {}).get("username", ask.caller.username)
    if annotations.get(KEY_ANNOTATION) != key.key or author != ask.caller.username:
        return None
    if annotations.get(BODY_ANNOTATION) != key.body:
        raise Unprocessable(f"this {IDEMPOTENCY_KEY} was used for another alert; send a new key with a new alert")
    return found


async def get_alert(ask: Ask) -> AlertView:
    """What became of an alert."""
    found = await ask.services.kube.find(Alert.KIND, ask.namespace, ask.name)
    if found is None:
        raise NotFound(f"there is no alert {ask.namespace}/{ask.name}")
    try:
        return AlertView.of(parse_as(Alert, found))
    except InvalidResource:
        raise NotFound(f"alert {ask.namespace}/{ask.name} is not valid; `kubectl get` shows it") from None


ROUTES = (
    Route(
        method="POST",
        path="/namespaces/{namespace}/alerts",
        operation="submitAlert",
        summary="Hand in an alert to be investigated",
        handler=submit_alert,
        permission=Permission("create", "alerts", group=PRODUCT_GROUP),
        body=AlertSubmission,
        body_bytes=BODY_BYTES,
        idempotent=True,
        response=SubmittedAlert,
        status=202,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/alerts/{name}",
        operation="getAlert",
        summary="What became of an alert",
        handler=get_alert,
        permission=Permission("get", "alerts", group=PRODUCT_GROUP),
        response=AlertView,
    ),
)
