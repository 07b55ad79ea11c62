"""Checks rules that hold for every shipped object."""

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from for_each import for_each
from tarsy.app.durations import seconds_or_forever
from tarsy.app.settings.file import read_configuration
from tarsy.app.settings.processes import OperatorSettings, WorkerProcessSettings
from tarsy.evidence.history.kinds import RECORDED_KINDS
from tarsy.evidence.reading import KINDS as KINDS_READ
from tarsy.resources.v1alpha1 import KINDS
from unit.manifests.shipped import (
    CLUSTER_WIDE,
    INSTALLED,
    MANIFESTS,
    ROOT,
    configuration,
    documents,
    installed,
    named,
    objects,
)

WORKLOADS = installed("Deployment", "StatefulSet")
ROLES = installed("Role", "ClusterRole")


@for_each("folder", INSTALLED)
def test_a_folder_lists_exactly_its_files(folder: str) -> None:
    (kustomization,) = documents(MANIFESTS / folder / "kustomization.yaml")
    files = {path.name for path in (MANIFESTS / folder).glob("*.yaml")} - {"kustomization.yaml"}
    assert {name for name in kustomization["resources"] if name.endswith(".yaml")} == files


def test_the_operator_is_told_how_long_records_are_kept() -> None:
    retention = configuration()["controller"]["retention"]
    assert (seconds_or_forever(retention) or 0) >= 7 * 86_400, "not shorter than the objects' own time"


@pytest.mark.parametrize("process", [OperatorSettings, WorkerProcessSettings])
def test_the_processes_accept_the_configuration_that_is_shipped(process: type[BaseModel], tmp_path: Path) -> None:
    (config,) = installed("ConfigMap")
    (tmp_path / "config.yaml").write_text(config["data"]["config.yaml"])
    assert read_configuration(tmp_path / "config.yaml", process)["kubernetes"]["libraryNamespace"] == "tarsy-library"


@pytest.mark.parametrize("name", ["tarsy-operator", "tarsy-worker"])
def test_a_deployment_names_the_configuration_that_it_mounts(name: str) -> None:
    (workload,) = (obj for obj in WORKLOADS if obj["metadata"]["name"] == name)
    pod = workload["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (volume,) = (one for one in pod["volumes"] if one["name"] == "config")
    (mount,) = (one for one in container["volumeMounts"] if one["name"] == "config")
    (config,) = installed("ConfigMap")
    assert volume["configMap"] == {"name": config["metadata"]["name"]}
    assert [f"--config={mount['mountPath']}/{key}" for key in config["data"]] == [container["args"][1]]


def test_the_library_is_plain_files_that_need_no_kustomize() -> None:
    (kustomization,) = documents(MANIFESTS / "library" / "kustomization.yaml")
    assert set(kustomization) == {"apiVersion", "kind", "resources"}


def test_every_object_carries_its_namespace_except_what_a_tenant_places() -> None:
    without = [obj for obj in installed() if "namespace" not in obj["metadata"] and obj["kind"] not in CLUSTER_WIDE]
    parts = ("", "-agents", "-evidence", "-history", "-remediation", "-workloads")
    tenants = [f"components/tenant{part}" for part in parts]
    assert without == [obj for folder in tenants for obj in objects(folder)]


def test_no_secret_is_shipped() -> None:
    assert installed("Secret") == []


@for_each("role", ROLES, ids=named)
def test_a_role_has_no_wildcard_and_names_what_it_may(role: dict[str, Any]) -> None:
    for rule in role["rules"]:
        assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}
        assert all("*" not in value for values in rule.values() for value in values)


def test_only_a_role_that_is_bound_in_single_namespaces_reads_secrets() -> None:
    found = [(role["metadata"]["name"], rule) for role in ROLES for rule in role["rules"]]
    reading = {name for name, rule in found if "secrets" in rule["resources"] and "get" in rule["verbs"]}
    assert reading == {"tarsy-secret-reader"}
    assert reading.isdisjoint(binding["roleRef"]["name"] for binding in installed("ClusterRoleBinding"))
    (role,) = (role for role in ROLES if role["metadata"]["name"] == "tarsy-secret-reader")
    assert [rule["verbs"] for rule in role["rules"]] == [["get"]]


