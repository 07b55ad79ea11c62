"""Hostile connections beside an alert: how long a notification takes alone, and beside a thousand of them.

All are of one address, the sender's own: behind a proxy they would be. Clock: before the sender connects, until it has
read the answer, which says that the Alert is in the Kubernetes API. Each notification comes by a connection of its own.
"""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from tests.bench.bed import Bed, Tenant, loop_script
from tests.bench.children import listening
from tests.bench.figures import Figure, Result, percentile, spread

import rights
from tarsy_dev.objects import put

AIM = "at most 2"
CLIENTS = Path(__file__).with_name("hostile_clients.py")
APART_SECONDS = 0.25
SETTLE_SECONDS = 10.0
ANSWER_SECONDS = 60.0


async def run(bed: Bed, quick: bool) -> Result:
    """Measures alone, then beside them."""
    hostile, count = (20, 5) if quick else (1_000, 120)
    # What is investigated is not what is measured: the operator takes alerts, and runs one at a time.
    async with bed.tenant("hostile", loop_script(1, tokens=5), "--places", "1", "--global-limit", "1") as tenant:
        storm = {"alerts": 1000, "seconds": 60}
        signed = {"hmac": {"secretRef": {"name": "none", "key": "none"}}}
        await tenant.put("AlertRoute", "signed", {"alertType": "never-run", "precedence": -1, "auth": signed})
        await tenant.put("AlertRoute", "all", {"alertType": "never-run", "storm": storm})
        await listening(urlsplit(bed.stack.http_url).port or 0)
        token = await _sender(tenant)
        address = f"{bed.stack.http_url}/intake/v1/json?namespace={tenant.name}"
        await _series(address, token, "warm-up", 5)
        alone = await _series(address, token, "alone", count)
        async with _attacking(bed.stack.http_url, tenant.name, hostile) as answers:
            beside = await _series(address, token, "beside", count)
    ratio = percentile(beside, 0.95) / percentile(alone, 0.95)
    how = (
        f"{count} notifications, {APART_SECONDS:g} s apart, by a ServiceAccount's token, each on a new connection; "
        f"{hostile} hostile clients of the same address: endless heads, bodies that do not come, packed bodies of 900 "
        "MB, bodies of 1 MiB with unknown tokens; they come again 5 s after they were cut off. Operator, clients, "
        "Postgres and API server share the machine."
    )
    return Result(
        how,
        [
            *spread("alone: notification answered", alone, "ms"),
            *spread(f"beside {hostile} hostile clients: notification answered", beside, "ms"),
            Figure("p95 beside / p95 alone", ratio, "times", AIM, detail=answers),
        ],
    )


async def _sender(tenant: Tenant) -> str:
    """The token of a ServiceAccount that may create alerts."""
    client = tenant.bed.stack.client
    await put(
        client,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sender", "namespace": tenant.name}},
    )
    rule = {"apiGroups": ["tarsy.dev"], "resources": ["alerts"], "verbs": ["create"]}
    bound = rights.binding("sender", tenant.name, "Role", "sender", rights.account("sender", tenant.name))
    await rights.put_rights(client, (rights.role("sender", tenant.name, rule), bound))
    return await client.create_token(tenant.name, "sender")


async def _series(address: str, token: str, prefix: str, count: int) -> list[float]:
    """Milliseconds of each."""
    took = []
    headers = {"Authorization": f"Bearer {token}"}
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    for number in range(count):
        began = time.perf_counter()
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
            session.post(address, json={"what": f"{prefix}-{number}"}) as answer,
        ):
            said = await answer.text()
        took.append((time.perf_counter() - began) * 1000)
        if answer.status != 202:
            raise RuntimeError(f"notification {prefix}-{number}: {answer.status} {said[:300]}")
        await asyncio.sleep(APART_SECONDS)
    return took


@contextlib.asynccontextmanager
async def _attacking(url: str, namespace: str, count: int) -> AsyncIterator[dict[str, int]]:
    """Hostile clients; yields what they were answered, filled at the end."""
    where, answers = urlsplit(url), dict[str, int]()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CLIENTS),
        str(where.hostname),
        str(where.port),
        namespace,
        str(count),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(ANSWER_SECONDS):
            await process.stdout.readline()
        await asyncio.sleep(SETTLE_SECONDS)
        yield answers
        async with asyncio.timeout(ANSWER_SECONDS):
            output, _ = await process.communicate(b"")
        answers.update(json.loads(output))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
