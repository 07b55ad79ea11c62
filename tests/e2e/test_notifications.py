"""People are told how a run ends, by the whole product; one killed while it tells them tells them once more."""

import base64
import signal

import pytest

from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until
from tarsy.kube.credentials import LABEL
from tarsy_dev.objects import put
from wire.receiver import KEY, TOKEN, receiving

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.once("what is told goes past the Kubernetes API"),
]
SCRIPT = f"agents: {{agent: [{{text: {ANSWER}}}]}}"


async def put_secret(tenant: Tenant, name: str, value: str) -> dict[str, str]:
    """A Secret with one key; the reference to it."""
    meta = {"name": name, "namespace": tenant.namespace, "labels": {LABEL: "true"}}
    data = {"value": base64.b64encode(value.encode()).decode()}
    await put(tenant.client, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
    return {"name": name, "key": "value"}


async def test_an_end_is_told_and_a_kill_in_the_middle_repeats_it_once_at_most(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    operator = await tenant.machine.operator()
    async with receiving() as receiver:
        receiver.mute = True
        hook = {"url": f"{receiver.url}/in", "signingSecretRef": await put_secret(tenant, "hook", KEY)}
        slack = {"channel": "#alerts", "apiUrl": f"{receiver.url}/api"}
        slack["tokenSecretRef"] = await put_secret(tenant, "slack", TOKEN)
        targets = [{"name": "hook", "webhook": hook}, {"name": "people", "slack": slack}]
        await tenant.simple(SCRIPT, notify=targets)
        await tenant.investigate()
        inv = await tenant.finished(seconds=150)
        assert condition(inv, "Succeeded") == "True", inv["status"]  # whoever is not told yet
        await receiver.wait_for(lambda: len(receiver.told) == 2, 150)
        operator.kill()
        assert await operator.wait(10) == -signal.SIGKILL
        receiver.mute = False
        await tenant.pool.execute("UPDATE notice SET due_at = now() WHERE state = 'owed'")
        await tenant.machine.lapse_of_all()
        operator.start()
        await receiver.wait_for(lambda: len(receiver.told) == 4, 150)

        async def events() -> list[str]:
            found = await tenant.client.list("Event", tenant.namespace)
            told = [event["message"] for event in found if event["reason"] == "Notified"]
            return told if len(told) == 2 else []

        told = await until("both are on the object", events, 150)
        assert len(receiver.told) == 4
    hooks, messages = receiver.at("/in"), receiver.at("/api/chat.postMessage")
    assert len({told.headers["webhook-id"] for told in hooks}) == 1 and all(told.signed for told in hooks)
    assert hooks[0].body == hooks[1].body and hooks[0].body["data"]["summary"].startswith(SUMMARY)
    assert hooks[0].body["data"]["investigation"] == {
        "namespace": tenant.namespace,
        "name": "run",
        "uid": inv["metadata"]["uid"],
    }
    assert len(messages) == 2 and SUMMARY in str(messages[1].body["blocks"])
    assert {message.split(":")[1].split()[0] for message in told} == {"hook", "people"}
