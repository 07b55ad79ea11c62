"""An investigation from alert to finding, by an operator that has nothing but the rights of manifests/base."""

import asyncio

import pytest

from apis import ApiKind
from e2e.waiting import until
from integration.manifests.conftest import account
from tarsy_dev.model import ScriptedModel, demo_script
from tarsy_dev.objects import manifest, put, put_all
from tarsy_dev.sample import let_agents_read
from tarsy_dev.serving import until_serving
from tarsy_dev.stack import RealModel, Stack, running_stack

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.heavy("a stack of its own; controllers/test_rights has the controllers' part"),
]

SECONDS = 180.0
SHOP = "shop"


async def _finished(stack: Stack) -> str:
    """The phase of the one investigation of the shop, once it has ended."""
    seen: object = "no investigation"
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                for inv in await stack.client.list("Investigation", SHOP):
                    seen = status = inv.get("status", {})
                    if ("Finished", "True") in {(c["type"], c["status"]) for c in status.get("conditions", ())}:
                        return str(status["phase"])
                await asyncio.sleep(0.2)
    except TimeoutError:
        pytest.fail(f"not finished in {SECONDS:g} s: {seen}\n{stack.operator_log.read_text()}")


async def test_the_rights_of_the_deployment_are_enough_for_an_investigation(api_kind: ApiKind) -> None:
    """With all that needs a right: a key in a Secret, alert data in a ConfigMap, Events, status, Lease."""
    (alert,) = manifest("samples/demo/alert-kubepodcrashlooping.yaml")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "body", "namespace": SHOP}}
    body["data"] = {"alert.json": alert["spec"].pop("data")}
    alert["spec"]["dataFrom"] = {"configMapKeyRef": {"name": "body", "key": "alert.json"}}
    alert["metadata"]["namespace"] = SHOP
    files = ("clusterrole", "role", "secret-reader", "record-access", "run-secrets")
    rights = [obj for name in files for obj in manifest(f"base/{name}.yaml")]
    model = ScriptedModel(demo_script().model_copy(update={"first_token_ms": 0, "per_token_ms": 0}))
    async with running_stack(durable=False, api=api_kind) as stack:
        await stack.install()
        await put_all(stack.client, [*rights, *manifest("library/secrets.yaml")])
        await put_all(stack.client, [*manifest("samples/demo/crashloop.yaml"), body])
        await let_agents_read(stack.client, SHOP)
        await stack.use_model(RealModel("scripted-demo", await model.start(), api_key="any"))
        identity = account(stack.api, "tarsy-system", "tarsy-operator")
        operator = stack.operator("--kubeconfig", str(identity))
        try:
            await until_serving(stack)
            await put(stack.client, alert)
            phase = await _finished(stack)
            events: set[str] = set()

            async def told() -> bool:
                events.update(event["reason"] for event in await stack.client.list("Event", SHOP))
                return "Succeeded" in events

            await until("an Event tells of the end", told)
            lease = await stack.client.find("Lease", "tarsy-system", "tarsy-controller")
        finally:
            await operator.stop()
            await model.stop()
        log = stack.operator_log.read_text()
    assert phase == "Succeeded", log
    assert "orbidden" not in log
    assert lease is not None
