"""The shipped agents, chains and tools: valid, complete but for a model, and what the tools' account may read."""

import re
import shutil
from collections.abc import Sequence
from typing import Any

import pytest
from hack.chart.rendering import kustomized
from mcp.client import Client

from for_each import for_each
from tarsy.kubernetes_tools.cluster import ClusterReader
from tarsy.kubernetes_tools.kinds import GITOPS_KINDS, MEASURED_KINDS, READABLE_KINDS
from tarsy.kubernetes_tools.tools import tool_server
from tarsy.mcp.tool_catalog import offer
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import check_references
from tarsy.plan.model import ObjectRef
from tarsy.plan.parts import server_plan
from tarsy.plan.policy import ToolPolicy
from tarsy.prometheus_tools.api import PrometheusReader
from tarsy.prometheus_tools.tools import prometheus_server as prometheus_tools
from tarsy.record.messages import Access
from tarsy.resources.meta import API_VERSION, AnyResource
from tarsy.resources.v1alpha1 import KINDS, Agent, Chain, MCPServer
from tarsy.resources.v1alpha1.common import McpSelection
from unit.manifests.shipped import MANIFESTS, documents, named, objects

TOOL_KINDS = (*READABLE_KINDS, *MEASURED_KINDS)
LIBRARY = [obj for obj in objects("library") if obj["apiVersion"] == API_VERSION]
MODELS = ("llmprovider-openai", "llmprovider-local")
METRICS_LABEL = "library.tarsy.dev/metrics"


def _read(found: Sequence[dict[str, Any]]) -> list[AnyResource]:
    return [KINDS[obj["kind"]].model_validate(obj) for obj in found]


def _chains() -> list[Chain]:
    return [obj for obj in _read(LIBRARY) if isinstance(obj, Chain)]


def _sample(name: str) -> list[dict[str, Any]]:
    return documents(MANIFESTS / "samples" / "fill-in" / f"{name}.yaml")


@for_each("obj", LIBRARY, ids=named)
def test_an_object_is_valid_and_has_no_unknown_field(obj: dict[str, Any]) -> None:
    spec = KINDS[obj["kind"]].model_validate(obj).spec
    assert set(obj["spec"]) <= {field.alias or name for name, field in type(spec).model_fields.items()}


@pytest.mark.parametrize("model", MODELS)
def test_the_library_lacks_nothing_but_a_model(model: str) -> None:
    found = _read(LIBRARY)
    without = [error for obj in found for error in check_references(obj, ResourceCatalog(found))]
    assert {error.field for error in without} == {"spec.llmProvider"}
    found += _read([obj for obj in _sample(model) if obj["apiVersion"] == API_VERSION])
    assert [error for obj in found for error in check_references(obj, ResourceCatalog(found))] == []


def test_a_key_in_a_sample_is_a_placeholder_in_a_labelled_secret() -> None:
    (secret,) = (obj for obj in _sample("llmprovider-openai") if obj["kind"] == "Secret")
    assert secret["metadata"]["labels"] == {"tarsy.dev/credentials": "true"}
    assert set(secret["stringData"].values()) == {"CHANGE-ME"}


def test_the_chain_of_workloads_begins_with_evidence_and_has_agents_side_by_side_after_a_single_one() -> None:
    (chain,) = (obj for obj in _chains() if obj.metadata.name == "kubernetes")
    assert [(stage.kind, len(stage.agents)) for stage in chain.spec.stages] == [
        ("Changes", 0),
        (None, 1),
        (None, 2),
    ]
    assert "KubePodCrashLooping" in chain.spec.alert_types


@pytest.mark.parametrize("name", [chain["metadata"]["name"] for chain in LIBRARY if chain["kind"] == "Chain"])
def test_everybody_may_use_every_chain_and_server(name: str) -> None:
    (role,) = (obj for obj in objects("library") if obj["kind"] == "Role" and "user" in obj["metadata"]["name"])
    may = {(kind, one) for rule in role["rules"] for kind in rule["resources"] for one in rule["resourceNames"]}
    shipped = {(KINDS[obj["kind"]].PLURAL, obj["metadata"]["name"]) for obj in LIBRARY}
    assert ("chains", name) in may
    assert may <= shipped


