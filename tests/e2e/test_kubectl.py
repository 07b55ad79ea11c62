"""The product as people use it: through the real kubectl."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator

import pytest
import yaml

from e2e.machine import Machine
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from tarsy_dev.model.journal import RequestOutcome

SCRIPT = f"agents: {{agent: [{{text: {ANSWER}}}]}}"
GATED = f"agents: {{agent: [{{text: {ANSWER}, gate: answer}}]}}"


@pytest.fixture(autouse=True)
def kubectl_is_there(machine: Machine) -> None:
    if machine.kubectl is None:
        pytest.skip("there is no kubectl on this machine")


def alert(tenant: Tenant, name: str = "disk") -> str:
    spec = {"alertType": tenant.namespace, "data": "the disk is full", "severity": "Critical"}
    return yaml.safe_dump(
        {"apiVersion": "tarsy.dev/v1alpha1", "kind": "Alert", "metadata": {"name": name}, "spec": spec}
    )


async def run(tenant: Tenant, *arguments: str, stdin: str | None = None) -> str:
    status, output = await tenant.kubectl(*arguments, stdin=stdin)
    assert status == 0, output
    return output


@contextlib.asynccontextmanager
async def watching(tenant: Tenant, *arguments: str) -> AsyncIterator[AsyncIterator[str]]:
    """The lines that a kubectl prints while it runs, each within a minute; it is ended at the end."""
    process = await tenant.start_kubectl(*arguments)

    async def lines() -> AsyncIterator[str]:
        assert process.stdout is not None
        while True:
            async with asyncio.timeout(60):
                line = await process.stdout.readline()
            assert line, "kubectl ended"
            yield line.decode()

    try:
        yield lines()
    finally:
        process.kill()
        await process.wait()


async def applied(tenant: Tenant) -> str:
    """An alert, applied; the name of its investigation."""
    output = await run(tenant, "apply", "-f", "-", stdin=alert(tenant))
    assert "alert.tarsy.dev/disk created" in output
    await tenant.asked()
    (inv,) = await tenant.client.list("Investigation", tenant.namespace)
    return str(inv["metadata"]["name"])


async def test_applied_alert_is_waited_for_listed_and_described(tenant: Tenant) -> None:
    await tenant.simple(SCRIPT, alertTypes=[tenant.namespace])
    name = await applied(tenant)
    waited = await run(tenant, "wait", "--for=condition=Finished", f"inv/{name}", "--timeout=90s")
    assert "condition met" in waited
    await tenant.finished(name)

    lines = (await run(tenant, "get", "inv", name)).splitlines()
    assert re.split(r"\s{2,}", lines[0].strip()) == [
        "NAME", "ALERT TYPE", "SEVERITY", "CHAIN", "PHASE", "PROGRESS", "CONFIDENCE", "TOKENS", "COST",
        "AGE",
    ]  # fmt: skip
    cells = re.split(r"\s{2,}", lines[1].strip())
    assert cells[:7] == [name, tenant.namespace, "Critical", "chain", "Succeeded", "1/1", "Low"]
    assert int(cells[7]) > 0
    chains = (await run(tenant, "get", "tchain")).splitlines()
    assert chains[1].split()[3] == tenant.namespace, "the alert type, without brackets and quotes"
    wide = await run(tenant, "get", "inv", name, "-o", "wide")
    assert SUMMARY in wide
    await run(tenant, "wait", "--for=condition=Finished", "talert/disk", "--timeout=90s")
    both = await run(tenant, "get", "talert,inv")
    assert "alert.tarsy.dev/disk" in both
    assert f"investigation.tarsy.dev/{name}" in both
    assert re.search(rf"disk\s+{tenant.namespace}\s+Critical\s+Finished\s+Succeeded\s+{name}", both), both

    described = await run(tenant, "describe", "inv", name)
    for part in ("Conditions:", "Succeeded", "Events:", "Planned", SUMMARY):
        assert part in described, described


async def test_explain_tells_what_a_field_is_for(tenant: Tenant) -> None:
    assert "Concluded: stop now" in await run(tenant, "explain", "inv.spec.desiredState")
    output = await run(tenant, "explain", "inv.spec")
    assert "chainRef" in output
    assert "alertRef" in output


async def test_category_lists_all_kinds(tenant: Tenant) -> None:
    await tenant.simple(SCRIPT, alertTypes=[tenant.namespace])
    output = await run(tenant, "get", "tarsy", "-A")
    rows = [line for line in output.splitlines() if line.startswith(tenant.namespace)]
    kinds = {line.split()[1].split("/")[0] for line in rows}
    assert kinds == {"agent.tarsy.dev", "chain.tarsy.dev", "llmprovider.tarsy.dev", "mcpserver.tarsy.dev"}


async def test_watch_shows_the_way_of_an_investigation(tenant: Tenant) -> None:
    model = await tenant.simple(GATED)
    await tenant.investigate()
    await tenant.asked()
    await tenant.phase("Running")
    async with watching(tenant, "get", "inv", "run", "-w") as lines:
        assert "NAME" in await anext(lines)
        assert "Running" in await anext(lines)
        model.open_gate("answer")
        while "Succeeded" not in await anext(lines):
            pass


async def test_patch_of_the_desired_state_cancels(tenant: Tenant) -> None:
    await tenant.simple(GATED)
    await tenant.investigate()
    await tenant.asked()
    patch = json.dumps({"spec": {"desiredState": "Cancelled"}})
    await run(tenant, "patch", "inv", "run", "--type=merge", "-p", patch)
    await run(tenant, "wait", "--for=condition=Finished", "inv/run", "--timeout=90s")
    assert (await tenant.get())["status"]["phase"] == "Cancelled"


async def test_edit_of_the_desired_state_concludes(tenant: Tenant) -> None:
    model = await tenant.simple(GATED)
    await tenant.investigate()
    await tenant.asked()
    editor = "sed -i s/desiredState:.*/desiredState:\\ Concluded/"
    status, output = await tenant.kubectl("edit", "inv", "run", editor=editor)
    assert status == 0, output
    assert "edited" in output
    await tenant.phase("Concluding")
    model.open_gate("answer")
    assert condition(await tenant.finished(), "Succeeded") == "True"


async def test_delete_never_hangs_and_stops_the_run(tenant: Tenant) -> None:
    model = await tenant.simple(GATED, alertTypes=[tenant.namespace])
    name = await applied(tenant)
    for what in (f"inv/{name}", "talert/disk", "tchain/chain", "tmcp/tools", "llmp/model", "tagent/agent"):
        assert "deleted" in await run(tenant, "delete", what, "--timeout=90s")
    await model.journal.wait_for(lambda requests: requests[0].outcome is RequestOutcome.DISCONNECTED, 60)
    assert await tenant.client.list("Investigation", tenant.namespace) == []


@pytest.mark.newer_api
async def test_field_that_does_not_exist_is_refused(tenant: Tenant) -> None:
    text = alert(tenant).replace("  data:", "  dta:")
    status, output = await tenant.kubectl("apply", "-f", "-", stdin=text)
    assert status != 0
    assert "dta" in output
