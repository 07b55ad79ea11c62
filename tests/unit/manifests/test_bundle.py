"""The OLM bundle: of the documented form, with the rights of the manifests, and nothing lost on the way."""

import copy
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.bundle.csv import CERTIFICATES, MIN_KUBERNETES, REGISTRATIONS
from hack.bundle.files import annotations, write_bundle
from hack.bundle.objects import OLM_MAKES, Sorted, sorted_objects
from hack.chart.charts import CHARTS, PRODUCT
from hack.chart.rendering import kustomized, read_objects
from pydantic import ValidationError
from typer.main import get_command

from tarsy.cli.main import app
from tarsy.resources.v1alpha1 import KINDS
from unit.manifests.olm import BUNDLE_KINDS, ClusterServiceVersion
from unit.manifests.shipped import LOADER

IMAGE = f"registry.example.com/tarsy@sha256:{'a' * 64}"
pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl renders the manifests")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a bundle."""
    out = tmp_path_factory.mktemp("bundle") / "bundle"
    write_bundle(out, "1.2.3", image=IMAGE, channel="stable", replaces="1.2.2")
    return out


@pytest.fixture(scope="module")
def manifests(bundle: Path) -> dict[str, dict[str, Any]]:
    """The manifests of the bundle by file name; each file has one."""
    return {path.name: yaml.load(path.read_text("utf-8"), LOADER) for path in (bundle / "manifests").iterdir()}


