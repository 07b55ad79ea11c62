"""Tests the objects of a tool server's workload."""

from typing import Any
from uuid import UUID

import pytest

from tarsy.controllers.tool_workloads.objects import deployment, job, labels, network_policy, owned_by, secret, service
from tarsy.plan.workload import service_address, workload_name
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1.mcp_server import MAX_NAME, MCPServer
from tarsy.resources.v1alpha1.workload import Run
from unit.controllers.builders import UID, raw

RUN_ID = UUID(int=0xABCDEF << 104)
TOKEN = "the-token-of-the-pod"


def server(transport: str = "stdio", name: str = "tools", **run: Any) -> tuple[MCPServer, Run]:
    how = {"command": ["tool-server", "--quiet"]} if transport == "stdio" else {"port": 9000}
    spec = {"transport": {"type": transport}, "run": {"image": "tools:1", **how, **run}}
    found = parse_as(MCPServer, raw("MCPServer", name, spec))
    assert found.spec.run is not None
    return found, found.spec.run


def pod(transport: str = "stdio", **run: Any) -> dict[str, Any]:
    found, what = server(transport, **run)
    spec: dict[str, Any] = deployment(found, what, owned_by(found))["spec"]["template"]["spec"]
    return spec


def container(transport: str = "stdio", **run: Any) -> dict[str, Any]:
    (found,) = pod(transport, **run)["containers"]
    return dict(found)


def test_a_server_that_speaks_stdio_is_started_by_the_gateway() -> None:
    found = container(args=["-v"])
    assert found["command"] == ["tarsy", "mcp-gateway"]
    assert found["args"][-4:] == ["--", "tool-server", "--quiet", "-v"]
    assert found["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": "mcp"}
    assert found["ports"][0]["containerPort"] == 8080


def test_a_server_that_speaks_http_is_started_as_its_image_says() -> None:
    found = container("http")
    assert not {"command", "args", "env"} & set(found)
    assert found["ports"][0]["containerPort"] == 9000 and found["readinessProbe"]["tcpSocket"] == {"port": "mcp"}
    assert container("http", command=["serve"], args=["-v"])["command"] == ["serve"]


def test_secrets_are_named_and_the_gateway_is_told_names_of_variables_only() -> None:
    reference = {"secretKeyRef": {"name": "keys", "key": "api"}}
    env = [{"name": "KEY", "valueFrom": reference}, {"name": "MODE", "value": "a$(HOME)$b"}]
    found = container(env=env)
    assert found["env"] == [{"name": "KEY", "valueFrom": reference}, {"name": "MODE", "value": "a$$(HOME)$b"}]
    assert found["args"][-5:-2] == ["--env=KEY", "--env=MODE", "--"]
    assert "a$" not in str(found["args"])


def test_a_variable_of_the_kind_that_the_kubelet_would_unfold_stays_as_it_is_written_in_arguments_too() -> None:
    assert container(args=["$(MODE)"])["args"][-1] == "$$(MODE)"
    assert container("http", command=["$(A)"], args=["$(B)"])["command"] == ["$$(A)"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_pod_is_one_that_pod_security_restricted_admits(transport: str) -> None:
    found, (one,) = pod(transport), pod(transport)["containers"]
    assert (
        found["securityContext"] | {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        == found["securityContext"]
    )
    assert found["securityContext"]["runAsUser"] != 0
    assert one["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert [set(volume) - {"name"} for volume in found["volumes"]] == [{"emptyDir"}, {"secret"}]
    assert one["resources"]["limits"]["memory"] == "512Mi" and one["resources"]["requests"]["cpu"] == "20m"


def test_where_the_cluster_assigns_users_the_pods_name_none_and_are_otherwise_the_same() -> None:
    found, run = server()
    by = owned_by(found)
    fixed = [deployment(found, run, by), job(found, run, by, RUN_ID, 60)]
    assigned = [deployment(found, run, by, assigned=True), job(found, run, by, RUN_ID, 60, assigned=True)]
    for ours, theirs in zip(fixed, assigned, strict=True):
        security = ours["spec"]["template"]["spec"]["securityContext"]
        assert [security.pop(name) for name in ("runAsUser", "runAsGroup", "fsGroup")] == [65532] * 3
        assert ours == theirs and security["runAsNonRoot"] is True


def test_only_a_pod_with_a_service_account_of_its_own_has_a_token_of_kubernetes() -> None:
    assert pod()["automountServiceAccountToken"] is False and "serviceAccountName" not in pod()
    named = pod(serviceAccountName="reader")
    assert (named["automountServiceAccountToken"], named["serviceAccountName"]) == (True, "reader")
    assert "--env=KUBERNETES_SERVICE_HOST" in named["containers"][0]["args"]
    assert "--env=KUBERNETES_SERVICE_HOST" not in container()["args"]


def test_the_token_is_a_file_from_a_labelled_secret_and_nowhere_else() -> None:
    found, run = server()
    by = owned_by(found)
    made = secret(found, by, TOKEN)
    assert made["stringData"] == {"token": TOKEN} and made["metadata"]["labels"]["tarsy.dev/credentials"] == "true"
    rest = [deployment(found, run, by), service(found, by), network_policy(found, by, "tarsy-system")]
    assert TOKEN not in str(rest)
    template = rest[0]["spec"]["template"]["spec"]
    assert template["volumes"][1]["secret"]["secretName"] == made["metadata"]["name"] == "mcp-tools"
    assert "--token-file=/var/run/tarsy/workload/token" in template["containers"][0]["args"]


def test_everything_is_owned_by_the_server_and_found_by_the_service_and_the_policy() -> None:
    found, run = server()
    by = owned_by(found)
    made = [
        deployment(found, run, by),
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
    made = job(found, run, owned_by(found), RUN_ID, 90)
    assert made["spec"]["activeDeadlineSeconds"] == 90 and made["spec"]["ttlSecondsAfterFinished"] > 0
    marks = made["spec"]["template"]["metadata"]["labels"]
    assert marks["tarsy.dev/run"] == str(RUN_ID)
    other = labels("tools", UUID(int=5))
    selector = service(found, owned_by(found), RUN_ID)["spec"]["selector"]
    assert selector.items() <= marks.items() and not selector.items() <= other.items()
    assert made["spec"]["template"]["spec"]["volumes"][1]["secret"]["secretName"] == made["metadata"]["name"]
    assert job(found, run, owned_by(found), RUN_ID, -5)["spec"]["activeDeadlineSeconds"] == 1


def test_names_fit_whatever_the_server_is_called() -> None:
    assert workload_name("x" * MAX_NAME) != workload_name("x" * MAX_NAME, RUN_ID)
    assert len(workload_name("x" * MAX_NAME, RUN_ID)) <= 63
    assert service_address("mcp-tools", "team-a") == "http://mcp-tools.team-a.svc:8080"
