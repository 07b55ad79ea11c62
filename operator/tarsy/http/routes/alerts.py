"""Submits alerts and returns their progress.

Decision: the Alert is created with the caller's own token. The Kubernetes API authorizes, stamps and validates it
exactly as for `kubectl apply`, and its errors are passed on. References that no run could resolve are refused before
that (`tarsy.http.unknown_names`), so the sender gets an error at once instead of a condition of an object later.
"""

from typing import Any

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import BadRequest, NotFound, TooLarge, Unprocessable
from tarsy.http.failures import as_caller_said
from tarsy.http.idempotency import (
    BODY_ANNOTATION,
    IDEMPOTENCY_KEY,
    KEY_ANNOTATION,
    Idempotency,
    read_idempotency,
)
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import namespace_defaults
from tarsy.http.unknown_names import unknown_references
from tarsy.http.views.alerts import MAX_SUBMITTED_BYTES, AlertSubmission, AlertView, SubmittedAlert
from tarsy.kube.client import ApiError
from tarsy.resources.meta import API_VERSION
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1 import Alert
from tarsy.resources.v1alpha1.alert import MAX_DATA_BYTES
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME

ALERT_BODY_BYTES = 4 * MAX_SUBMITTED_BYTES
"""Maximum size of the body in bytes: 1 MiB of text, escaped as JSON (`\\n`, `\\u00e9`), and the rest of the alert."""


async def submit_alert(ask: CheckedRequest) -> SubmittedAlert:
    """Creates an Alert, once for each Idempotency-Key.

    Raises:
        BadRequest: the alert has no type, and its namespace names none; or it names a server, a tool or a native tool
            that no run of it can have.
        TooLarge: the data is larger than 1 MiB.
    """
    body = await _with_type(ask, ask.body(AlertSubmission))
    size = len(body.data.encode()) if body.data is not None else 0
    if size > MAX_SUBMITTED_BYTES:
        raise TooLarge(f"data has {size} bytes; the limit is {MAX_SUBMITTED_BYTES} (1 MiB)")
    if found := await unknown_references(ask, body):
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
    return SubmittedAlert(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"], alert_type=spec["alertType"])


async def _with_type(ask: CheckedRequest, body: AlertSubmission) -> AlertSubmission:
    """Adds the default type of the namespace to an alert without one."""
    if body.alert_type is not None:
        return body
    defaults = await namespace_defaults(ask, ask.namespace)
    if defaults is None or defaults.spec.default_alert_type is None:
        raise BadRequest(
            f"alertType: give one; InvestigationDefaults {ask.namespace}/{DEFAULTS_NAME} sets no defaultAlertType"
        )
    return body.model_copy(update={"alert_type": defaults.spec.default_alert_type})


async def _made_before(ask: CheckedRequest, name: str, key: Idempotency) -> dict[str, Any] | None:
    """Returns the Alert that the caller created with the same key; None if the name belongs to another Alert.

    Raises:
        Unprocessable: the key was used for another alert.
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


async def get_alert(ask: CheckedRequest) -> AlertView:
    """Returns an alert and its progress."""
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
        summary="Submit an alert",
        handler=submit_alert,
        permission=Permission("create", "alerts", group=PRODUCT_GROUP),
        body=AlertSubmission,
        body_bytes=ALERT_BODY_BYTES,
        idempotent=True,
        response=SubmittedAlert,
        status=202,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/alerts/{name}",
        operation="getAlert",
        summary="Get an alert and its progress",
        handler=get_alert,
        permission=Permission("get", "alerts", group=PRODUCT_GROUP),
        response=AlertView,
    ),
)
