"""Plans an alert with a kubeconfig: from the objects that the user may list, by the code of acceptance."""

from tarsy.client.errors import ApiUseError
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.plan_answer import PLANNED_FROM, chain_for, plan_view
from tarsy.http.views.plans import PlanQuestion, PlanView
from tarsy.kube.access import ResourceAttributes, caller_may
from tarsy.kube.client import KubeClient
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.library import LIBRARY_NAMESPACE
from tarsy.plan.select import search_path
from tarsy.resources.meta import AnyResource
from tarsy.resources.parse import parse_valid
from tarsy.resources.v1alpha1 import Chain


async def planned(client: KubeClient, namespace: str, question: PlanQuestion) -> PlanView:
    """Returns the plan that an alert would follow.

    Args:
        client: the Kubernetes API, with the identity of the user.
        namespace: of the alert.
        question: the alert.

    Raises:
        ApiError: the objects may not be listed, or the API could not be reached.
        ApiUseError: the user may not use the chain.
    """
    found: list[AnyResource] = []
    for kind in PLANNED_FROM:
        for place in search_path(namespace, LIBRARY_NAMESPACE):
            found += parse_valid(kind, await client.list(kind.KIND, place))
    labels = {"kubernetes.io/metadata.name": namespace}
    catalog = ResourceCatalog(found, {namespace: labels})
    chain = chain_for(namespace, question, catalog, LIBRARY_NAMESPACE)
    if isinstance(chain, PlanView):
        return chain
    meta = chain.metadata
    use = ResourceAttributes("use", PRODUCT_GROUP, Chain.PLURAL, "", meta.namespace, meta.name)
    if not await caller_may(client, use):
        raise ApiUseError(f"you may not use {chain}", 403)
    return plan_view(namespace, question, chain, catalog, LIBRARY_NAMESPACE, lambda kind, place: True)
