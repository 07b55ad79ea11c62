"""What Artifact Hub shows of the charts, and of the repository."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.chart.artifact_hub import write_repository
from hack.chart.charts import LIBRARY, PRODUCT, write_chart

from tarsy.resources.v1alpha1 import KINDS

CATEGORIES = {
    "ai-machine-learning",
    "database",
    "integration-delivery",
    "monitoring-logging",
    "networking",
    "security",
    "storage",
    "streaming-messaging",
}
CAPABILITIES = {"basic install", "seamless upgrades", "full lifecycle", "deep insights", "auto pilot"}
TEXTS = {"category", "license", "operator", "operatorCapabilities"}
LISTS = {"crds", "crdsExamples", "images"}
IMAGE = "registry.example.com/tarsy:9.9"
pytestmark = pytest.mark.heavy("renders both charts; test_manifests holds what they are made of")
rendered = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl renders the manifests")


@pytest.fixture(scope="module", params=[PRODUCT, LIBRARY], ids=lambda chart: chart.name)
def notes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The annotations of a chart without their prefix; those that are YAML are read."""
    out = tmp_path_factory.mktemp("chart") / request.param.name
    write_chart(request.param, out, "1.2.3", image=IMAGE)
    found = yaml.safe_load((out / "Chart.yaml").read_text("utf-8"))["annotations"]
    assert all(isinstance(value, str) and name.startswith("artifacthub.io/") for name, value in found.items())
    plain = {name.removeprefix("artifacthub.io/"): value for name, value in found.items()}
    return {name: yaml.safe_load(value) if name in LISTS else value for name, value in plain.items()}


@rendered
def test_a_chart_says_nothing_that_artifact_hub_does_not_know(notes: dict[str, Any]) -> None:
    assert set(notes) <= TEXTS | LISTS
    assert notes["category"] in CATEGORIES and notes["license"] == "Apache-2.0"
    assert notes["images"] == [{"name": "tarsy-operator", "image": IMAGE}]


@rendered
def test_only_the_chart_with_the_kinds_is_an_operator_and_shows_each_kind_with_a_sample(notes: dict[str, Any]) -> None:
    if notes["operator"] == "false":
        assert not {"crds", "crdsExamples", "operatorCapabilities"} & set(notes)
        return
    assert notes["operatorCapabilities"].lower() in CAPABILITIES
    assert {one["kind"] for one in notes["crds"]} == set(KINDS)
    for one in notes["crds"]:
        assert set(one) == {"kind", "version", "name", "displayName", "description"} and all(one.values())
        assert len(one["description"]) <= 300
    assert {obj["kind"] for obj in notes["crdsExamples"]} == set(KINDS) - {"ToolApproval"}


def test_a_repository_is_claimed_by_its_id(tmp_path: Path) -> None:
    path = tmp_path / "artifacthub-repo.yml"
    identity = "0b1f2a34-5c6d-4e7f-8a9b-0c1d2e3f4a5b"
    write_repository(path, identity)
    assert yaml.safe_load(path.read_text("utf-8")) == {"repositoryID": identity}
    with pytest.raises(ValueError, match="--artifacthub-id=mine"):
        write_repository(path, "mine")
