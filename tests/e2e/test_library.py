"""The library with its metrics component, on a machine: each chain is Ready, so each alert of the table starts a run.

The tool servers run as children of the operator instead of as Deployments; nothing else differs from the manifests.
"""

import asyncio
import copy
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from e2e.tenant import Tenant, condition
from e2e.waiting import until
from tarsy_dev.objects import put
from unit.manifests.shipped import ROOT, objects
from unit.manifests.test_library import METRICS_LABEL

pytestmark = pytest.mark.once("tests/integration/manifests applies the manifests to both APIs")
ALERT_SETS: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "tests/unit/manifests/alert_names.yaml").read_text("utf-8")
)


def _spec(obj: dict[str, Any]) -> dict[str, Any]:
    """The spec of a shipped object, with the metrics component applied."""
    spec: dict[str, Any] = copy.deepcopy(obj["spec"])
    if METRICS_LABEL in obj["metadata"].get("labels", {}):
        spec["mcpServers"].append({"name": "prometheus"})
    return spec


def _servers(tenant: Tenant) -> Iterator[tuple[dict[str, Any], list[str], dict[str, str]]]:
    """The shipped MCPServers, each with the arguments and the environment of its program."""
    (kubernetes,) = (obj for obj in objects("library") if obj["kind"] == "MCPServer")
    (prometheus,) = (obj for obj in objects("components/prometheus-tools") if obj["kind"] == "MCPServer")
    yield kubernetes, ["-m", "tarsy.kubernetes_tools"], {"KUBECONFIG": str(tenant.machine.api.kubeconfig)}
    yield prometheus, ["-m", "tarsy.prometheus_tools"], {"PROMETHEUS_URL": "http://127.0.0.1:9"}


async def test_every_alert_of_the_table_selects_a_chain_that_is_ready(tenant: Tenant) -> None:
    await tenant.use_model("agents: {}", name="default")
    for obj, arguments, environment in _servers(tenant):
        env = [{"name": name, "value": value} for name, value in environment.items()]
        stdio = {"command": sys.executable, "args": arguments, "env": env}
        spec = {**_spec(obj), "transport": {"type": "stdio", "stdio": stdio}}
        await tenant.put("MCPServer", obj["metadata"]["name"], spec)
    (account,) = (obj for obj in objects("components/tenant-agents") if obj["kind"] == "ServiceAccount")
    await put(tenant.client, {**account, "metadata": {**account["metadata"], "namespace": tenant.namespace}})
    shipped = [obj for obj in objects("library") if obj["kind"] in ("Agent", "Chain", "InvestigationDefaults")]
    for obj in shipped:
        await tenant.put(obj["kind"], obj["metadata"]["name"], _spec(obj))
    chains = {obj["metadata"]["name"]: obj["spec"].get("alertTypes", ()) for obj in shipped if obj["kind"] == "Chain"}

    async def not_ready() -> dict[str, Any]:
        found = await asyncio.gather(*(tenant.get(name, "Chain") for name in chains))
        return {
            obj["metadata"]["name"]: (obj.get("status") or {}).get("conditions")
            for obj in found
            if not obj.get("status") or condition(obj, "Ready") != "True"
        }

    async def all_ready() -> bool:
        return not await not_ready()

    try:
        await until("every chain of the library is Ready", all_ready, 60)
    except AssertionError:
        pytest.fail(f"not Ready: {await not_ready()}")
    names = {name for one in ALERT_SETS.values() for key in ("names", "info", "former") for name in one.get(key, ())}
    assert names <= {name for types in chains.values() for name in types} and len(names) > 60
