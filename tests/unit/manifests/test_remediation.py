"""The chain that proposes a change: what it may propose, who decides, and as whom it acts."""

from typing import Any

import pytest
from mcp.types import Tool

from tarsy.mcp.tool_catalog import offer
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import check_references
from tarsy.plan.model import ObjectRef
from tarsy.plan.parts import server_plan
from tarsy.plan.policy import ToolPolicy
from tarsy.record.messages import Access
from tarsy.resources.v1alpha1 import KINDS, Agent, Chain, MCPServer
from tarsy.resources.v1alpha1.common import McpSelection
from tarsy.runtime.approving.declared import TargetsUnknown, declared_targets
from tarsy_dev.kubernetes_mcp import VERSION
from unit.manifests.shipped import named, objects

COMPONENT = objects("components/remediation")
TENANT = objects("components/tenant-remediation")
CHANGES = {"resources_create_or_update", "resources_scale"}
BEYOND = ("pods_delete", "pods_exec", "pods_run", "resources_delete")
"""Tools of the server that delete, or run what a model writes."""
CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: shop}, data: {KEY: value}}"


def _of(kind: str) -> Any:
    (found,) = (KINDS[obj["kind"]].model_validate(obj) for obj in COMPONENT if obj["kind"] == kind)
    return found


@pytest.mark.parametrize("obj", COMPONENT, ids=named)
def test_an_object_is_valid_and_has_no_unknown_field(obj: dict[str, Any]) -> None:
    spec = KINDS[obj["kind"]].model_validate(obj).spec
    assert set(obj["spec"]) <= {field.alias or name for name, field in type(spec).model_fields.items()}


def test_it_lacks_nothing_but_a_model_beside_the_library() -> None:
    library = [obj for obj in objects("library") if obj["kind"] in KINDS]
    found = [KINDS[obj["kind"]].model_validate(obj) for obj in (*library, *COMPONENT)]
    errors = {error.field for obj in found for error in check_references(obj, ResourceCatalog(found))}
    assert errors == {"spec.llmProvider"}


def test_last_stage_of_the_chain_and_no_other_may_propose_a_change() -> None:
    chain: Chain = _of("Chain")
    assert chain.spec.stages[0].kind == "Changes", "what it proposes rests on the control plane"
    (agent,) = chain.spec.stages[-1].agents
    assert agent.name == _of("Agent").metadata.name and chain.spec.alert_types == ()
    shipped = {obj["metadata"]["name"]: obj for obj in objects("library") if obj["kind"] == "Agent"}
    for stage in chain.spec.stages[:-1]:
        assert all("toolPolicy" not in shipped[one.name]["spec"] for one in stage.agents)


def test_every_changing_call_needs_people_and_names_its_object() -> None:
    server: MCPServer = _of("MCPServer")
    ref = ObjectRef(kind="MCPServer", namespace="tarsy-library", name=server.metadata.name)
    plan = server_plan(server, ref, McpSelection(name=ref.name))
    names = [*(server.spec.tools.allow or ()), *BEYOND]
    tools = [Tool(name=name, input_schema={"type": "object"}) for name in names]
    found = offer(plan, tools)
    assert plan.policy is ToolPolicy.APPROVE and _of("Agent").spec.tool_policy == "Approve"
    offered = {tool.name.rpartition(".")[2] for tool in found.definitions}
    assert offered == set(server.spec.tools.allow or ())
    changing = {name.rpartition(".")[2] for name, access in found.access.items() if access is not Access.READ_ONLY}
    assert changing & offered == CHANGES <= {name.rpartition(".")[2] for name in found.gated}
    scale = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "checkout", "scale": 2}
    (target,) = declared_targets(plan.approval, "resources_scale", scale)
    assert (str(target.name.name), target.change) == ("checkout", {"spec": {"replicas": 2}})
    (target,) = declared_targets(plan.approval, "resources_create_or_update", {"resource": CONFIG_MAP})
    assert (target.name.kind, target.name.namespace) == ("ConfigMap", "shop")
    for arguments in ({"resource": "kind: List"}, {"resource": ""}, {}):
        with pytest.raises(TargetsUnknown):
            declared_targets(plan.approval, "resources_create_or_update", arguments)
    assert plan.approval is not None and plan.approval.undetermined == "Refuse" and plan.approval.git_ops == "Refuse"


def test_it_acts_as_an_account_of_the_tenant_whose_rights_end_at_its_namespace() -> None:
    agent: Agent = _of("Agent")
    server: MCPServer = _of("MCPServer")
    assert server.spec.run is not None and server.spec.run.kubeconfig and server.spec.run.scope == "PerRun"
    accounts = {obj["metadata"]["name"] for obj in TENANT if obj["kind"] == "ServiceAccount"}
    assert {agent.spec.service_account_name} == accounts
    assert {obj["kind"] for obj in TENANT} == {"ServiceAccount", "Role", "RoleBinding"}
    verbs = {verb for obj in TENANT if obj["kind"] == "Role" for rule in obj["rules"] for verb in rule["verbs"]}
    assert "delete" not in verbs
    read = {name for obj in TENANT if obj["kind"] == "Role" for rule in obj["rules"] for name in rule["resources"]}
    assert "secrets" not in read


def test_it_runs_the_publishers_image_of_the_version_whose_tools_are_listed() -> None:
    server: MCPServer = _of("MCPServer")
    assert server.spec.run is not None
    assert server.spec.run.image == f"quay.io/containers/kubernetes_mcp_server:v{VERSION}"
    assert (server.spec.run.command or ())[0] == "/app/kubernetes-mcp-server", "where that image has it"


def test_instructions_name_only_tools_that_the_server_offers() -> None:
    server: MCPServer = _of("MCPServer")
    words = {word.strip(".,:()") for word in (server.spec.instructions or "").split()}
    assert {word for word in words if word.startswith(("resources_", "pods_"))} <= set(server.spec.tools.allow or ())
