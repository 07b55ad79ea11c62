"""Lists requests without a record: alerts without a run, and investigations that were not accepted.

Decision: candidates are selected by the columns that kubectl prints (`UnstartedScans`), and only those of the page are
read whole. Permissions are those of the objects: alerts are left out for callers who may not list them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import NotFound
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import may_list, paginate
from tarsy.http.routes.parameters import ListQuery
from tarsy.http.unstarted import UNSTARTED_PHASES, UnstartedObject
from tarsy.http.views.unstarted import UnstartedItem, UnstartedPage
from tarsy.resources.meta import AnyResource, condition
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1 import Alert, Investigation
from tarsy.resources.v1alpha1.common import ConditionType

_READS_AT_ONCE: Final = 8


async def list_unstarted(ask: CheckedRequest) -> UnstartedPage:
    """Returns a page of what has no record yet, the latest first."""
    query = ask.query(ListQuery)
    found, alerts = await _candidates(ask, query.namespace)
    shown, token = paginate(f"unstarted/{query.namespace}/{alerts}", query, found, lambda one: one.place, 4)
    return UnstartedPage(items=tuple(await _read(ask, shown)), alerts=alerts, next=token)


async def oldest_unstarted(
    ask: CheckedRequest, namespaces: Sequence[str], limit: int
) -> tuple[list[UnstartedItem], int]:
    """Returns the oldest of what has no record yet, and how many there are in all.

    Args:
        ask: the request; its caller may list investigations in the namespaces.
        namespaces: empty: all namespaces.
        limit: maximum number to return.
    """
    found, _ = await _candidates(ask, namespaces)
    found.sort(key=lambda one: one.place, reverse=True)
    return await _read(ask, found[:limit]), len(found)


async def _candidates(ask: CheckedRequest, namespaces: Sequence[str]) -> tuple[list[UnstartedObject], bool]:
    """Returns the candidates, and whether alerts are among them."""
    scans, alerts = ask.services.unstarted, await may_list(ask, Alert, namespaces)
    found = await scans.of(Investigation, namespaces)
    return [*found, *(await scans.of(Alert, namespaces) if alerts else [])], alerts


async def _read(ask: CheckedRequest, shown: Sequence[UnstartedObject]) -> list[UnstartedItem]:
    gate = asyncio.Semaphore(_READS_AT_ONCE)

    async def read(one: UnstartedObject) -> UnstartedItem | None:
        async with gate:
            raw = await ask.services.kube.find(one.kind.KIND, one.namespace, one.name)
        return None if raw is None else unstarted_item(one.kind, raw)

    items = await asyncio.gather(*(read(one) for one in shown))
    return [item for item in items if item is not None]


async def get_unstarted(ask: CheckedRequest) -> UnstartedItem:
    """Returns what the object of an investigation says, also where no record of it is left."""
    raw = await ask.services.kube.find(Investigation.KIND, ask.namespace, ask.name)
    if raw is None:
        raise NotFound(f"there is no investigation {ask.namespace}/{ask.name}")
    return _told(Investigation, raw)


def unstarted_item(kind: type[AnyResource], raw: Mapping[str, Any]) -> UnstartedItem | None:
    """Converts an object; None if it has a run by now.

    Args:
        kind: Alert or Investigation.
        raw: the object.
    """
    told = _told(kind, raw)
    return told if told.phase in UNSTARTED_PHASES[kind] else None


def _told(kind: type[AnyResource], raw: Mapping[str, Any]) -> UnstartedItem:
    try:
        obj = parse_as(kind, raw)
    except InvalidResource as error:
        return _item(kind, raw, "Pending", "Invalid", str(error))
    assert isinstance(obj, Alert | Investigation)
    found = obj.status.conditions
    accepted, ended = condition(found, ConditionType.ACCEPTED), condition(found, ConditionType.SUCCEEDED)
    why = accepted if accepted is not None and accepted.status != "True" else None
    if obj.status.phase not in UNSTARTED_PHASES[kind]:
        why = ended or why
    return _item(kind, raw, obj.status.phase or "Pending", why.reason if why else "", why.message if why else "")


def _item(kind: type[AnyResource], raw: Mapping[str, Any], phase: str, reason: str, message: str) -> UnstartedItem:
    meta, spec = raw["metadata"], raw.get("spec") or {}
    about = spec if kind is Alert else spec.get("alert") or {}
    return UnstartedItem(
        kind="Alert" if kind is Alert else "Investigation",
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        alert_type=about.get("alertType") or (raw.get("status") or {}).get("alertType"),
        severity=about.get("severity"),
        phase=phase,
        reason=reason,
        message=message,
        author=(spec.get("author") or {}).get("username"),
        created_at=meta["creationTimestamp"],
    )


ROUTES = (
    Route(
        method="GET",
        path="/unstarted",
        operation="listUnstarted",
        summary="List alerts without a run and investigations that were not accepted, with the reason",
        handler=list_unstarted,
        permission=Permission("list", "investigations", group=PRODUCT_GROUP),
        query=ListQuery,
        response=UnstartedPage,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/request",
        operation="getInvestigationRequest",
        summary="Get the object of an investigation, even if it has no record",
        handler=get_unstarted,
        permission=Permission("get", "investigations", group=PRODUCT_GROUP),
        response=UnstartedItem,
    ),
)
