"""Admission as kustomize puts it together: the webhook alone, with the policies, or without the webhook."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from apis import find_kubectl
from tarsy.local.kubeapi.cel import compile_program
from tarsy.local.kubeapi.patch.jsonpatch import json_patch
from tarsy.local.objects import manifest

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
                "ValidatingAdmissionPolicy/tarsy-author",
                "ValidatingAdmissionPolicy/tarsy-use",
            },
        ),
        (
            ("policies", "mutating-policy"),
            {
                "MutatingAdmissionPolicy/tarsy-author",
                "ValidatingAdmissionPolicy/tarsy-author",
                "ValidatingAdmissionPolicy/tarsy-use",
            },
        ),
    ],
)
def test_who_stamps_is_chosen_by_components(tmp_path: Path, components: tuple[str, ...], found: set[str]) -> None:
    kubectl = find_kubectl()
    if kubectl is None:
        pytest.skip("no kubectl on PATH")
    root = tmp_path.resolve()
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(MANIFESTS / "base", root)],  # kustomize takes no absolute path
        "components": [os.path.relpath(MANIFESTS / "components" / name, root) for name in components],
    }
    (root / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    done = subprocess.run([kubectl, "kustomize", root], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    names = {
        f"{kind}/{name}"
        for kind, name in (_kind_and_name(document) for document in done.stdout.split("\n---\n"))
        if kind in STAMP
    }
    assert names == found


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
