"""Tests admission as kustomize assembles it: the webhook alone, with the policies, or policies only."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from apis import find_kubectl
from embedded_kubeapi.cel import compile_program
from embedded_kubeapi.patch.jsonpatch import json_patch
from tarsy_dev.objects import manifest

MANIFESTS = Path(__file__).parents[3] / "manifests"
STAMP = {"MutatingWebhookConfiguration", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"}


@pytest.mark.parametrize(
    ("components", "found"),
    [
        ((), {"MutatingWebhookConfiguration/tarsy-admission"}),
        (
            ("policies",),
            {
                "MutatingWebhookConfiguration/tarsy-admission",
                "ValidatingAdmissionPolicy/tarsy-accept",
                "ValidatingAdmissionPolicy/tarsy-api-registration",
                "ValidatingAdmissionPolicy/tarsy-approve",
                "ValidatingAdmissionPolicy/tarsy-author",
                "ValidatingAdmissionPolicy/tarsy-promote",
                "ValidatingAdmissionPolicy/tarsy-review",
                "ValidatingAdmissionPolicy/tarsy-use",
                "ValidatingAdmissionPolicy/tarsy-webhook-registration",
            },
        ),
        (
            ("policies", "mutating-policy"),
            {
                "MutatingAdmissionPolicy/tarsy-author",
                "ValidatingAdmissionPolicy/tarsy-accept",
                "ValidatingAdmissionPolicy/tarsy-api-registration",
                "ValidatingAdmissionPolicy/tarsy-approve",
                "ValidatingAdmissionPolicy/tarsy-author",
                "ValidatingAdmissionPolicy/tarsy-promote",
                "ValidatingAdmissionPolicy/tarsy-review",
                "ValidatingAdmissionPolicy/tarsy-use",
                "ValidatingAdmissionPolicy/tarsy-webhook-registration",
            },
        ),
    ],
)
def test_who_stamps_is_chosen_by_components(tmp_path: Path, components: tuple[str, ...], found: set[str]) -> None:
    names = {
        f"{kind}/{name}"
        for kind, name in map(_kind_and_name, kustomized(tmp_path, components).split("\n---\n"))
        if kind in STAMP
    }
    assert names == found


def kustomized(folder: Path, components: tuple[str, ...]) -> str:
    """The base with components, as one file."""
    kubectl = find_kubectl()
    if kubectl is None:
        pytest.skip("no kubectl on PATH")
    root = folder.resolve()
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(MANIFESTS / "base", root)],  # kustomize takes no absolute path
        "components": [os.path.relpath(MANIFESTS / "components" / name, root) for name in components],
    }
    (root / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    done = subprocess.run([kubectl, "kustomize", root], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("components", "sending"),
    [
        (("tracing",), {"tarsy-operator"}),
        (("workers", "tracing"), {"tarsy-operator", "tarsy-worker"}),
        (("workers",), set()),
    ],
)
def test_traces_are_sent_by_every_process_of_ours_where_the_component_is(
    tmp_path: Path, components: tuple[str, ...], sending: set[str]
) -> None:
    found = set()
    for document in kustomized(tmp_path, components).split("\n---\n"):
        kind, name = _kind_and_name(document)
        if kind == "Deployment":
            (container,) = yaml.safe_load(document)["spec"]["template"]["spec"]["containers"]
            variables = {variable["name"]: variable.get("value") for variable in container["env"]}
            assert "TARSY_DATABASE_URL" in variables
            if "OTEL_EXPORTER_OTLP_ENDPOINT" in variables:
                assert variables["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://otel-collector.monitoring.svc:4318"
                found.add(name)
    assert found == sending


def _kind_and_name(document: str) -> tuple[str, str]:
    lines = document.splitlines()
    kind = next(line.removeprefix("kind: ") for line in lines if line.startswith("kind: "))
    return kind, next(line.removeprefix("  name: ") for line in lines if line.startswith("  name: "))


@pytest.mark.parametrize(
    ("user", "author"),
    [
        ({"username": "alice", "groups": ["on-call"]}, {"username": "alice", "groups": ["on-call"]}),
        ({"username": "alice", "uid": "a-1", "groups": []}, {"username": "alice", "uid": "a-1", "groups": []}),
        ({"username": "alice", "uid": ""}, {"username": "alice", "groups": []}),
    ],
)
def test_the_mutating_policy_stamps_as_the_webhook_does(user: dict[str, Any], author: dict[str, Any]) -> None:
    """By the embedded API's CEL, which has no messages: maps are in their place. No API server here has the kind."""
    policy, _ = manifest("components/mutating-policy/policy.yaml")
    (mutation,) = policy["spec"]["mutations"]
    text = mutation["jsonPatch"]["expression"].replace("JSONPatch{", "{").replace("Object.spec.author{", "{")
    for field in ("op", "path", "value", "username", "groups"):
        text = re.sub(rf"(?<![\w.]){field}:", f'"{field}":', text)
    scope = {"object": {"spec": {}}, "request": {"userInfo": user}}
    patch = compile_program(text, tuple(scope)).evaluate(scope)
    assert json_patch(scope["object"], patch) == {"spec": {"author": author}}


@pytest.mark.parametrize("name", ["policies/author", "policies/use", "mutating-policy/policy"])
def test_a_policy_leaves_an_object_without_a_spec_to_its_schema(name: str) -> None:
    """A match condition that is false keeps all other expressions, which need a spec, from being evaluated."""
    policy = manifest(f"components/{name}.yaml")[0]
    (first, *_) = policy["spec"]["matchConditions"]
    program = compile_program(first["expression"], ("object",))
    assert [program.evaluate({"object": obj}) for obj in ({}, {"spec": {}})] == [False, True]


@pytest.mark.parametrize("labelled", [True, False])
def test_the_history_of_a_namespace_labels_it_where_it_is_in_the_kustomization(tmp_path: Path, labelled: bool) -> None:
    kubectl = find_kubectl()
    if kubectl is None:
        pytest.skip("no kubectl on PATH")
    root = tmp_path.resolve()
    (root / "namespace.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: payments\n")
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "payments",
        "resources": ["namespace.yaml"] if labelled else [],
        "components": [os.path.relpath(MANIFESTS / "components" / "tenant-history", root)],
    }
    (root / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    done = subprocess.run([kubectl, "kustomize", root], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = {obj["kind"]: obj["metadata"] for obj in yaml.safe_load_all(done.stdout)}
    assert found["RoleBinding"]["namespace"] == "payments"
    assert set(found) == ({"RoleBinding", "Namespace"} if labelled else {"RoleBinding"})
    if labelled:
        assert found["Namespace"]["name"] == "payments"
        assert found["Namespace"]["labels"] == {"tarsy.dev/history": "keys"}
