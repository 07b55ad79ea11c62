"""Tests that `--keep` loses nothing that was answered, whenever the process is killed."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.kubeapi.conftest import Kubectl

Serve = Callable[[], subprocess.Popen[str]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts `python -m embedded_kubeapi` on the same file each time, and returns when it answers."""
    started: list[subprocess.Popen[str]] = []

    def begin() -> subprocess.Popen[str]:
        options = ("--kubeconfig", str(tmp_path / "kubeconfig"), "--keep", str(tmp_path / "objects"))
        command = [sys.executable, "-m", "embedded_kubeapi", *options]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        output = started[-1].stdout
        assert output is not None
        assert "embedded Kubernetes API at" in output.readline()
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate(timeout=60)


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=60)


def test_killed_api_has_everything_it_answered_when_it_is_back(serve: Serve, kubectl: Kubectl, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    first = serve()
    for name in ("stays", "goes"):
        assert kubectl("create", "configmap", name, "--from-literal=a=b", kubeconfig=kubeconfig).returncode == 0
    assert kubectl("delete", "configmap", "goes", kubeconfig=kubeconfig).returncode == 0
    before = json.loads(kubectl("get", "configmap", "stays", "-o", "json", kubeconfig=kubeconfig).stdout)
    kill(first)

    second = serve()
    after = json.loads(kubectl("get", "configmap", "stays", "-o", "json", kubeconfig=kubeconfig).stdout)
    assert after == before
    assert kubectl("get", "configmap", "goes", kubeconfig=kubeconfig).returncode != 0
    kill(second)

    # Killed in the middle of a line, and while starting: the next file is half written.
    with (tmp_path / "objects").open("ab") as journal:
        journal.write(b'["","configmaps","default","cut",{"metad')
    (tmp_path / "objects.new").write_bytes(b'["","configmaps","default","half",')
    serve()
    after = json.loads(kubectl("get", "configmap", "stays", "-o", "json", kubeconfig=kubeconfig).stdout)
    assert after == before
