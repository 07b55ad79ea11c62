"""Lists InvestigationQuotas with their usage."""

from pydantic import BaseModel

from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import list_permission, paginate, sort_key, valid_objects
from tarsy.http.routes.parameters import ListQuery
from tarsy.http.views.quotas import QuotaList, QuotaView
from tarsy.resources.v1alpha1 import InvestigationQuota


async def list_investigation_quotas(ask: CheckedRequest) -> BaseModel:
    """Returns a page of the quotas."""
    query = ask.query(ListQuery)
    quotas = await valid_objects(ask, InvestigationQuota, query.namespace)
    found, token = paginate(f"{InvestigationQuota.PLURAL}/{query.namespace}", query, quotas, sort_key, 2)
    return QuotaList.model_validate({"items": tuple(map(QuotaView.of, found)), "continue": token})


ROUTES = (
    Route(
        method="GET",
        path="/investigationquotas",
        operation="listInvestigationQuotas",
        summary="List quotas of investigations with the usage in the current period",
        handler=list_investigation_quotas,
        permission=list_permission(InvestigationQuota),
        query=ListQuery,
        response=QuotaList,
    ),
)
