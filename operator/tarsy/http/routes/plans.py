"""Plans an investigation without starting it.

Decision: the code of acceptance makes the plan, from the objects as they are now. Whoever may not use the chain is
refused as its runs would be. Instructions, addresses and references to Secrets are left out.
"""

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import Forbidden
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.plan_answer import PLANNED_FROM, chain_for, plan_view
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.objects import may_list
from tarsy.http.unknown_names import may_use, planning_catalog
from tarsy.http.views.plans import PlanQuestion, PlanView
from tarsy.plan.select import search_path


async def plan_alert(ask: CheckedRequest) -> PlanView:
    """Returns the plan that an alert of a type would follow, or the errors of the configuration.

    Raises:
        Forbidden: the caller may not use the chain.
    """
    question, namespace, library = ask.body(PlanQuestion), ask.namespace, ask.services.library_namespace
    catalog = await planning_catalog(ask)
    chain = chain_for(namespace, question, catalog, library)
    if isinstance(chain, PlanView):
        return chain
    if not await may_use(ask, chain):
        raise Forbidden(f"{ask.caller.username} may not use {chain}")
    listed = {
        (kind.KIND, place)
        for kind in PLANNED_FROM
        for place in search_path(namespace, library)
        if await may_list(ask, kind, (place,))
    }
    return plan_view(namespace, question, chain, catalog, library, lambda kind, place: (kind, place) in listed)


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