def test_the_instructions_name_only_tools_that_the_servers_have() -> None:
    offered = {tool for obj in _read(LIBRARY) if isinstance(obj, MCPServer) for tool in obj.spec.tools.read_only}
    texts = [obj.spec.instructions or "" for obj in _read(LIBRARY) if isinstance(obj, Agent)]
    texts += [chain.spec.runbook.inline or "" for chain in _chains() if chain.spec.runbook]
    named_tools = {word for text in texts for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text)}
    assert named_tools <= offered


def test_agents_that_get_metrics_have_a_list_of_servers_to_add_to() -> None:
    labelled = [obj for obj in LIBRARY if METRICS_LABEL in obj["metadata"]["labels"]]
    assert len(labelled) >= 10
    assert all(obj["kind"] == "Agent" and obj["spec"]["mcpServers"] for obj in labelled)


def test_the_component_gives_metrics_to_the_labelled_agents_and_to_no_other() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl renders it")
    rendered = kustomized(("library",), ("components/library-metrics",))
    agents = [obj for obj in rendered.values() if obj["kind"] == "Agent"]
    for agent in agents:
        servers = [one["name"] for one in agent["spec"].get("mcpServers", ())]
        assert ("prometheus" in servers) is (METRICS_LABEL in agent["metadata"]["labels"]), agent["metadata"]["name"]
        assert "kubernetes" in servers or not servers


def test_the_tools_are_where_the_server_says() -> None:
    (server,) = (obj for obj in _read(LIBRARY) if isinstance(obj, MCPServer))
    (service,) = (obj for obj in objects("library") if obj["kind"] == "Service")
    meta, (port,) = service["metadata"], service["spec"]["ports"]
    assert server.spec.transport.http is not None
    assert server.spec.transport.http.url == f"http://{meta['name']}.{meta['namespace']}.svc:{port['port']}/mcp"


async def test_the_server_offers_agents_all_of_the_tools_that_there_are() -> None:
    (server,) = (obj for obj in _read(LIBRARY) if isinstance(obj, MCPServer))
    plan = server_plan(server, ObjectRef(kind="MCPServer", namespace="l", name="kubernetes"), McpSelection(name="k"))
    async with Client(tool_server(ClusterReader({}))) as client:
        listed = (await client.list_tools()).tools
    found = offer(plan, listed)
    assert len(found.definitions) == len(listed) == 11 and plan.policy is ToolPolicy.READ_ONLY
    assert set(found.access.values()) == {Access.READ_ONLY}
    assert found.access == offer(plan.model_copy(update={"read_only": (), "trust_annotations": True}), listed).access


def test_the_tools_may_read_every_kind_they_offer_and_nothing_else() -> None:
    (role,) = (obj for obj in objects("library") if obj["kind"] == "ClusterRole")
    may = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    offered = {(kind.api.split("/")[1] if kind.api.startswith("apis/") else "", kind.plural) for kind in TOOL_KINDS}
    wanted = {(group, plural, verb) for group, plural in offered for verb in ("get", "list")}
    assert may == wanted | {("", "pods/log", "get")}


async def test_the_prometheus_component_offers_all_tools_of_its_server() -> None:
    (obj,) = (obj for obj in objects("components/prometheus-tools") if obj["kind"] == "MCPServer")
    server = MCPServer.model_validate(obj)
    assert set(obj["spec"]) <= {field.alias or name for name, field in type(server.spec).model_fields.items()}
    plan = server_plan(server, ObjectRef(kind="MCPServer", namespace="l", name="prometheus"), McpSelection(name="p"))
    async with Client(prometheus_tools(PrometheusReader({}))) as client:
        listed = (await client.list_tools()).tools
    found = offer(plan, listed)
    assert len(found.definitions) == len(listed) == 7
    assert set(found.access.values()) == {Access.READ_ONLY}


def test_the_gitops_component_lets_the_tools_list_what_they_ask_for_and_nothing_else() -> None:
    (role,) = (obj for obj in objects("components/gitops-tools") if obj["kind"] == "ClusterRole")
    may = {
        (group, r, v)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for r in rule["resources"]
        for v in rule["verbs"]
    }
    assert may == {(kind.api.split("/")[1], kind.plural, "list") for kind in GITOPS_KINDS}
