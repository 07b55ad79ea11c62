"""The Helm charts, with Helm's own SDK: they render what kustomize builds, and install on a cluster.

The SDK is a library in Go. It is loaded by the first test, because threads of Go do not survive the fork of the workers
(`tests/workers.py`).
"""

import importlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.chart.charts import CHARTS, LIBRARY, PRODUCT, Choice, HelmChart, write_chart
from hack.chart.packing import pack
from hack.chart.rendering import ObjectKey, kustomized, read_objects

from apis import ApiKind, LocalApi, new_api
from integration.manifests.conftest import Kubectl, kubectl_of

pytestmark = pytest.mark.heavy("loads Helm; tests/unit/manifests holds the manifests that the charts are made of")
no_api = pytest.mark.once("no Kubernetes API takes part")
HOMES = {"tarsy": "tarsy-system", "tarsy-library": "tarsy-library"}
PLAIN: dict[str, dict[str, Any]] = {"tarsy": {"crds": {"keep": False}}, "tarsy-library": {}}
"""Values that add nothing to what kustomize builds."""

Objects = Mapping[ObjectKey, Mapping[str, Any]]
Render = Callable[..., Objects]


@pytest.fixture(scope="module", autouse=True)
def kustomize() -> None:
    """Skips the tests where nothing renders the manifests."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl renders the manifests")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both charts, as folders."""
    out = tmp_path_factory.mktemp("charts")
    for chart in CHARTS:
        write_chart(chart, out / chart.name, "1.2.3", image="registry.example.com/tarsy:9.9")
    return {chart.name: out / chart.name for chart in CHARTS}


@pytest.fixture(scope="module")
def helm() -> Any:
    """Helm's SDK."""
    return importlib.import_module("helm_python")


@pytest.fixture(scope="module")
def render(helm: Any, folders: dict[str, Path]) -> Render:
    """Renders a chart as an install would."""

    def rendered(chart: HelmChart, values: Mapping[str, Any], *, namespace: str | None = None) -> Objects:
        with helm.Chart.load(str(folders[chart.name])) as loaded:
            found = loaded.render(dict(values), name=chart.name, namespace=namespace or HOMES[chart.name])
        assert isinstance(found, dict)
        return read_objects("\n---\n".join(text for name, text in found.items() if name.endswith(".yaml")))

    return rendered


def _image(objects: Objects, image: str) -> Objects:
    """Objects of kustomize with another image of ours."""
    return {
        key: json.loads(json.dumps(obj).replace('"tarsy-operator:0.1.0"', json.dumps(image)))
        for key, obj in objects.items()
    }


def _deployment(objects: Objects, name: str) -> Mapping[str, Any]:
    (found,) = (obj for obj in objects.values() if obj["kind"] == "Deployment" and obj["metadata"]["name"] == name)
    return found


EACH = [(chart, choice) for chart in CHARTS for choice in chart.choices]


@no_api
@pytest.mark.parametrize(("chart", "choice"), EACH, ids=[f"{chart.name}-{choice.condition}" for chart, choice in EACH])
def test_a_choice_renders_what_kustomize_builds(render: Render, chart: HelmChart, choice: Choice) -> None:
    found = render(chart, {**PLAIN[chart.name], **choice.values, "namespace": {"create": True}})
    assert found == _image(kustomized(choice.resources, choice.components), "registry.example.com/tarsy:9.9")


@no_api
@pytest.mark.parametrize("addition", PRODUCT.additions, ids=lambda addition: addition.condition)
def test_an_addition_renders_its_component_beside_the_rest(render: Render, addition: Choice) -> None:
    found, without = render(PRODUCT, addition.values), render(PRODUCT, {})
    added = {key: obj for key, obj in found.items() if key not in without}
    wanted = _image(kustomized(addition.resources, addition.components), "registry.example.com/tarsy:9.9")
    assert added == wanted and without.items() <= found.items()


@no_api
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_helm_finds_no_fault(helm: Any, folders: dict[str, Path], chart: HelmChart) -> None:
    found = helm.lint(str(folders[chart.name]))
    assert found["errors"] == []
    assert {one["error"] for one in found["messages"]} <= {"icon is recommended"}


@no_api
def test_namespaces_are_those_of_the_releases_everywhere(render: Render) -> None:
    product = render(PRODUCT, {"profile": "ha", "libraryNamespace": "shelf"}, namespace="123")
    library = render(LIBRARY, {"operatorNamespace": "123"}, namespace="shelf")
    for objects in (product, library):
        texts = [json.dumps(obj) for obj in objects.values() if obj["kind"] != "CustomResourceDefinition"]
        for usual in ("tarsy-system", "tarsy-library"):
            assert not [text for text in texts if usual in text.replace("tarsy-library-user", "")]
    namespaces = {key[2] for key in product} | {key[2] for key in library}
    assert namespaces == {"", "123", "shelf", "kube-system"}  # a RoleBinding about authentication


