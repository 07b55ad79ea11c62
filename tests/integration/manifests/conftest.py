"""A Kubernetes API with the shipped manifests applied, and kubectl to look at it.

Decision: the server is one of its own for this folder, because its cluster-wide objects (roles, CRDs) are what is
tested.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apis import ApiKind, LocalApi, find_kubectl, new_api

MANIFESTS = Path(__file__).parents[3] / "manifests"
Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="package")
def server(api_kind: ApiKind) -> Iterator[LocalApi]:
    with new_api(api_kind) as server:
        yield server


def kubectl_of(server: LocalApi) -> Kubectl:
    """Runs kubectl as the administrator of a server, or with another kubeconfig; skips the test where there is none."""
    program = find_kubectl()
    if program is None:
        pytest.skip("no kubectl on PATH")

    def run(
        *arguments: str, kubeconfig: Path | None = None, stdin: str | None = None, ok: bool = True
    ) -> subprocess.CompletedProcess[str]:
        command = [program, "--kubeconfig", str(kubeconfig or server.kubeconfig), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 or not ok, f"{arguments}: {done.stdout}{done.stderr}"
        return done

    return run


@pytest.fixture(scope="package")
def kubectl(server: LocalApi) -> Kubectl:
    """Runs kubectl on the server of this folder."""
    return kubectl_of(server)


@pytest.fixture(scope="package")
def installed(server: LocalApi, kubectl: Kubectl) -> LocalApi:
    """Base, then library, applied as a person would; and a tenant's namespace that binds nothing."""
    # Older servers refuse what they do not know in a CRD when asked to validate it.
    kubectl("apply", "-k", str(MANIFESTS / "base"), "--validate=false")
    _without_unconditional_webhooks(kubectl)
    kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "-l", "app.kubernetes.io/part-of=tarsy")
    kubectl("apply", "-k", str(MANIFESTS / "library"), "--validate=false")
    kubectl("create", "namespace", "shop")
    return server


class _Loader(yaml.CSafeLoader):
    """Reads what kustomize writes: a plain `=` is text to it, as to YAML 1.2."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))


def _without_unconditional_webhooks(kubectl: Kubectl) -> None:
    """Removes the webhook of promotions where a server older than 1.28 has dropped its condition: all Chains would go
    to it, and nobody serves it here."""
    webhook = ("mutatingwebhookconfiguration", "tarsy-admission")
    stored = json.loads(kubectl("get", *webhook, "-o", "json").stdout)["webhooks"]
    for place, one in reversed(list(enumerate(stored))):
        if one["name"] == "promotion.tarsy.dev" and "matchConditions" not in one:
            kubectl(
                "patch", *webhook, "--type=json", "-p", json.dumps([{"op": "remove", "path": f"/webhooks/{place}"}])
            )


def documents(text: str) -> list[dict[str, Any]]:
    """The objects of what kustomize wrote."""
    return list(yaml.load_all(text, _Loader))


def account(server: LocalApi, namespace: str, name: str) -> Path:
    """A kubeconfig of a ServiceAccount."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return server.kubeconfig_for(f"system:serviceaccount:{namespace}:{name}", groups)
