"""Tool servers in pods: a stdio server of the library acts as an account of the investigation's namespace."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.conftest import LIBRARY, SYSTEM, Cluster, Complaint, wait_until
from cluster.test_pods import condition
from tarsy.resources.meta import API_VERSION
from tarsy_dev.model import ScriptedModel

pytestmark = pytest.mark.timeout(900)
COMPONENTS = Path(__file__).parents[2] / "manifests" / "components"
ACCOUNT = "tarsy-agent"
IMAGE = "tarsy-operator:cluster"
"""The image that TARSy runs from: it holds the gateway and a tool server."""


def component(name: str, namespace: str) -> list[dict[str, Any]]:
    """What a component of `manifests` puts into a namespace."""
    paths = sorted((COMPONENTS / name).glob("*.yaml"))
    found = [doc for path in paths for doc in yaml.safe_load_all(path.read_text()) if doc["kind"] != "Component"]
    for doc in found:
        doc["metadata"]["namespace"] = namespace
    return found


def tarsy(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def granted(namespace: str) -> list[dict[str, Any]]:
    """The account may list the pods of its own namespace, and nothing else."""
    group = "rbac.authorization.k8s.io"
    where = {"name": "agent-reads-pods", "namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    return [
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": where, "rules": [rule]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": where,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": where["name"]},
            "subjects": [subject],
        },
    ]


async def test_a_tool_server_of_the_library_sees_what_the_account_of_the_run_may_see_and_is_gone_after_it(
    cluster: Cluster, namespace: str, model: ScriptedModel
) -> None:
    run = {
        "image": IMAGE,
        "command": ["python", "-m", "tarsy.kubernetes_tools"],
        "scope": "PerRun",
        "kubeconfig": True,
    }
    server = {"transport": {"type": "stdio"}, "run": run, "trustAnnotations": True}
    agent = {"serviceAccountName": ACCOUNT, "mcpServers": [{"name": "as-agent"}]}
    stage = {"name": "look", "agents": [{"name": "tenant-agent"}]}
    chain = {
        "alertTypes": ["TenantAlert"],
        "llmProvider": "default",
        "stages": [stage],
        "allowedNamespaces": {"from": "All"},
    }
    await asyncio.to_thread(
        cluster.apply,
        *component("tenant-workloads", LIBRARY),
        *component("tenant-agents", namespace),
        *granted(namespace),
        tarsy("MCPServer", "as-agent", LIBRARY, server),
        tarsy("Agent", "tenant-agent", LIBRARY, agent),
        tarsy("Chain", "tenant", LIBRARY, chain),
    )
    await wait_until("the chain is ready", lambda: not_ready(cluster))
    alert = tarsy("Alert", "tenant", namespace, {"alertType": "TenantAlert", "data": "look around"})
    await asyncio.to_thread(cluster.apply, alert)

    def unfinished() -> Complaint:
        found = cluster.json("get", "inv", "-n", namespace)["items"]
        return None if [condition(one, "Finished") for one in found] == ["True"] else f"{found}"

    await wait_until("the investigation is finished", unfinished)
    (investigation,) = cluster.json("get", "inv", "-n", namespace)["items"]
    name = investigation["metadata"]["name"]
    path = f"/apis/record.tarsy.dev/v1alpha1/namespaces/{namespace}/investigations/{name}/timeline"
    timeline = cluster.kubectl("get", "--raw", path).stdout
    assert condition(investigation, "Succeeded") == "True", timeline
    results = {json.dumps(item) for item in json.loads(timeline)["items"] if "list_resources" in json.dumps(item)}
    assert any("forbidden" in one.lower() and SYSTEM in one for one in results), timeline
    assert any("no objects of kind Pod" in one for one in results), timeline

    def left() -> Complaint:
        label = f"tarsy.dev/run={investigation['metadata']['uid']}"
        found = cluster.json("get", "jobs,services,secrets", "-n", LIBRARY, "-l", label)["items"]
        return [f"{one['kind']} {one['metadata']['name']}" for one in found] or None

    await wait_until("nothing is left of the run's tool server", left)


def not_ready(cluster: Cluster) -> Complaint:
    chain = cluster.json("get", "chains.tarsy.dev", "tenant", "-n", LIBRARY)
    return None if condition(chain, "Ready") == "True" else f"{chain.get('status')}"
