"""Checks availability settings of the manifests: probes, disruption budgets, topology spread, number of workers."""

from typing import Any

import pytest
import yaml
from typer.main import get_command

from tarsy.cli.main import app
from unit.manifests.shipped import MANIFESTS, documents, installed, named

HA = MANIFESTS / "overlays" / "ha"
OURS = ("tarsy-operator", "tarsy-worker")
WORKLOADS = {obj["metadata"]["name"]: obj for obj in installed("Deployment", "StatefulSet")}
PATCHES = {
    patch["metadata"]["name"]: patch for name in ("operator", "worker") for patch in documents(HA / f"{name}.yaml")
}
VOLUMES = {"configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
"""Kinds of volumes that Pod Security `restricted` allows and that are used."""


def pod(name: str) -> dict[str, Any]:
    found: dict[str, Any] = WORKLOADS[name]["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("namespace", installed("Namespace"), ids=named)
def test_a_namespace_lets_only_restricted_pods_in(namespace: dict[str, Any]) -> None:
    labels = namespace["metadata"]["labels"]
    levels = {mode: labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "audit", "warn")}
    assert set(levels.values()) == {"restricted"}


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_has_nothing_of_its_node(name: str) -> None:
    spec = pod(name)
    assert {"hostNetwork", "hostPID", "hostIPC", "initContainers", "ephemeralContainers"}.isdisjoint(spec)
    for volume in spec.get("volumes", ()):
        (kind,) = set(volume) - {"name"}
        assert kind in VOLUMES
        assert kind != "emptyDir" or "sizeLimit" in volume["emptyDir"]
    assert all("hostPort" not in port for port in spec["containers"][0]["ports"])


@pytest.mark.parametrize("name", WORKLOADS)
def test_probes_ask_ports_that_the_container_has(name: str) -> None:
    (container,) = pod(name)["containers"]
    ports = {port["name"] for port in container["ports"]}
    probes = [container[probe] for probe in ("startupProbe", "readinessProbe", "livenessProbe") if probe in container]
    asked = {p["port"] for probe in probes for kind, p in probe.items() if kind in ("httpGet", "tcpSocket")}
    assert asked <= ports


@pytest.mark.parametrize("name", OURS)
def test_a_pod_that_waits_is_unready_and_not_restarted(name: str) -> None:
    (container,) = pod(name)["containers"]
    alive, ready = container["livenessProbe"], container["readinessProbe"]
    assert (alive["httpGet"]["path"], ready["httpGet"]["path"]) == ("/healthz", "/readyz")
    assert alive["periodSeconds"] * alive["failureThreshold"] >= 60, "a slow machine is no reason to lose its runs"


@pytest.mark.parametrize("name", [*OURS, "kubernetes-tools"])
def test_a_slow_start_is_waited_for(name: str) -> None:
    (container,) = pod(name)["containers"]
    starts, alive = container["startupProbe"], container["livenessProbe"]
    assert starts["periodSeconds"] * starts["failureThreshold"] >= 300
    asked = [probe.get("httpGet") or probe["tcpSocket"] for probe in (starts, alive)]
    assert asked[0] == asked[1], "what waits for the start asks what is asked later"


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_container_asks_for_memory_and_cpu_and_is_held_to_its_memory(name: str) -> None:
    for container in pod(name)["containers"]:
        resources = container["resources"]
        assert set(resources["requests"]) == {"cpu", "memory"}
        assert set(resources["limits"]) == {"memory"}, "a throttled event loop renews its leases late"


@pytest.mark.parametrize("name", OURS)
def test_nothing_of_the_database_secret_is_a_file_but_the_authority_of_its_certificate(name: str) -> None:
    (volume,) = (volume for volume in pod(name)["volumes"] if volume["name"] == "database")
    assert volume["secret"] == {
        "secretName": "tarsy-database",
        "optional": True,
        "items": [{"key": "ca.crt", "path": "ca.crt"}],
    }
    (container,) = pod(name)["containers"]
    (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == volume["name"])
    assert mount == {"name": "database", "mountPath": "/etc/tarsy/database", "readOnly": True}


def test_the_sample_of_the_database_verifies_whom_it_talks_to_by_the_file_that_pods_have() -> None:
    (secret,) = documents(MANIFESTS / "samples" / "fill-in" / "database.yaml")
    _, _, query = secret["stringData"]["url"].partition("?")
    assert query == "sslmode=verify-full&sslrootcert=/etc/tarsy/database/ca.crt"
    assert set(secret["stringData"]) == {"url", "ca.crt"}


@pytest.mark.parametrize("name", OURS)
def test_pods_are_spread_over_zones_and_nodes_where_there_are_some(name: str) -> None:
    spread = PATCHES[name]["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert [part["topologyKey"] for part in spread] == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
    labels = WORKLOADS[name]["spec"]["template"]["metadata"]["labels"]
    for part in spread:
        assert (part["maxSkew"], part["whenUnsatisfiable"]) == (1, "ScheduleAnyway")
        assert part["labelSelector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("budget", documents(HA / "disruption.yaml"), ids=named)
def test_a_drain_takes_one_pod_at_a_time_and_is_not_held_up_by_one_that_waits(budget: dict[str, Any]) -> None:
    spec, name = budget["spec"], budget["metadata"]["name"]
    assert (spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert spec["selector"]["matchLabels"] == WORKLOADS[name]["spec"]["selector"]["matchLabels"]


def test_each_deployment_of_the_overlay_has_a_budget() -> None:
    assert {budget["metadata"]["name"] for budget in documents(HA / "disruption.yaml")} == set(OURS) == set(PATCHES)


def test_the_number_of_workers_follows_the_queue_and_is_never_so_small_that_a_node_takes_all() -> None:
    (scaler,) = documents(HA / "autoscaler.yaml")
    spec = scaler["spec"]
    target = spec["scaleTargetRef"]
    assert (target["apiVersion"], target["kind"], target["name"]) == ("apps/v1", "Deployment", "tarsy-worker")
    assert 2 <= spec["minReplicas"] < spec["maxReplicas"]
    wanted = {m["external"]["metric"]["name"]: m["external"]["target"] for m in spec["metrics"]}
    assert set(wanted) == {"tarsy_investigations_queued", "tarsy_investigations_running"}
    assert {part["type"] for part in wanted.values()} == {"AverageValue"}


def test_workers_at_their_target_have_places_left_and_all_together_no_more_than_the_limit_by_much() -> None:
    (scaler,) = documents(HA / "autoscaler.yaml")
    (running,) = (m for m in scaler["spec"]["metrics"] if m["external"]["metric"]["name"].endswith("running"))
    options = {p.name: p.default for p in get_command(app).commands["worker"].params}  # type: ignore[attr-defined]
    assert int(running["external"]["target"]["averageValue"]) < options["places"]
    assert scaler["spec"]["maxReplicas"] * options["places"] >= options["global_limit"]


def test_applying_the_overlay_again_leaves_the_number_of_workers_as_it_is() -> None:
    (kustomization,) = documents(HA / "kustomization.yaml")
    (change,) = (patch for patch in kustomization["patches"] if "target" in patch)
    assert change["target"] == {"kind": "Deployment", "name": "tarsy-worker"}
    assert "path: /spec/replicas" in change["patch"] and "op: remove" in change["patch"]
    assert "replicas" not in PATCHES["tarsy-worker"]["spec"]
    assert PATCHES["tarsy-operator"]["spec"]["replicas"] == 2


def test_the_key_of_the_history_is_where_the_settings_look_for_it() -> None:
    (volume,) = (volume for volume in pod("tarsy-operator")["volumes"] if volume["name"] == "history")
    assert volume["secret"] == {
        "secretName": "tarsy-history",
        "optional": True,
        "items": [{"key": "key", "path": "key"}],
    }
    (container,) = pod("tarsy-operator")["containers"]
    (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == "history")
    (config,) = installed("ConfigMap")
    settings = yaml.safe_load(config["data"]["config.yaml"])["spec"]["history"]
    assert settings == {"keyFile": f"{mount['mountPath']}/key"}
