"""Provides kubectl for the Kubernetes API of the session."""

import json
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from apis import LocalApi, find_kubectl

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def kubectl(kube_api: LocalApi) -> Kubectl:
    """Run kubectl as the administrator, or with another kubeconfig; `stdin` is an object to write as JSON."""
    program = find_kubectl()
    if program is None:
        pytest.skip("no kubectl on PATH")

    def run(*arguments: str, stdin: object = None, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, "--kubeconfig", kubeconfig or kube_api.kubeconfig, *arguments],
            input=None if stdin is None else json.dumps(stdin),
            capture_output=True,
            text=True,
            timeout=180,
        )

    return run


@pytest.fixture
def namespace(kubectl: Kubectl) -> str:
    name = f"test-{uuid.uuid4().hex[:10]}"
    created = kubectl("create", "namespace", name)
    assert created.returncode == 0, created.stderr
    return name
