"""The overlays as wholes, rendered as `make manifests` does and given to a cluster that has nothing yet.

Decision: a server of its own, because what an overlay makes of the Deployments is not what the tests beside expect.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from apis import ApiKind, new_api
from integration.manifests.cluster import Cluster, build, in_order
from integration.manifests.conftest import MANIFESTS, documents
from tarsy.resources.meta import API_VERSION

# Older servers drop the condition of the webhook of promotions, and send all Chains to an operator that is not there.
pytestmark = [
    pytest.mark.timeout(480),
    pytest.mark.newer_api,
    pytest.mark.heavy("a server of its own; test_manifests applies the base and the library"),
]


@pytest.fixture(scope="module")
def applied(api_kind: ApiKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, list[str]]]:
    """A cluster with the overlay `ha` and the library, and what kubectl said when it applied them to nothing."""
    with new_api(api_kind) as api:
        cluster = Cluster(api, tmp_path_factory.mktemp("overlay"))
        yield cluster, [line for name in ("overlays/ha", "library") for line in cluster.apply(cluster.render(name))]


@pytest.fixture
def cluster(applied: tuple[Cluster, list[str]]) -> Cluster:
    return applied[0]


@pytest.mark.parametrize("name", ["overlays/ha", "library"])
def test_an_applied_overlay_applies_again_unchanged_also_as_flux_does_it_and_shows_no_difference(
    cluster: Cluster, name: str
) -> None:
    text = cluster.render(name)
    once = cluster.applied(text)
    assert cluster.applied(text) == once
    assert cluster.diff(text) == (0, "")
    flux = ("--server-side", "--field-manager=kustomize-controller", "--force-conflicts", "--dry-run=server")
    assert cluster.applied(text, *flux) == once


def test_an_overlay_is_created_by_one_apply_to_an_empty_cluster(applied: tuple[Cluster, list[str]]) -> None:
    _, lines = applied
    assert lines and [line for line in lines if not line.endswith(" created")] == []


def test_the_number_of_workers_is_the_autoscalers(cluster: Cluster) -> None:
    scale = ("scale", "deployment/tarsy-worker", "-n", "tarsy-system")
    cluster.kubectl(*scale, "--replicas=7")
    try:
        assert cluster.diff(cluster.render("overlays/ha")) == (0, "")
        cluster.apply(cluster.render("overlays/ha"))
        found = cluster.kubectl("get", "deploy/tarsy-worker", "-n", "tarsy-system", "-o", "jsonpath={.spec.replicas}")
        assert found.stdout == "7"
    finally:
        cluster.kubectl(*scale, "--replicas=1")


@pytest.mark.parametrize("name", ["overlays/dev", "overlays/workers"])
def test_the_other_overlays_pass_strict_validation_too(cluster: Cluster, name: str) -> None:
    lines = cluster.apply(cluster.render(name), "--dry-run=server")
    assert len(lines) == len(documents(cluster.render(name)))


def test_a_misspelt_field_would_not_pass(cluster: Cluster) -> None:
    objects = documents(cluster.render("overlays/ha").replace("whenUnsatisfiable", "whenUnsatisfied", 1))
    text = in_order([obj for obj in objects if "whenUnsatisfied" in json.dumps(obj)])
    done = cluster.kubectl("apply", "-f", "-", cluster.validate, "--dry-run=server", stdin=text, ok=False)
    assert done.returncode == 1 and "whenUnsatisfied" in done.stderr


def test_only_the_library_has_objects_of_the_kinds_it_needs_first(cluster: Cluster) -> None:
    """So that one apply of the product is enough, and the library is a second one."""
    for name in ("base", "overlays/ha", "overlays/workers"):
        assert all(obj["apiVersion"] != API_VERSION for obj in documents(cluster.render(name)))


def test_a_namespace_takes_the_librarys_configuration_with_changes_of_its_own(cluster: Cluster, tmp_path: Path) -> None:
    patch = [
        {"op": "replace", "path": "/spec/alertTypes", "value": ["PaymentsDown"]},
        {"op": "add", "path": "/spec/stages/1/maxIterations", "value": 5},
    ]
    text = build(
        cluster.kubectl,
        tmp_path.resolve(),
        namespace="payments",
        components=[MANIFESTS / "components" / "library"],
        patches=[{"target": {"kind": "Chain", "name": "kubernetes"}, "patch": json.dumps(patch)}],
    )
    objects = {(obj["kind"], obj["metadata"]["name"]): obj for obj in documents(text)}
    shipped = {
        (obj["kind"], obj["metadata"]["name"]): obj
        for obj in documents(cluster.kubectl("kustomize", str(MANIFESTS / "library")).stdout)
        if obj["apiVersion"] == API_VERSION
    }
    assert set(objects) == set(shipped)
    assert {obj["metadata"]["namespace"] for obj in objects.values()} == {"payments"}
    changed = {key for key, obj in objects.items() if obj["spec"] != shipped[key]["spec"]}
    assert changed == {("Chain", "kubernetes")}
    cluster.kubectl("create", "namespace", "payments")
    cluster.apply(in_order([objects[key] for key in changed]))
    path = "jsonpath={.spec.alertTypes} {.spec.stages[*].maxIterations}"
    assert cluster.kubectl("get", "tchain/kubernetes", "-n", "payments", "-o", path).stdout == '["PaymentsDown"] 5'


def test_the_kustomization_of_the_readme_puts_an_image_of_ones_own_everywhere(cluster: Cluster, tmp_path: Path) -> None:
    text = next(part for part in (MANIFESTS / "README.md").read_text().split("```") if "newName: registry" in part)
    kustomization = yaml.safe_load(text.removeprefix("yaml"))
    resources = [MANIFESTS.parent / path for path in kustomization["resources"]]
    built = build(cluster.kubectl, tmp_path.resolve(), **{**kustomization, "resources": resources})
    pods = [obj["spec"]["template"]["spec"] for obj in documents(built) if obj["kind"] == "Deployment"]
    images = {container["image"].partition("@")[0] for pod in pods for container in pod["containers"]}
    assert len(pods) == 3 and images == {"registry.example.com/tarsy-operator"}
