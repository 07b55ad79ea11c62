"""Tests the objects of a tool server's workload."""

from typing import Any
from uuid import UUID

import pytest

from tarsy.controllers.tool_workloads.objects import deployment, job, labels, network_policy, owned_by, secret, service
from tarsy.controllers.tool_workloads.pods import PodRules
from tarsy.plan.workload import service_address, workload_name
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1.mcp_server import MAX_NAME, MCPServer
from tarsy.resources.v1alpha1.workload import Run
from unit.controllers.builders import UID, raw

RUN_ID = UUID(int=0xABCDEF << 104)
TOKEN = "the-token-of-the-pod"
GATEWAY = "registry.example/tarsy@sha256:1"
RULES = PodRules(gateway_image=GATEWAY)


def server(transport: str = "stdio", name: str = "tools", **run: Any) -> tuple[MCPServer, Run]:
    how = {"command": ["tool-server", "--quiet"]} if transport == "stdio" else {"port": 9000}
    spec = {"transport": {"type": transport}, "run": {"image": "tools:1", **how, **run}}
    found = parse_as(MCPServer, raw("MCPServer", name, spec))
    assert found.spec.run is not None
    return found, found.spec.run


def pod(transport: str = "stdio", **run: Any) -> dict[str, Any]:
    found, what = server(transport, **run)
    spec: dict[str, Any] = deployment(found, what, owned_by(found), RULES)["spec"]["template"]["spec"]
    return spec


def container(transport: str = "stdio", **run: Any) -> dict[str, Any]:
    return dict(pod(transport, **run)["containers"][0])


def test_a_server_that_speaks_stdio_is_started_in_its_own_image_by_a_launcher_that_an_init_container_brings() -> None:
    found = pod(args=["-v"])
    (install,), (tool, gateway) = found["initContainers"], found["containers"]
    assert [one["image"] for one in (install, tool, gateway)] == [GATEWAY, "tools:1", GATEWAY]
    directory = {one["name"]: one["mountPath"] for one in tool["volumeMounts"]}["launcher"]
    assert install["command"] == ["tarsy-launcher", "--install", directory]
    assert tool["command"][0] == f"{directory}/tarsy-launcher"
    assert tool["command"][-3:] == ["--", "tool-server", "--quiet"] and tool["args"] == ["-v"]
    assert f"--launcher={tool['command'][2]}" in gateway["args"]


def test_the_gateway_is_alive_by_itself_and_ready_with_the_server() -> None:
    tool, gateway = pod()["containers"]
    assert not {"ports", "readinessProbe", "startupProbe", "livenessProbe"} & set(tool)
    assert gateway["ports"] == [{"name": "mcp", "containerPort": 8080, "protocol": "TCP"}]
    paths = [gateway[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness", "readiness")]
    assert paths == ["/healthz", "/healthz", "/readyz"]


def test_each_container_of_a_stdio_server_holds_only_what_it_needs() -> None:
    found, what = server(env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}}])
    spec = job(found, what, owned_by(found), RUN_ID, 60, RULES, "agent")["spec"]["template"]["spec"]
    tool, gateway = spec["containers"]
    volumes = {one["name"]: one for one in spec["volumes"]}

    def keys(container: dict[str, Any]) -> set[str]:
        mounted = [volumes[mount["name"]].get("secret", {}) for mount in container["volumeMounts"]]
        return {item["key"] for secret in mounted for item in secret.get("items", ())}

    assert keys(tool) == {"kubeconfig", "kubernetes-token"} and keys(gateway) == {"token"}
    assert [one["name"] for one in tool["env"]] == ["KEY", "KUBECONFIG"] and "env" not in gateway
    assert "env" not in spec["initContainers"][0] and keys(spec["initContainers"][0]) == set()
    writable = {one["name"] for one in tool["volumeMounts"] if not one.get("readOnly")}
    assert writable == {"tmp", "socket"} and all(one.get("readOnly") for one in gateway["volumeMounts"])


def test_a_server_that_speaks_http_is_started_as_its_image_says() -> None:
    found = container("http")
    assert not {"command", "args", "env"} & set(found)
    assert found["ports"][0]["containerPort"] == 9000 and found["readinessProbe"]["tcpSocket"] == {"port": "mcp"}
    assert container("http", command=["serve"], args=["-v"])["command"] == ["serve"]


def test_secrets_are_named_and_are_in_no_argument() -> None:
    reference = {"secretKeyRef": {"name": "keys", "key": "api"}}
    env = [{"name": "KEY", "valueFrom": reference}, {"name": "MODE", "value": "a$(HOME)$b"}]
    found = container(env=env)
    assert found["env"] == [{"name": "KEY", "valueFrom": reference}, {"name": "MODE", "value": "a$$(HOME)$b"}]
    assert "a$" not in str(found["command"])