@no_api
def test_values_set_what_clusters_need(render: Render) -> None:
    values: dict[str, Any] = {
        "image": {"repository": "mirror.example.com/tarsy", "digest": f"sha256:{'0' * 64}", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "mirror"}],
        "database": {"secretName": "postgres"},
        "config": {"controller": {"retention": "30d"}},
        "openshift": True,
        "operator": {
            "replicas": 0,
            "resources": {"limits": {"memory": "2Gi"}},
            "nodeSelector": {"pool": "infra"},
            "tolerations": [{"operator": "Exists"}],
            "priorityClassName": "high",
            "podAnnotations": {"note": "{{ braces }}"},
            "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        },
    }
    found = render(PRODUCT, values)
    spec = _deployment(found, "tarsy-operator")["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert spec["replicas"] == 0
    assert container["image"] == f"mirror.example.com/tarsy@sha256:{'0' * 64}"
    assert container["imagePullPolicy"] == "Always" and container["resources"] == {"limits": {"memory": "2Gi"}}
    assert container["env"][0]["valueFrom"]["secretKeyRef"]["name"] == "postgres"
    assert container["env"][-1] == {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}
    assert [one["secret"]["secretName"] for one in pod["volumes"] if one["name"] == "database"] == ["postgres"]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["imagePullSecrets"] == [{"name": "mirror"}] and pod["nodeSelector"] == {"pool": "infra"}
    assert pod["tolerations"] == [{"operator": "Exists"}] and pod["priorityClassName"] == "high"
    annotations = spec["template"]["metadata"]["annotations"]
    assert annotations["note"] == "{{ braces }}" and len(annotations["checksum/config"]) == 64
    settings = _settings(found)
    assert settings["controller"]["retention"] == "30d"
    assert settings["controller"]["operatorNamespace"] == "tarsy-system" and settings["webhook"]["requireAuthor"]


def _settings(objects: Objects) -> dict[str, Any]:
    (config,) = (obj for key, obj in objects.items() if key[1:] == ("ConfigMap", "tarsy-system", "tarsy-config"))
    spec: dict[str, Any] = yaml.safe_load(config["data"]["config.yaml"])["spec"]
    return spec


@no_api
@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"profile": "large"}, "profile"),
        ({"imgae": {}}, "imgae"),
        ({"operator": {"replica": 2}}, "replica"),
        ({"image": {"repository": "x", "digest": "sha256:short"}}, "digest"),
        ({"libraryNamespace": "Not A Name"}, "libraryNamespace"),
    ],
    ids=["no such profile", "a misspelt field", "a misspelt field below", "no digest", "no name"],
)
def test_a_wrong_value_is_refused_by_its_name(helm: Any, render: Render, values: dict[str, Any], named: str) -> None:
    with pytest.raises(helm.HelmError) as refused:
        render(PRODUCT, values)
    assert named in str(refused.value)


@no_api
@pytest.mark.parametrize(
    ("image", "named"),
    [
        ("registry.example.com:5000/a/tarsy:1.0", ("registry.example.com:5000/a/tarsy", "1.0", "")),
        (f"tarsy@sha256:{'a' * 64}", ("tarsy", "", f"sha256:{'a' * 64}")),
        ("bad image", None),
        ("tarsy-operator", None),
        ("tarsy@sha256:short", None),
    ],
)
def test_a_chart_names_the_image_that_it_is_made_for(image: str, named: tuple[str, ...] | None, tmp_path: Path) -> None:
    if named is None:
        with pytest.raises(ValueError, match="--image="):
            write_chart(LIBRARY, tmp_path / "chart", "1.2.3", image=image)
        return
    write_chart(LIBRARY, tmp_path / "chart", "1.2.3", image=image)
    found = yaml.safe_load((tmp_path / "chart" / "values.yaml").read_text("utf-8"))["image"]
    assert (found["repository"], found["tag"], found["digest"]) == named


@no_api
def test_equal_charts_are_packed_to_equal_bytes(helm: Any, folders: dict[str, Path], tmp_path: Path) -> None:
    first = pack(folders["tarsy"], tmp_path / "one.tgz").read_bytes()
    assert pack(folders["tarsy"], tmp_path / "two.tgz").read_bytes() == first
    with helm.Chart.load_archive(first) as chart:
        assert (chart.name, chart.version) == ("tarsy", "1.2.3")


@pytest.fixture(scope="module")
def empty(api_kind: ApiKind) -> Iterator[LocalApi]:
    with new_api(api_kind) as api:
        yield api


@pytest.mark.newer_api
def test_helm_installs_upgrades_and_uninstalls_and_keeps_everybodys_objects(
    helm: Any, empty: LocalApi, folders: dict[str, Path]
) -> None:
    kubectl = kubectl_of(empty)
    cluster = {"kubeconfig_path": str(empty.kubeconfig)}
    with helm.Config(namespace="tarsy-system", **cluster) as config:
        config.install(str(folders["tarsy"]), "tarsy", {"profile": "minimal"}, create_namespace=True)
        kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "-l", "app.kubernetes.io/part-of=tarsy")
        with helm.Config(namespace="tarsy-library", **cluster) as shelf:
            provider = {"type": "openai", "model": "m", "apiKeySecretRef": {"name": "openai", "key": "api-key"}}
            shelf.install(
                str(folders["tarsy-library"]), "tarsy-library", {"llmProvider": provider}, create_namespace=True
            )
        assert _names(kubectl, "llmproviders") == ["default"] and "kubernetes" in _names(kubectl, "chains")
        config.upgrade(str(folders["tarsy"]), "tarsy", {"profile": "minimal", "operator": {"replicas": 3}})
        found = json.loads(kubectl("get", "deployment", "tarsy-operator", "-n", "tarsy-system", "-o", "json").stdout)
        assert found["spec"]["replicas"] == 3
        config.uninstall("tarsy")
        assert "kubernetes" in _names(kubectl, "chains")
        gone = kubectl("get", "deployment", "tarsy-operator", "-n", "tarsy-system", ok=False)
        assert "not found" in gone.stderr


def _names(kubectl: Kubectl, kind: str) -> list[str]:
    found = json.loads(kubectl("get", kind, "-n", "tarsy-library", "-o", "json").stdout)
    return [obj["metadata"]["name"] for obj in found["items"]]