def test_the_history_reader_may_list_and_watch_what_is_recorded_and_no_more() -> None:
    (role,) = (role for role in ROLES if role["metadata"]["name"] == "tarsy-history-reader")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}
    found = {(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
    wanted = {
        (kind.group.split("/")[2] if kind.group.startswith("/apis/") else "", kind.plural) for kind in RECORDED_KINDS
    }
    assert found == wanted
    (binding,) = (
        b for b in installed("RoleBinding", "ClusterRoleBinding") if b["roleRef"]["name"] == role["metadata"]["name"]
    )
    assert binding["kind"] == "RoleBinding"
    assert [subject["name"] for subject in binding["subjects"]] == ["tarsy-operator"]


def test_no_role_lets_its_holder_become_another() -> None:
    verbs = {verb for role in ROLES for rule in role["rules"] for verb in rule["verbs"]}
    assert verbs.isdisjoint({"impersonate", "bind", "escalate", "deletecollection"})


def test_each_rule_says_why() -> None:
    for path in MANIFESTS.glob("*/*.yaml"):
        lines = path.read_text("utf-8").splitlines()
        for before, line in itertools.pairwise(lines):
            if line.startswith("  - apiGroups:"):
                assert before.startswith("  # "), f"{path.name}: {line}"


def test_the_operator_watches_every_kind_and_writes_every_status() -> None:
    (role,) = (role for role in ROLES if role["kind"] == "ClusterRole" and role["metadata"]["name"] == "tarsy-operator")
    may = {(name, verb) for rule in role["rules"] for name in rule["resources"] for verb in rule["verbs"]}
    for kind in KINDS.values():
        assert {(kind.PLURAL, "list"), (kind.PLURAL, "watch"), (f"{kind.PLURAL}/status", "patch")} <= may


@pytest.mark.parametrize("workload", WORKLOADS, ids=named)
def test_a_pod_is_restricted(workload: dict[str, Any]) -> None:
    pod = workload["spec"]["template"]["spec"]
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] > 0
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert isinstance(pod["automountServiceAccountToken"], bool)
    for container in pod["containers"]:
        own = container["securityContext"]
        assert own == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"requests", "limits"} <= set(container["resources"])
        assert "readinessProbe" in container


@pytest.mark.parametrize("workload", WORKLOADS, ids=named)
def test_a_selector_finds_its_pods(workload: dict[str, Any]) -> None:
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert workload["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_the_image_is_that_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    pods = [obj["spec"]["template"]["spec"] for obj in WORKLOADS]
    images = {c["image"] for pod in pods for c in pod["containers"]}
    assert {image for image in images if image.startswith("tarsy-operator")} == {f"tarsy-operator:{version}"}
    assert not [image for image in images if not re.fullmatch(r"[\w./-]+:v?\d[\w.-]*", image)], "one version each"


@pytest.mark.parametrize("name", ["tarsy-operator", "tarsy-worker"])
def test_the_program_understands_the_arguments_of_its_deployment(name: str) -> None:
    from typer.main import get_command

    from tarsy.cli.main import app

    (workload,) = (obj for obj in WORKLOADS if obj["metadata"]["name"] == name)
    command, *arguments = workload["spec"]["template"]["spec"]["containers"][0]["args"]
    found = get_command(app).commands[command]  # type: ignore[attr-defined]
    known = {option for parameter in found.params for option in parameter.opts}
    assert {re.sub("=.*", "", argument) for argument in arguments} <= known


@pytest.mark.parametrize(("name", "pause"), [("tarsy-operator", 10), ("tarsy-worker", 0)])
def test_a_pod_is_given_time_for_its_pause_for_its_runs_to_reach_a_boundary_and_to_close(name: str, pause: int) -> None:
    (workload,) = (obj for obj in WORKLOADS if obj["metadata"]["name"] == name)
    pod = workload["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (drain,) = (arg for arg in container["args"] if arg.startswith("--drain-seconds="))
    assert pod["terminationGracePeriodSeconds"] == pause + int(drain.partition("=")[2]) + 15


def test_whoever_is_called_by_the_api_server_serves_on_until_its_endpoint_is_gone_and_others_end_at_once() -> None:
    paused = {}
    for workload in WORKLOADS:
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        if "lifecycle" in container:
            paused[workload["metadata"]["name"]] = container["lifecycle"]["preStop"]["exec"]["command"]
    called = {obj["spec"]["selector"]["app.kubernetes.io/name"] for obj in installed("Service")}
    assert paused == {"tarsy-operator": ["sleep", "10"]}
    assert set(paused) <= called and "tarsy-worker" not in called


def test_the_image_says_who_runs_it_because_its_user_has_no_name() -> None:
    """Else kopf watches nothing: `getpwuid(): uid not found: 65532`, seen in a pod."""
    assert re.search(r"^ENV (?:.*\\\n)*? *LOGNAME=\w+", (ROOT / "Dockerfile").read_text("utf-8"), re.M)


def test_where_workers_have_a_deployment_of_their_own_the_operator_runs_nothing() -> None:
    (component,) = documents(MANIFESTS / "components" / "workers" / "kustomization.yaml")
    (patch,) = component["patches"]
    assert patch["target"] == {"kind": "Deployment", "name": "tarsy-operator"}
    (change,) = yaml.safe_load(patch["patch"])
    assert change == {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--places=0"}


def test_whoever_lets_the_operator_read_secrets_lets_the_workers_too() -> None:
    bindings = [obj for obj in installed("RoleBinding") if obj["roleRef"]["name"] == "tarsy-secret-reader"]
    assert len(bindings) == 2
    for binding in bindings:
        assert [subject["name"] for subject in binding["subjects"]] == ["tarsy-operator", "tarsy-worker"]


def test_the_roles_for_evidence_list_the_kinds_that_it_is_computed_from_and_nothing_else() -> None:
    for name, namespaced in (("tarsy-evidence-reader", True), ("tarsy-evidence-cluster", False)):
        (role,) = (role for role in ROLES if role["metadata"]["name"] == name)
        given = {
            (group, resource, verb)
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        read = {(kind.api_group, kind.plural, "list") for kind in KINDS_READ if kind.namespaced is namespaced}
        assert given == read, name
    bound = {one["roleRef"]["name"] for one in installed("ClusterRoleBinding")}
    assert bound.isdisjoint({"tarsy-evidence-reader", "tarsy-evidence-cluster"})
