"""The record of a run as people read it: by `kubectl get --raw` with a certificate, and by a token directly."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import rights
from e2e.tenant import ANSWER, Tenant
from e2e.waiting import until
from tarsy.kube.client import ApiError
from tarsy_dev.objects import manifest, put, put_all

SCRIPT = f"agents: {{agent: [{{text: {ANSWER}}}]}}"


async def viewer(tenant: Tenant) -> tuple[Path, str]:
    """A viewer of the namespace: a kubeconfig with a certificate of one, and the token of another."""
    await put_all(tenant.client, manifest("base/people.yaml"))
    account = {"name": "viewer", "namespace": tenant.namespace}
    await put(tenant.client, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    person = f"viewer-of-{tenant.namespace}"
    subjects = (rights.account("viewer", tenant.namespace), rights.user(person))
    bound = rights.binding("viewers", tenant.namespace, "ClusterRole", "tarsy-viewer", *subjects)
    await rights.put_rights(tenant.client, [bound])
    token = await tenant.client.create_token(tenant.namespace, "viewer")
    return tenant.machine.api.kubeconfig_for(person), token


def path(tenant: Tenant, part: str) -> str:
    return f"/namespaces/{tenant.namespace}/investigations/run/{part}"


async def raw(tenant: Tenant, who: Path, part: str) -> tuple[int, str]:
    """Exit status and output of kubectl."""
    at = f"/apis/record.tarsy.dev/v1alpha1{path(tenant, part)}"
    return await tenant.kubectl("get", "--raw", at, "--kubeconfig", str(who))


async def direct(tenant: Tenant, token: str, part: str) -> tuple[int, dict[str, Any]]:
    """Status and body at the direct door."""
    url = f"http://127.0.0.1:{tenant.machine.http_port}/api/v1{path(tenant, part)}"
    async with aiohttp.ClientSession() as http:
        async with http.get(url, headers={"Authorization": f"Bearer {token}"}) as answer:
            return answer.status, await answer.json()


async def test_a_viewer_reads_the_timeline_at_both_doors_and_no_trace(tenant: Tenant) -> None:
    if tenant.machine.kubectl is None:
        pytest.skip("there is no kubectl on this machine")
    await tenant.simple(SCRIPT)
    await tenant.investigate()
    await tenant.finished()
    kubeconfig, token = await viewer(tenant)

    async def read() -> str:
        status, output = await raw(tenant, kubeconfig, "timeline")
        return output if status == 0 else ""

    passed_on = json.loads(await until("kubectl reads the timeline", read))

    async def read_direct() -> dict[str, Any]:
        status, body = await direct(tenant, token, "timeline")
        return body if status == 200 else {}

    assert await until("the token reads the timeline", read_direct) == passed_on
    assert "The disk of node-1 is full." in json.dumps(passed_on)
    status, output = await raw(tenant, kubeconfig, "trace")
    assert status == 1 and "Forbidden" in output, output
    status, body = await direct(tenant, token, "trace")
    assert (status, body["error"]["reason"]) == (403, "Forbidden")


async def test_both_doors_are_open_again_after_the_operator_was_killed(tenant: Tenant) -> None:
    await tenant.simple(SCRIPT)
    await tenant.investigate()
    await tenant.finished()
    _, token = await viewer(tenant)

    async def both_open() -> bool:
        try:
            status, body = await direct(tenant, token, "timeline")
            async with tenant.client.without_identity() as nobody:
                at = f"/apis/record.tarsy.dev/v1alpha1{path(tenant, 'timeline')}"
                return status == 200 and await nobody.bearing(token).read(at) == body
        except (aiohttp.ClientError, ApiError):
            return False

    await until("both doors are open", both_open)
    operator = await tenant.machine.operator()
    operator.kill()
    await asyncio.wait_for(operator.wait(30.0), 60.0)
    assert not await both_open()
    await tenant.machine.operator()
    await until("both doors are open again", both_open)
