"""Lists calls that wait for people, returns one with the results that it cites, and takes decisions.

Decision: a decision is written with the caller's own token, so that the policy `tarsy-approve` and the audit log see
the person, and carries the digest that the caller was shown. Which results a request cites is read from the record, not
from the object, which in a cluster without the policy somebody else may have written.
"""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field, ValidationError

from tarsy.http.authentication.identity import Permission
from tarsy.http.decision_entry import entry_patch, policy_refusal, why_undecidable
from tarsy.http.errors import Conflict, Forbidden, NotFound
from tarsy.http.failures import as_caller_said
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import list_permission, paginate, raw_objects
from tarsy.http.routes.parameters import ListQuery
from tarsy.http.views.approvals import (
    ApprovalEvidenceView,
    ApprovalItem,
    ApprovalPage,
    ApprovalView,
    CitedResult,
    DecisionBody,
)
from tarsy.kube.client import ApiError
from tarsy.resources.v1alpha1 import ToolApproval
from tarsy.store.approvals import ApprovalStore

TRIES: Final = 4
"""Times that a decision is written when the object changes at the same moment."""


class ApprovalsQuery(ListQuery):
    """Namespaces, page, and whether decided calls are listed."""

    decided: bool = Field(default=False, description="Whether calls that no longer wait are listed too.")


async def list_tool_approvals(ask: CheckedRequest) -> ApprovalPage:
    """Returns a page of the calls that wait, those that expire first at the top."""
    query = ask.query(ApprovalsQuery)
    found = []
    for raw in await raw_objects(ask, ToolApproval, query.namespace):
        try:
            item = ApprovalItem.of(raw)
        except ValidationError:
            continue  # the operator reports it
        if query.decided or item.phase == "Pending":
            found.append(item)
    page, token = paginate(f"{ToolApproval.PLURAL}/{query.namespace}/{query.decided}", query, found, _sort_key, 4)
    return ApprovalPage(items=tuple(page), next=token)


async def get_tool_approval(ask: CheckedRequest) -> ApprovalView:
    """Returns a call with its arguments, reasons and decisions."""
    return _view(ask, await _stored(ask))


async def get_approval_evidence(ask: CheckedRequest) -> ApprovalEvidenceView:
    """Returns the results that a call cites."""
    raw = await _stored(ask)
    store = ApprovalStore(ask.services.pool)
    record = await store.of_object(str(raw["metadata"]["uid"]))
    if record is None or record.namespace != ask.namespace:
        raise NotFound(f"ToolApproval {ask.namespace}/{ask.name} has no record")
    refs = [str(ref) for ref in record.request["shown"]["why"]["evidence"]]
    found = await store.cited_results(record.investigation, refs)
    return ApprovalEvidenceView(items=tuple(CitedResult.of(ref, found[ref]) for ref in refs if ref in found))


async def decide_tool_approval(ask: CheckedRequest) -> ApprovalView:
    """Appends the decision of the caller.

    Raises:
        NotFound: there is no such call, as far as the caller may see.
        Conflict: it is decided, expired, another than the caller was shown, or the caller's own request.
        Forbidden: the caller may not decide about calls of the server.
    """
    body, client = ask.body(DecisionBody), ask.as_caller()
    caller = ask.caller
    for attempt in range(TRIES):
        try:
            raw = await client.get(ToolApproval.KIND, ask.namespace, ask.name)
            view = _view(ask, raw)
            if (why := why_undecidable(view, body.decision, caller.username, datetime.now(UTC))) is not None:
                raise Conflict(why)
            if view.arguments_digest != body.arguments_digest:
                raise Conflict(
                    f"ToolApproval {ask.namespace}/{ask.name} is not what you were shown (argumentsDigest differs): "
                    "read it again, then decide"
                )
            patch = entry_patch(raw, body.decision, body.arguments_digest, caller.username, caller.groups, body.reason)
            return _view(ask, await client.patch(ToolApproval.KIND, ask.namespace, ask.name, patch))
        except ApiError as error:
            if error.reason == "Conflict" and attempt + 1 < TRIES:
                await asyncio.sleep(0.1 * (attempt + 1))
                continue
            if error.status == 403 and (said := policy_refusal(error.message)) is not None:
                raise Forbidden(said) from None
            raise as_caller_said(error) from None
    raise AssertionError("the last attempt returns or raises")


def _sort_key(item: ApprovalItem) -> tuple[str, str, str, str]:
    waits = "0" if item.phase == "Pending" else "1"
    return waits, item.expires_at.astimezone(UTC).isoformat(), item.namespace, item.name


async def _stored(ask: CheckedRequest) -> dict[str, Any]:
    found = await ask.services.kube.find(ToolApproval.KIND, ask.namespace, ask.name)
    if found is None:
        raise NotFound(f"there is no ToolApproval {ask.namespace}/{ask.name}")
    return found


def _view(ask: CheckedRequest, raw: dict[str, Any]) -> ApprovalView:
    try:
        return ApprovalView.of(raw)
    except ValidationError:
        raise NotFound(f"ToolApproval {ask.namespace}/{ask.name} is not valid; `kubectl get` shows it") from None


_ONE: Final = "/namespaces/{namespace}/toolapprovals/{name}"
ROUTES = (
    Route(
        method="GET",
        path="/toolapprovals",
        operation="listToolApprovals",
        summary="List tool calls that wait for approval",
        handler=list_tool_approvals,
        permission=list_permission(ToolApproval),
        query=ApprovalsQuery,
        response=ApprovalPage,
    ),
    Route(
        method="GET",
        path=_ONE,
        operation="getToolApproval",
        summary="Get a tool call that waits for approval, with its arguments, reasons and decisions",
        handler=get_tool_approval,
        permission=Permission("get", ToolApproval.PLURAL, group=PRODUCT_GROUP),
        response=ApprovalView,
    ),
    Route(
        method="GET",
        path=_ONE + "/evidence",
        operation="getToolApprovalEvidence",
        summary="Get the results that a waiting tool call cites",
        handler=get_approval_evidence,
        permission=Permission("get", ToolApproval.PLURAL, "evidence"),
        response=ApprovalEvidenceView,
        aggregated=True,
    ),
    Route(
        method="POST",
        path=_ONE + "/decisions",
        operation="decideToolApproval",
        summary="Approve or reject a tool call, with the caller's own token and the digest that the caller was shown",
        handler=decide_tool_approval,
        permission=Permission("patch", ToolApproval.PLURAL, group=PRODUCT_GROUP),
        body=DecisionBody,
        response=ApprovalView,
        status=201,
    ),
)
