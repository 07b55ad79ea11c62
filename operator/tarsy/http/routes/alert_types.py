"""The alert types that there are chains for.

Decision: what an alert in a namespace can have is what the engine would find there: the chains of the namespace, then
those of the library that admit it. Library chains that the caller may not list are left out.
"""

from collections import defaultdict

from pydantic import Field

from tarsy.http.route import Ask, Route
from tarsy.http.routes.objects import listing, named, objects, of_library, page
from tarsy.http.routes.parameters import ListQuery
from tarsy.http.views.configuration import AlertTypeList, AlertTypeView, ChainRef, ready
from tarsy.resources.schema import LabelName
from tarsy.resources.v1alpha1 import Chain


class AlertTypesQuery(ListQuery):
    """Where an alert would be handed in."""

    namespace: LabelName | None = Field(  # type: ignore[assignment]  # one, where other lists take several
        default=None, description="Those that an alert in this namespace can have; none: those of all namespaces."
    )


async def list_alert_types(ask: Ask) -> AlertTypeList:
    """Alert types by name, each with the chains that claim it."""
    query = ask.query(AlertTypesQuery)
    home = query.namespace
    chains = await objects(ask, Chain, (home,) if home else ())
    if home:
        chains += await of_library(ask, Chain, home)
    claims: defaultdict[str, list[ChainRef]] = defaultdict(list)
    for chain in sorted(chains, key=lambda one: (one.metadata.namespace != home, *named(one))):
        for alert_type in chain.spec.alert_types:
            ref = ChainRef(namespace=chain.metadata.namespace, name=chain.metadata.name, ready=ready(chain))
            claims[alert_type].append(ref)
    shown, token = page(f"alert-types/{home}", query, list(claims.items()), lambda claim: (claim[0],), 1)
    items = tuple(AlertTypeView(alert_type=name, chains=tuple(refs)) for name, refs in shown)
    return AlertTypeList(items=items, next=token)


ROUTES = (
    Route(
        method="GET",
        path="/alert-types",
        operation="listAlertTypes",
        summary="Alert types, with the chains that investigate them",
        handler=list_alert_types,
        permission=listing(Chain),
        query=AlertTypesQuery,
        response=AlertTypeList,
    ),
)