def test_a_variable_of_the_kind_that_the_kubelet_would_unfold_stays_as_it_is_written_in_arguments_too() -> None:
    assert container(args=["$(MODE)"])["args"][-1] == "$$(MODE)"
    assert container("http", command=["$(A)"], args=["$(B)"])["command"] == ["$$(A)"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_pod_is_one_that_pod_security_restricted_admits(transport: str) -> None:
    found = pod(transport)
    assert (
        found["securityContext"] | {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        == found["securityContext"]
    )
    assert found["securityContext"]["runAsUser"] != 0
    for one in [*found.get("initContainers", ()), *found["containers"]]:
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert one["resources"]["limits"]["memory"] and one["resources"]["requests"]["cpu"]
    assert {kind for volume in found["volumes"] for kind in set(volume) - {"name"}} == {"emptyDir", "secret"}
    assert all(volume.get("emptyDir", {"sizeLimit": "0"})["sizeLimit"] for volume in found["volumes"])
    tool = found["containers"][0]
    assert tool["resources"]["limits"]["memory"] == "512Mi" and tool["resources"]["requests"]["cpu"] == "20m"


def test_where_the_cluster_assigns_users_the_pods_name_none_and_are_otherwise_the_same() -> None:
    found, run = server()
    by = owned_by(found)
    fixed = [deployment(found, run, by, RULES), job(found, run, by, RUN_ID, 60, RULES)]
    theirs_too = PodRules(assigned=True, gateway_image=GATEWAY)
    assigned = [deployment(found, run, by, theirs_too), job(found, run, by, RUN_ID, 60, theirs_too)]
    for ours, theirs in zip(fixed, assigned, strict=True):
        security = ours["spec"]["template"]["spec"]["securityContext"]
        assert [security.pop(name) for name in ("runAsUser", "runAsGroup", "fsGroup")] == [65532] * 3
        assert ours == theirs and security["runAsNonRoot"] is True


def test_only_a_pod_with_a_service_account_of_its_own_has_a_token_of_kubernetes() -> None:
    assert pod()["automountServiceAccountToken"] is False and "serviceAccountName" not in pod()
    named = pod(serviceAccountName="reader")
    assert (named["automountServiceAccountToken"], named["serviceAccountName"]) == (True, "reader")


def test_the_token_is_a_file_from_a_labelled_secret_and_nowhere_else() -> None:
    found, run = server()
    by = owned_by(found)
    made = secret(found, by, TOKEN)
    assert made["stringData"] == {"token": TOKEN} and made["metadata"]["labels"]["tarsy.dev/credentials"] == "true"
    rest = [deployment(found, run, by, RULES), service(found, by), network_policy(found, by, "tarsy-system")]
    assert TOKEN not in str(rest)
    template = rest[0]["spec"]["template"]["spec"]
    assert template["volumes"][-1]["secret"]["secretName"] == made["metadata"]["name"] == "mcp-tools"
    assert "--token-file=/var/run/tarsy/workload/token" in template["containers"][1]["args"]


def test_everything_is_owned_by_the_server_and_found_by_the_service_and_the_policy() -> None:
    found, run = server()
    by = owned_by(found)
    made = [
        deployment(found, run, by, RULES),
        service(found, by),
        network_policy(found, by, "tarsy-system"),
        secret(found, by, ""),
    ]
    for obj in made:
        assert obj["metadata"]["ownerReferences"][0]["uid"] == UID and obj["metadata"]["namespace"] == "team-a"
    marks = made[0]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        made[0]["spec"]["selector"]["matchLabels"],
        made[1]["spec"]["selector"],
        made[2]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= marks.items()


def test_pods_are_reached_by_operator_and_workers_only_and_reach_no_credentials_of_clouds() -> None:
    found, _ = server()
    spec = network_policy(found, owned_by(found), "tarsy-system")["spec"]
    (rule,) = spec["ingress"]
    (peer,) = rule["from"]
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "tarsy-system"}
    assert peer["podSelector"]["matchExpressions"][0]["values"] == ["tarsy-operator", "tarsy-worker"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert {port["port"] for rule in spec["egress"] for port in rule["ports"]} == {53, 443, 6443}


def test_a_job_is_of_one_run_and_ends_by_itself() -> None:
    found, run = server(scope="PerRun")
    made = job(found, run, owned_by(found), RUN_ID, 90, RULES)
    assert made["spec"]["activeDeadlineSeconds"] == 90 and made["spec"]["ttlSecondsAfterFinished"] > 0
    marks = made["spec"]["template"]["metadata"]["labels"]
    assert marks["tarsy.dev/run"] == str(RUN_ID)
    other = labels("tools", UUID(int=5))
    selector = service(found, owned_by(found), RUN_ID)["spec"]["selector"]
    assert selector.items() <= marks.items() and not selector.items() <= other.items()
    assert made["spec"]["template"]["spec"]["volumes"][-1]["secret"]["secretName"] == made["metadata"]["name"]
    assert job(found, run, owned_by(found), RUN_ID, -5, RULES)["spec"]["activeDeadlineSeconds"] == 1


def test_names_fit_whatever_the_server_is_called() -> None:
    assert workload_name("x" * MAX_NAME) != workload_name("x" * MAX_NAME, RUN_ID)
    assert len(workload_name("x" * MAX_NAME, RUN_ID)) <= 63
    assert service_address("mcp-tools", "team-a") == "http://mcp-tools.team-a.svc:8080"
