"""Plans an investigation without starting it.

Decision: the code of acceptance makes the plan, from the objects as they are now. Whoever may not use the chain is
refused as its runs would be. Instructions, addresses and references to Secrets are left out.
"""

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import Forbidden
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.unknown_names import may_use, planning_catalog
from tarsy.http.views.plans import PlanQuestion, PlanView
from tarsy.plan.errors import FieldPath, PlanInvalid
from tarsy.plan.resolve import PlanRequest, explain_plan
from tarsy.plan.select import NoChain, select
from tarsy.resources.v1alpha1 import Alert
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.common import NameRef


async def plan_alert(ask: CheckedRequest) -> PlanView:
    """Returns the plan that an alert of a type would follow, or the errors of the configuration.

    Raises:
        Forbidden: the caller may not use the chain.
    """
    body, namespace, library = ask.body(PlanQuestion), ask.namespace, ask.services.library_namespace
    named = NameRef(name=body.chain) if body.chain is not None else None
    content = AlertContent(alert_type=body.alert_type, data="planned", chain_ref=named)
    catalog, at = await planning_catalog(ask), FieldPath(Alert.KIND, namespace, "")
    place: tuple[str, str] | None = None
    try:
        chain = select(namespace=namespace, alert=content, catalog=catalog, library_namespace=library, source=at)
        if isinstance(chain, NoChain) and chain.default is not None:
            chain = chain.default
        if isinstance(chain, NoChain):
            return PlanView.without_plan(namespace, body.alert_type, None, chain.message)
        place = chain.metadata.namespace, chain.metadata.name
        if not await may_use(ask, chain):
            raise Forbidden(f"{ask.caller.username} may not use Chain {place[0]}/{place[1]}")
        explained = explain_plan(
            PlanRequest(
                namespace=namespace, alert=content, chain=chain, catalog=catalog, library_namespace=library, source=at
            )
        )
    except PlanInvalid as invalid:
        return PlanView.without_plan(namespace, body.alert_type, place, *map(str, invalid.errors))
    return PlanView.of(explained.plan)


ROUTES = (
    Route(
        method="POST",
        path="/namespaces/{namespace}/plan",
        operation="planAlert",
        summary="Get the plan that an alert of a type would follow, without starting an investigation",
        handler=plan_alert,
        permission=Permission("create", "alerts", group=PRODUCT_GROUP),
        body=PlanQuestion,
        response=PlanView,
    ),
)