@pytest.fixture(scope="module")
def csv(manifests: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The ClusterServiceVersion."""
    return manifests["tarsy.clusterserviceversion.yaml"]


@pytest.fixture(scope="module")
def found() -> Sorted:
    """The rendered objects by their way."""
    return sorted_objects()


def test_the_cluster_service_version_is_of_the_documented_form(csv: dict[str, Any]) -> None:
    read = ClusterServiceVersion.model_validate(csv)
    assert read.metadata.name == "tarsy.v1.2.3" and read.spec.replaces == "tarsy.v1.2.2"


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("metadata", "name"), "tarsy.v1.2.4", "must end with the version"),
        (("metadata", "annotations", "categories"), "Alerts", "no categories"),
        (("metadata", "annotations", "capabilities"), "All", "are none"),
        (("spec", "version"), "1.2", "version"),
        (("spec", "installModes"), [{"type": "AllNamespaces", "supported": True}], "each install mode"),
        (("spec", "install", "strategy"), "helm", "strategy"),
        (("spec", "webhookdefinitions", 0, "deploymentName"), "other", "no deployment"),
        (("spec", "webhookdefinitions", 0, "matchConditions"), [], "matchConditions"),
        (("spec", "icon", 0, "base64data"), "<svg>", "base64data"),
    ],
)
def test_the_form_refuses_a_mistake(csv: dict[str, Any], path: tuple[str | int, ...], value: Any, named: str) -> None:
    wrong: Any = copy.deepcopy(csv)
    at = wrong
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(ValidationError, match=named):
        ClusterServiceVersion.model_validate(wrong)


def test_each_kind_is_owned_with_a_description_and_its_definition_is_in_the_bundle(
    csv: dict[str, Any], manifests: Mapping[str, dict[str, Any]]
) -> None:
    owned = {one["kind"]: one for one in csv["spec"]["customresourcedefinitions"]["owned"]}
    assert set(owned) == set(KINDS)
    assert all(len(one["description"]) > 20 for one in owned.values())
    defined = {obj["metadata"]["name"] for obj in manifests.values() if obj["kind"] == "CustomResourceDefinition"}
    assert {one["name"] for one in owned.values()} == defined


def test_the_rights_are_those_of_the_manifests_without_those_of_registrations(csv: dict[str, Any]) -> None:
    base = kustomized(("base",))
    roles = {(key[1], key[3]): obj["rules"] for key, obj in base.items() if key[1] in ("Role", "ClusterRole")}
    install = csv["spec"]["install"]["spec"]
    (own,), (everywhere,) = install["permissions"], install["clusterPermissions"]
    assert own == {"serviceAccountName": "tarsy-operator", "rules": roles["Role", "tarsy-operator"]}
    wanted = [*roles["ClusterRole", "tarsy-operator"], *roles["ClusterRole", "tarsy-record-api"]]
    left_out = [rule for rule in wanted if rule not in everywhere["rules"]]
    assert [rule for rule in wanted if rule not in left_out] == everywhere["rules"]
    assert [(rule["apiGroups"], rule["verbs"]) for rule in left_out] == [
        (["admissionregistration.k8s.io"], ["get", "update"]),
        (["apiregistration.k8s.io"], ["get", "update"]),
    ]
    assert {group for rule in left_out for group in rule["apiGroups"]} == REGISTRATIONS


def test_every_object_of_the_manifests_goes_one_way(found: Sorted) -> None:
    whole = kustomized(("base",), ("components/policies",))
    ways = (found.csv, found.carried, found.olm, found.beside)
    assert sum(map(len, ways)) == len(whole) and set().union(*ways) == set(whole)
    assert {(key[1], key[3]) for key in found.olm} == set(OLM_MAKES)
    kinds = {key[1] for key in found.beside}
    policies = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "NetworkPolicy"}
    assert kinds == policies | {"ClusterRole", "ClusterRoleBinding"}


def test_a_right_that_a_policy_makes_harmless_comes_with_the_policy_only(bundle: Path, csv: dict[str, Any]) -> None:
    beside = read_objects((bundle / "beside.yaml").read_text("utf-8"))
    names = {(key[1], key[3]) for key in beside}
    assert {("ClusterRole", "tarsy-operator-acceptances"), ("ValidatingAdmissionPolicy", "tarsy-accept")} <= names
    rules = csv["spec"]["install"]["spec"]["clusterPermissions"][0]["rules"]
    assert not [rule for rule in rules if "mcpservers" in rule["resources"] and "patch" in rule["verbs"]]


def test_olm_carries_each_manifest_and_puts_it_into_the_operators_namespace(
    manifests: Mapping[str, dict[str, Any]],
) -> None:
    others = [obj for obj in manifests.values() if obj["kind"] != "ClusterServiceVersion"]
    assert {obj["kind"] for obj in others} <= BUNDLE_KINDS
    assert not [obj for obj in others if "namespace" in obj["metadata"]]
    assert not [obj for obj in others if obj["kind"] == "ServiceAccount"]  # the permissions name it


def test_the_deployment_is_that_of_the_manifests_with_the_certificate_of_olm(csv: dict[str, Any]) -> None:
    (entry,) = csv["spec"]["install"]["spec"]["deployments"]
    (key,) = (key for key in kustomized(("base",)) if key[1] == "Deployment")
    wanted = copy.deepcopy(dict(kustomized(("base",))[key]))
    pod = wanted["spec"]["template"]["spec"]
    pod["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    pod["containers"][0]["image"] = IMAGE
    pod["containers"][0]["args"] += [f"--record-tls={CERTIFICATES}", f"--admission-tls={CERTIFICATES}"]
    assert entry == {"name": "tarsy-operator", "label": wanted["metadata"]["labels"], "spec": wanted["spec"]}
    assert csv["spec"]["relatedImages"] == [{"name": "operator", "image": IMAGE}]
    assert csv["metadata"]["annotations"]["containerImage"] == IMAGE


def test_the_program_understands_the_arguments_of_the_deployment(csv: dict[str, Any]) -> None:
    (entry,) = csv["spec"]["install"]["spec"]["deployments"]
    command, *arguments = entry["spec"]["template"]["spec"]["containers"][0]["args"]
    found = get_command(app).commands[command]  # type: ignore[attr-defined]
    known = {option for parameter in found.params for option in parameter.opts}
    assert {re.sub("=.*", "", argument) for argument in arguments} <= known


def test_webhooks_and_aggregated_api_are_those_of_the_manifests(csv: dict[str, Any]) -> None:
    base = {(key[1], key[3]): obj for key, obj in kustomized(("base",)).items()}
    hooks = base["MutatingWebhookConfiguration", "tarsy-admission"]["webhooks"]
    found = csv["spec"]["webhookdefinitions"]
    assert [hook["generateName"] for hook in found] == [hook["name"] for hook in hooks]
    for hook, wanted in zip(found, hooks, strict=True):
        said = {name for name in wanted if name not in ("name", "clientConfig", "matchConditions")}
        assert {name: hook[name] for name in said} == {name: wanted[name] for name in said}
        assert hook["webhookPath"] == wanted["clientConfig"]["service"]["path"]
    service = base["APIService", "v1alpha1.record.tarsy.dev"]["spec"]
    apis = csv["spec"]["apiservicedefinitions"]["owned"]
    assert {(one["group"], one["version"]) for one in apis} == {(service["group"], service["version"])}
    assert {one["name"] for one in apis} == {
        "calibration",
        "changes",
        "objects",
        "queue",
        "reviews",
        "transitions",
        "triage",
        "workers",
    }


def test_consoles_offer_a_sample_of_each_kind_that_people_write(csv: dict[str, Any]) -> None:
    examples = json.loads(csv["metadata"]["annotations"]["alm-examples"])
    assert sorted(obj["kind"] for obj in examples) == sorted(set(KINDS) - {"ToolApproval"})


def test_folder_and_image_say_the_same_of_the_bundle(bundle: Path) -> None:
    metadata = yaml.safe_load((bundle / "metadata" / "annotations.yaml").read_text("utf-8"))["annotations"]
    text = (bundle / "bundle.Dockerfile").read_text("utf-8")
    labels = dict(re.findall(r"^LABEL (\S+)=(\S+)$", text, re.MULTILINE))
    assert metadata == labels == annotations("stable")
    assert metadata["operators.operatorframework.io.bundle.channels.v1"] == "stable"
    copied = dict(re.findall(r"^COPY (\S+) /(\S+)$", text, re.MULTILINE))
    assert copied == {"manifests": "manifests/", "metadata": "metadata/"} and text.startswith("FROM scratch\n")


def test_charts_and_bundle_ask_for_the_same_kubernetes() -> None:
    assert CHARTS[0] is PRODUCT and PRODUCT.kubernetes == f">={MIN_KUBERNETES}-0"


@pytest.mark.parametrize("image", ["bad image", "tarsy-operator", "tarsy@sha256:short"])
def test_what_is_no_image_is_refused(image: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--image="):
        write_bundle(tmp_path / "bundle", "1.2.3", image=image)
