"""The demo's alert and a question about it, by somebody with nothing but the investigator role, admission in force."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

import rights
from apis import ApiKind
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import API_VERSION
from tarsy_dev.kubectl import run_kubectl
from tarsy_dev.model import Script, demo_script
from tarsy_dev.objects import manifest, put_all
from tarsy_dev.sample import let_agents_read
from tarsy_dev.serving import until_serving
from tarsy_dev.stack import Stack, running_stack

pytestmark = pytest.mark.timeout(900)

SHOP = "shop"
SECONDS = 200.0


@pytest.fixture
async def stack(api_kind: ApiKind) -> AsyncIterator[Stack]:
    """An operator as `tarsy dev` has it, with the rights and the admission of the manifests."""
    async with running_stack(durable=False, api=api_kind) as stack:
        await stack.install()
        await put_all(stack.client, manifest("samples/demo/crashloop.yaml"))
        await let_agents_read(stack.client, SHOP)
        script = demo_script()
        agents = {**script.agents, "chat-agent": [{"text": "The key was renamed."}]}
        changes = {"agents": agents, "first_token_ms": 0, "per_token_ms": 0}
        await stack.use_model(Script.model_validate(script.model_dump(by_alias=True) | changes))
        operator = stack.operator()
        try:
            await until_serving(stack)
            yield stack
        finally:
            await operator.stop()


async def ended(stack: Stack, kind: str, name: str = "") -> dict[str, Any]:
    """The one object of a kind, once it has finished."""
    seen: object = None
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                for obj in await stack.client.list(kind, SHOP):
                    seen = status = obj.get("status") or {}
                    if ("Finished", "True") in {(c["type"], c["status"]) for c in status.get("conditions", ())}:
                        return obj
                await asyncio.sleep(0.2)
    except TimeoutError:
        pytest.fail(f"{kind} not finished in {SECONDS:g} s: {seen}\n{stack.operator_log.read_text()}")


@pytest.mark.heavy("an installation of its own")
async def test_an_investigator_runs_the_demo_and_asks_about_it_under_their_own_name(stack: Stack) -> None:
    bound = rights.binding("on-call", SHOP, "ClusterRole", "tarsy-investigator", rights.group("on-call"))
    await rights.put_rights(stack.client, [bound])
    (alert,) = manifest("samples/demo/alert-kubepodcrashlooping.yaml")
    alert["metadata"]["namespace"] = SHOP
    async with await KubeClient.load(stack.api.kubeconfig_for("alice", ["on-call"])) as alice:
        author = {"username": "alice", "groups": ["on-call", "system:authenticated"]}
        assert (await alice.create(alert))["spec"]["author"] == author
        run = await ended(stack, "Investigation")
        name = run["metadata"]["name"]
        assert (run["spec"]["author"], run["status"]["phase"]) == (author, "Succeeded")

        spec = {"investigationRef": {"name": name}, "question": "Why did it crash?"}
        meta = {"name": "why", "namespace": SHOP}
        question = {"apiVersion": API_VERSION, "kind": "ChatMessage", "metadata": meta, "spec": spec}
        assert (await alice.create(question))["spec"]["author"] == author
        answered = (await ended(stack, "ChatMessage"))["status"]
        assert answered["phase"] == "Succeeded", answered

        forged = {**alert, "metadata": alert["metadata"] | {"name": "forged"}}
        forged["spec"] = alert["spec"] | {"author": {"username": "bob"}}
        with pytest.raises(ApiError, match=r"spec\.author: bob .*is not the creating user alice; omit it"):
            await alice.create(forged)

    for kind in ("talert", "inv", "tchat"):
        listed = json.loads(await run_kubectl(stack, ["get", kind, "-n", SHOP, "-o", "json"]))
        assert [obj["spec"]["author"]["username"] for obj in listed["items"]] == ["alice"]
        wide = (await run_kubectl(stack, ["get", kind, "-n", SHOP, "-o", "wide"])).splitlines()
        column = wide[0].index("AUTHOR")
        assert wide[1][column:].split()[0] == "alice"
    log = stack.operator_log.read_text()
    assert "orbidden" not in log, log
