"""A Kubernetes API with the shipped manifests applied, and kubectl to look at it.

Decision: the server is one of its own for this folder, because its cluster-wide objects (roles, CRDs) are what is
tested.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apis import ApiKind, LocalApi, find_kubectl, new_api

MANIFESTS = Path(__file__).parents[3] / "manifests"
Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="package")
def server(api_kind: ApiKind) -> Iterator[LocalApi]:
    with new_api(api_kind) as server:
        yield server


@pytest.fixture(scope="package")
def kubectl(server: LocalApi) -> Kubectl:
    """Runs kubectl as the administrator, or with another kubeconfig."""
    program = find_kubectl()
    if program is None:
        pytest.skip("no kubectl on PATH")

    def run(
        *arguments: str, kubeconfig: Path | None = None, stdin: str | None = None, ok: bool = True
    ) -> subprocess.CompletedProcess[str]:
        command = [program, "--kubeconfig", str(kubeconfig or server.kubeconfig), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 or not ok, f"{arguments}: {done.stdout}{done.stderr}"
        return done

    return run


@pytest.fixture(scope="package")
def installed(server: LocalApi, kubectl: Kubectl) -> LocalApi:
    """Base, then library, applied as a person would; and a tenant's namespace that binds nothing."""
    # Older servers refuse what they do not know in a CRD when asked to validate it.
    kubectl("apply", "-k", str(MANIFESTS / "base"), "--validate=false")
    kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "-l", "app.kubernetes.io/part-of=tarsy")
    kubectl("apply", "-k", str(MANIFESTS / "library"), "--validate=false")
    kubectl("create", "namespace", "shop")
    return server


def account(server: LocalApi, namespace: str, name: str) -> Path:
    """A kubeconfig of a ServiceAccount."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return server.kubeconfig_for(f"system:serviceaccount:{namespace}:{name}", groups)
