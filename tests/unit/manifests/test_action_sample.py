"""The sample of a chain that acts: valid, complete with the samples of the kinds, and nothing acts without people."""

from typing import Final

from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.policy import ToolPolicy
from tarsy.plan.resolve import PlanRequest, resolve
from tarsy.resources.v1alpha1 import KINDS, Chain
from tarsy.resources.v1alpha1.alert import AlertContent
from unit.manifests.shipped import objects

FOUND: Final = [
    KINDS[obj["kind"]].model_validate(obj) for folder in ("samples/action", "samples/kinds") for obj in objects(folder)
]


def test_its_plan_acts_between_two_stages_that_only_read() -> None:
    (chain,) = [one for one in FOUND if isinstance(one, Chain) and one.metadata.name == "checkout-mending"]
    alert = AlertContent.model_validate({"alertType": "CheckoutErrorRate", "data": "orders fail"})
    plan = resolve(
        PlanRequest(namespace="shop", alert=alert, chain=chain, catalog=ResourceCatalog(FOUND), library_namespace=None)
    )
    policies = [{server.policy for agent in stage.agents for server in agent.servers} for stage in plan.stages]
    assert [stage.acts for stage in plan.stages] == [None, True, None]
    assert policies == [{ToolPolicy.READ_ONLY}, {ToolPolicy.APPROVE}, {ToolPolicy.READ_ONLY}]
