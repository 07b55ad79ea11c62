"""Lists Chains with the verdicts of people on their findings, by the confidence that these claimed.

Decision: a namespace sees the Chains that its own findings come from, with the counts of all namespaces that use them:
the confidence of its findings is shown with these counts, and the condition of the Chain tells them.
"""

from typing import Final

from pydantic import Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.models import Query
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes import paging
from tarsy.http.routes.parameters import Limit, Namespaces, Token
from tarsy.http.views.calibration import CalibrationList, ChainCalibration
from tarsy.store.judging.calibration import Verdicts

_LIST: Final = Permission("list", "calibration")


class NamespaceCalibrationQuery(Query):
    """Page."""

    limit: Limit = 50
    token: Token | None = Field(default=None, alias="continue")


class CalibrationQuery(NamespaceCalibrationQuery):
    """Namespaces and page."""

    namespace: Namespaces = ()


async def list_calibration(ask: CheckedRequest) -> CalibrationList:
    """Returns a page of the Chains of findings in some namespaces."""
    query = ask.query(CalibrationQuery)
    uids = await ask.services.namespaces.uids(query.namespace)
    return await _page(ask, query, uids)


async def list_namespace_calibration(ask: CheckedRequest) -> CalibrationList:
    """Returns a page of the Chains of findings in the namespace in the path."""
    return await _page(ask, ask.query(NamespaceCalibrationQuery), [ask.namespace_uid])


async def _page(ask: CheckedRequest, query: NamespaceCalibrationQuery, uids: list[str] | None) -> CalibrationList:
    question, after = f"calibration/{uids}", None
    if query.token is not None:
        namespace, chain = paging.decode_continue(question, query.token, 2)
        after = (namespace, chain)
    verdicts, floor = Verdicts(ask.services.pool), ask.services.calibration_floor
    found = await verdicts.chains(uids, query.limit + 1, after)
    shown = found[: query.limit]
    judged = await verdicts.judged(shown)
    return CalibrationList(
        floor=floor,
        items=tuple(ChainCalibration.of(*chain, judged.get(chain, ()), floor) for chain in shown),
        next=paging.encode_continue(question, shown[-1]) if len(found) > query.limit else None,
    )


ROUTES = (
    Route(
        method="GET",
        path="/calibration",
        operation="listCalibration",
        summary="List how often findings of Chains were right, by confidence",
        handler=list_calibration,
        permission=_LIST,
        query=CalibrationQuery,
        response=CalibrationList,
        aggregated=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}/calibration",
        operation="listNamespaceCalibration",
        summary="List how often findings of the Chains of a namespace were right, by confidence",
        handler=list_namespace_calibration,
        permission=_LIST,
        query=NamespaceCalibrationQuery,
        response=CalibrationList,
        aggregated=True,
    ),
)
