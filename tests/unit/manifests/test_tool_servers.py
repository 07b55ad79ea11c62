"""Components that bring a tool server of another project: what they offer to agents, and who reaches them."""

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import yaml
from mcp.types import Tool

from tarsy.mcp.tool_catalog import offer
from tarsy.plan.model import ObjectRef
from tarsy.plan.parts import server_plan
from tarsy.plan.policy import ToolPolicy
from tarsy.record.integrity import Integrity
from tarsy.record.messages import Access
from tarsy.resources.v1alpha1 import MCPServer
from tarsy.resources.v1alpha1.common import McpSelection
from unit.manifests.shipped import MANIFESTS, installed, named, objects

FACTS: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "tool_servers.yaml").read_text("utf-8"))
OUTSIDE = {"github-tools", "gitlab-tools"}
"""Components whose texts are written by anyone outside the cluster."""
RUNNERS = {"tarsy-operator", "tarsy-worker"}
SERVERS = installed("MCPServer")


class Shipped(NamedTuple):
    server: dict[str, Any]
    pod: dict[str, Any]

    @property
    def container(self) -> dict[str, Any]:
        (container,) = self.pod["containers"]
        return dict(container)


def shipped(component: str) -> Shipped:
    found = {obj["kind"]: obj for obj in objects(f"components/{component}")}
    return Shipped(found["MCPServer"], found["Deployment"]["spec"]["template"]["spec"])


@pytest.mark.parametrize("component", FACTS)
def test_every_tool_that_a_component_lists_is_one_that_its_server_has_and_calls_read_only(component: str) -> None:
    listed = shipped(component).server["spec"]["tools"]["readOnly"]
    assert listed == sorted(set(listed))
    assert set(listed) <= set(FACTS[component]["annotated"])


@pytest.mark.parametrize("component", FACTS)
def test_the_image_is_of_the_version_whose_tools_were_listed(component: str) -> None:
    assert shipped(component).container["image"].rpartition(":")[2].removeprefix("v") == FACTS[component]["version"]


@pytest.mark.parametrize("component", FACTS)
def test_agents_get_the_listed_tools_and_none_that_the_server_has_beside(component: str) -> None:
    obj = shipped(component).server
    server = MCPServer.model_validate(obj)
    assert set(obj["spec"]) <= {field.alias or name for name, field in type(server.spec).model_fields.items()}
    ref = ObjectRef(kind="MCPServer", namespace="tarsy-library", name=obj["metadata"]["name"])
    plan = server_plan(server, ref, McpSelection(name=ref.name))
    tools = [
        Tool(name=name, input_schema={"type": "object"}) for name in (*FACTS[component]["annotated"], "delete_all")
    ]
    found = offer(plan, tools)
    reading = {name.rpartition(".")[2] for name, access in found.access.items() if access is Access.READ_ONLY}
    assert plan.policy is ToolPolicy.READ_ONLY and reading == set(obj["spec"]["tools"]["readOnly"])


@pytest.mark.parametrize("component", FACTS)
def test_no_result_of_a_server_of_another_project_counts_as_written_by_the_control_plane(component: str) -> None:
    server = MCPServer.model_validate(shipped(component).server)
    ref = ObjectRef(kind="MCPServer", namespace="tarsy-library", name=server.metadata.name)
    evidence = server_plan(server, ref, McpSelection(name=ref.name)).evidence
    assert evidence is not None and not evidence.trust_marks
    classes = {evidence.integrity_of(tool) for tool in FACTS[component]["annotated"]}
    assert classes == {Integrity.X if component in OUTSIDE else Integrity.A}
    assert set(evidence.state_tools) <= set(server.spec.tools.read_only)


@pytest.mark.parametrize("server", SERVERS, ids=named)
def test_every_shipped_server_declares_who_can_write_its_results(server: dict[str, Any]) -> None:
    evidence = server["spec"]["evidence"]
    assert evidence.get("trustMarks", False) is (server["metadata"]["name"] == "kubernetes")


@pytest.mark.parametrize("component", FACTS)
def test_a_run_of_another_namespace_is_bound_or_selected_by_a_label_that_it_cannot_give_itself(component: str) -> None:
    spec = shipped(component).server["spec"]
    if spec["reach"].get("namespaceArguments"):
        assert spec["reach"] == {"boundBy": "Argument", "namespaceArguments": ["namespace"]}
        return
    name = shipped(component).server["metadata"]["name"]
    selector = {"matchLabels": {f"library.tarsy.dev/{name}": "true"}}
    assert spec["reach"] == {"unboundNamespaces": {"from": "Selector", "selector": selector}}


@pytest.mark.parametrize("component", FACTS)
def test_a_component_takes_credentials_from_a_labelled_secret_that_its_kustomization_tells_how_to_create(
    component: str,
) -> None:
    found = shipped(component)
    text = (MANIFESTS / "components" / component / "kustomization.yaml").read_text("utf-8")
    used = [entry["valueFrom"]["secretKeyRef"] for entry in found.container.get("env", ()) if "valueFrom" in entry]
    sent = found.server["spec"]["transport"]["http"].get("bearerTokenSecretRef")
    for ref in [*used, *([sent] if sent else [])]:
        assert f"kubectl create secret generic {ref['name']} -n tarsy-library" in text
        assert f"--from-literal={ref['key']}=" in text
        assert f"kubectl label secret {ref['name']} -n tarsy-library tarsy.dev/credentials=true" in text


@pytest.mark.parametrize("server", SERVERS, ids=named)
def test_whoever_runs_investigations_reaches_the_server_through_the_policies_of_both_sides(
    server: dict[str, Any],
) -> None:
    url = urlsplit(server["spec"]["transport"]["http"]["url"])
    name, namespace, _ = (url.hostname or "").split(".")
    (service,) = (obj for obj in installed("Service") if obj["metadata"]["name"] == name)
    assert service["metadata"]["namespace"] == namespace == "tarsy-library"
    assert [port["port"] for port in service["spec"]["ports"]] == [url.port]
    for side, direction in (("tarsy-system", "egress"), ("tarsy-library", "ingress")):
        assert _opens(side, direction, name) >= RUNNERS, f"{direction} in {side}"


def _opens(namespace: str, direction: str, tools: str) -> set[str]:
    """Pods of TARSy whose connections to tools the policies of a namespace let through, in one direction."""
    found: set[str] = set()
    for policy in installed("NetworkPolicy"):
        if policy["metadata"]["namespace"] != namespace:
            continue
        for rule in policy["spec"].get(direction, ()):
            for peer in rule.get("to" if direction == "egress" else "from", ()):
                there = _names(peer.get("podSelector", {}))
                here = _names(policy["spec"]["podSelector"])
                pods, target = (here, there) if direction == "egress" else (there, here)
                if tools in target and {port["port"] for port in rule["ports"]} & {"mcp", 8080}:
                    found |= pods
    return found


def _names(selector: dict[str, Any]) -> set[str]:
    names = {value for key, value in selector.get("matchLabels", {}).items() if key == "app.kubernetes.io/name"}
    return names | {value for one in selector.get("matchExpressions", ()) for value in one["values"]}
