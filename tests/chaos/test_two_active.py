"""Two active controllers at once: what the Lease makes rare does no harm when it happens.

Each is given a Lease in a namespace of its own, so both believe for the whole time that they are the one.
"""

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from chaos.fleet import Fleet
from e2e.machine import LONG_LEASE
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until
from tarsy_dev.objects import put

pytestmark = pytest.mark.timeout(900)
SCRIPT = f"""
agents:
  agent:
    - text: I look.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: {ANSWER}
"""


async def test_two_controllers_active_at_once_do_everything_once(bare_tenant: Tenant, fleet: Fleet, full: bool) -> None:
    tenant, seconds = bare_tenant, 60.0 if full else 10.0
    await tenant.simple(SCRIPT, alertTypes=[tenant.namespace])
    for name in ("lease-a", "lease-b"):
        await put(tenant.client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        fleet.controller("--lease-namespace", name)
    fleet.worker(*LONG_LEASE)

    async def holders() -> list[str]:
        leases = [await tenant.client.find("Lease", name, "tarsy-controller") for name in ("lease-a", "lease-b")]
        return [lease["spec"]["holderIdentity"] for lease in leases if lease is not None]

    async def both() -> bool:
        return len(set(await holders())) == 2

    await until("both are active", both)
    began, alerts = time.monotonic(), []
    while time.monotonic() < began + seconds:
        name = f"alert-{len(alerts)}"
        await tenant.put("Alert", name, {"alertType": tenant.namespace, "data": "the disk is full"})
        alerts.append(name)
        if len(alerts) == 3:  # cancelled by both, once
            await tenant.investigate("unwanted", desiredState="Cancelled")
        await asyncio.sleep(0.5)
    assert await both()

    async def of_alerts() -> list[dict[str, Any]]:
        found = await tenant.client.list("Investigation", tenant.namespace)
        return [inv for inv in found if "alertRef" in inv["spec"]]

    async def each_has_one() -> bool:
        return len(await of_alerts()) >= len(alerts)

    await until("each alert has its investigation", each_has_one)
    runs = await of_alerts()
    exact = 0
    for run in runs:
        inv = await tenant.finished(run["metadata"]["name"])
        assert condition(inv, "Succeeded") == "True", inv["status"]
        exact += inv["status"]["finding"]["summary"] == SUMMARY
        assert inv["status"]["attempt"] == 1
    unwanted = await tenant.finished("unwanted")
    events = await tenant.client.list("Event", tenant.namespace)
    told = Counter(
        (event["involvedObject"]["name"], event["reason"])
        for event in events
        if event["involvedObject"]["kind"] == "Investigation"
    )
    twice = {what: times for what, times in told.items() if times > 1}
    print(
        f"\ntwo active for {seconds:g} s: alerts {len(alerts)}, investigations {len(runs)}, exact answers {exact}, "
        f"model calls {len(tenant.model.journal.requests)}, events told twice {len(twice)}"
    )
    assert (len(runs), exact, twice) == (len(alerts), len(alerts), {})
    assert len(tenant.model.journal.requests) == 2 * len(alerts)
    assert tenant.tool_calls("look") == len(alerts)
    assert unwanted["status"]["phase"] == "Cancelled"
