"""Handing in alerts, and asking what became of them.

Decision: the Alert is created with the caller's own token. What may be created, who did it and what else admission says
is the Kubernetes API's to decide, exactly as for `kubectl apply`; its words are passed on. What no run of the alert
could have is said before that (`tarsy.http.mistakes`): a sender that waits for an answer is told at once, not by the
status of an object.
"""

from tarsy.http.errors import BadRequest, NotFound
from tarsy.http.failures import as_caller_said
from tarsy.http.mistakes import mistakes
from tarsy.http.route import PRODUCT_GROUP, Ask, Permission, Route
from tarsy.http.views.alerts import AlertSubmission, AlertView, SubmittedAlert
from tarsy.kube.client import ApiError
from tarsy.resources.meta import API_VERSION
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1 import Alert


async def submit_alert(ask: Ask) -> SubmittedAlert:
    """Creates an Alert.

    Raises:
        BadRequest: it names a server, a tool or a native tool that no run of it can have.
    """
    body = ask.body(AlertSubmission)
    if found := await mistakes(ask, body):
        raise BadRequest("; ".join(found))
    named = {"name": body.name} if body.name else {"generateName": "alert-"}
    spec = body.to_dict()
    spec.pop("name", None)
    wanted = {
        "apiVersion": API_VERSION,
        "kind": Alert.KIND,
        "metadata": {"namespace": ask.namespace, **named},
        "spec": spec,
    }
    try:
        made = await ask.as_caller().create(wanted)
    except ApiError as error:
        raise as_caller_said(error) from None
    meta = made["metadata"]
    return SubmittedAlert(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"], alert_type=body.alert_type)


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
