"""Lists the alert types that chains handle.

Decision: chains are looked up as acceptance does it: those of the namespace first, then those of the library that allow
the namespace. Library chains that the caller may not list are left out.
"""

from collections import defaultdict

from pydantic import Field

from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import (
    library_objects,
    list_permission,
    namespace_defaults,
    paginate,
    sort_key,
    valid_objects,
)
from tarsy.http.routes.parameters import ListQuery
from tarsy.http.views.configuration import AlertTypeList, AlertTypeView, ChainRef, ready
from tarsy.resources.schema import LabelName
from tarsy.resources.v1alpha1 import Chain


class AlertTypesQuery(ListQuery):
    """Namespace of the alert, and the page."""

    namespace: LabelName | None = Field(  # type: ignore[assignment]  # one, where other lists take several
        default=None, description="Only types that an alert in this namespace can have. All namespaces when omitted."
    )


async def list_alert_types(ask: CheckedRequest) -> AlertTypeList:
    """Lists alert types by name, each with the chains that handle it."""
    query = ask.query(AlertTypesQuery)
    home = query.namespace
    chains = await valid_objects(ask, Chain, (home,) if home else ())
    if home:
        chains += await library_objects(ask, Chain, home)
    claims: defaultdict[str, list[ChainRef]] = defaultdict(list)
    for chain in sorted(chains, key=lambda one: (one.metadata.namespace != home, *sort_key(one))):
        for alert_type in chain.spec.alert_types:
            claims[alert_type].append(_chain_ref(chain))
    shown, token = paginate(f"alert-types/{home}", query, list(claims.items()), lambda claim: (claim[0],), 1)
    items = tuple(AlertTypeView(alert_type=name, chains=tuple(refs)) for name, refs in shown)
    if not home or (defaults := await namespace_defaults(ask, home)) is None:
        return AlertTypeList(items=items, next=token)
    default = next((one for one in chains if one.metadata.name == defaults.spec.default_chain), None)
    return AlertTypeList(
        items=items,
        next=token,
        default_alert_type=defaults.spec.default_alert_type,
        default_chain=None if default is None else _chain_ref(default),
    )


def _chain_ref(chain: Chain) -> ChainRef:
    return ChainRef(namespace=chain.metadata.namespace, name=chain.metadata.name, ready=ready(chain))


ROUTES = (
    Route(
        method="GET",
        path="/alert-types",
        operation="listAlertTypes",
        summary="List alert types and the chains that handle them",
        handler=list_alert_types,
        permission=list_permission(Chain),
        query=AlertTypesQuery,
        response=AlertTypeList,
    ),
)
