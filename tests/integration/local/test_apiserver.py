"""A local Kubernetes API, used as people use it: through kubectl and its kubeconfigs.

What is behind it (processes, etcd, ports) only the real one has.
"""

import contextlib
import dataclasses
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from apis import LocalApi, find_kubectl
from tarsy_dev.apiserver.binaries import require_binaries
from tarsy_dev.apiserver.errors import LocalKubernetesError, ServerStartError
from tarsy_dev.apiserver.extensions_server import ExtensionsApi
from tarsy_dev.apiserver.process import free_port
from tarsy_dev.apiserver.server import ApiServer

processes = pytest.mark.real_only("it has processes of its own")

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "probes.test.tarsy.dev"},
    "spec": {
        "group": "test.tarsy.dev",
        "scope": "Namespaced",
        "names": {"plural": "probes", "singular": "probe", "kind": "Probe", "listKind": "ProbeList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
                                "x-kubernetes-validations": [
                                    {"rule": "self.low <= self.high", "message": "low must not be above high"}
                                ],
                            },
                            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def probes(kube_api: LocalApi) -> None:
    """The kind Probe, served. Old servers do not know x-kubernetes-validations, so kubectl must not check for it."""
    if isinstance(kube_api, ExtensionsApi):
        kube_api.serve("test.tarsy.dev", "v1")
    base = [str(find_kubectl()), "--kubeconfig", str(kube_api.kubeconfig)]
    apply = [*base, "apply", f"--validate={str(kube_api.supports_cel).lower()}", "-f", "-"]
    subprocess.run(apply, input=json.dumps(CRD), text=True, check=True, timeout=120)
    wait = [*base, "wait", "--for=condition=Established", "crd/probes.test.tarsy.dev", "--timeout=60s"]
    subprocess.run(wait, check=True, timeout=120)


def probe(name: str, low: int = 1, high: int = 2) -> dict[str, object]:
    return {
        "apiVersion": "test.tarsy.dev/v1",
        "kind": "Probe",
        "metadata": {"name": name},
        "spec": {"low": low, "high": high},
    }


def test_kubectl_sees_the_namespaces_that_exist_without_a_controller_manager(kubectl: Kubectl) -> None:
    shown = kubectl("get", "namespaces", "-o", "name")
    assert {"namespace/default", "namespace/kube-system"} <= set(shown.stdout.split())


@pytest.mark.usefixtures("probes")
def test_custom_objects_are_applied_patched_and_deleted(kubectl: Kubectl, namespace: str) -> None:
    # Debian's Kubernetes with the reflect2 it vendors dies at the first of these.
    for arguments in (("apply",), ("apply", "--server-side", "--force-conflicts")):
        applied = kubectl(*arguments, "-n", namespace, "-f", "-", stdin=probe("one"))
        assert applied.returncode == 0, applied.stderr
    patched = kubectl(
        *("patch", "probe", "one", "-n", namespace, "--type=merge", "--subresource=status"),
        *("-p", '{"status":{"phase":"Ready"}}'),
    )
    assert patched.returncode == 0, patched.stderr
    shown = kubectl("get", "probe", "one", "-n", namespace, "-o", "jsonpath={.status.phase} {.spec.high}")
    assert shown.stdout == "Ready 2"
    assert kubectl("delete", "probe", "one", "-n", namespace).returncode == 0


@pytest.mark.newer_api
@pytest.mark.usefixtures("probes")
def test_cel_rule_refuses_a_bad_object(kubectl: Kubectl, namespace: str) -> None:
    refused = kubectl("apply", "-n", namespace, "-f", "-", stdin=probe("bad", low=3, high=2))
    assert refused.returncode != 0
    assert "low must not be above high" in refused.stderr


def test_service_account_token_acts_with_the_rights_of_its_account(
    kube_api: LocalApi, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    assert kubectl("create", "serviceaccount", "reader", "-n", namespace).returncode == 0
    token = kubectl("create", "token", "reader", "-n", namespace).stdout.strip()
    assert token.count(".") == 2
    anonymous = tmp_path / "nobody.kubeconfig"
    anonymous.write_text("{apiVersion: v1, kind: Config}")
    login = ("--server", kube_api.url, "--certificate-authority", str(kube_api.ca_file), "--token", token)
    question = ("auth", "can-i", "list", "pods", "-n", namespace)
    assert kubectl(*login, *question, kubeconfig=anonymous).stdout.strip() == "no"
    bound = kubectl(
        *("create", "rolebinding", "readers", "-n", namespace, "--clusterrole=system:aggregate-to-view"),
        f"--serviceaccount={namespace}:reader",
    )
    assert bound.returncode == 0, bound.stderr
    eventually(lambda: kubectl(*login, *question, kubeconfig=anonymous).stdout.strip() == "yes")


def test_second_user_may_do_only_what_a_role_of_a_group_allows(
    kube_api: LocalApi, kubectl: Kubectl, namespace: str
) -> None:
    group = f"on-call-{namespace}"
    alice = kube_api.kubeconfig_for("alice", [group, "everybody"])
    question = ("auth", "can-i", "create", "configmaps", "-n", namespace)
    assert kubectl(*question, kubeconfig=alice).stdout.strip() == "no"
    role = ("create", "role", "config-writer", "-n", namespace, "--verb=create", "--resource=configmaps")
    assert kubectl(*role).returncode == 0
    kubectl("create", "rolebinding", "on-call", "-n", namespace, "--role=config-writer", f"--group={group}")
    eventually(lambda: kubectl(*question, kubeconfig=alice).stdout.strip() == "yes")
    created = kubectl("create", "configmap", "hers", "-n", namespace, kubeconfig=alice)
    assert created.returncode == 0, created.stderr
    assert kubectl("get", "nodes", kubeconfig=alice).returncode != 0


def test_pods_can_be_created_without_a_default_service_account(kubectl: Kubectl, namespace: str) -> None:
    created = kubectl("run", "crashing", "--image=example.invalid/app:1", "-n", namespace)
    assert created.returncode == 0, created.stderr


def test_keys_and_kubeconfigs_are_readable_by_their_owner_only(kube_api: LocalApi) -> None:
    files = [kube_api.kubeconfig, kube_api.kubeconfig_for("bob"), *kube_api.ca_file.parent.iterdir()]
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o600"}


@pytest.mark.real_only("it has an etcd")
def test_certificate_of_an_api_user_does_not_open_etcd(kube_api: LocalApi) -> None:
    command_lines = [Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0") for pid in kube_api.pids]
    url = next(flag.split("=")[1] for line in command_lines for flag in line if "listen-client-urls" in flag)
    pki = kube_api.ca_file.parent

    def status(login: str) -> int:
        tls = ssl.create_default_context(cafile=str(pki / "etcd-ca.crt"))
        tls.load_cert_chain(pki / f"{login}.crt", pki / f"{login}.key")
        port = int(url.rsplit(":", 1)[1])
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=tls)
        try:
            connection.request("GET", "/version")
            return connection.getresponse().status
        finally:
            connection.close()

    assert status("etcd-client") == 200
    with pytest.raises(OSError):
        status("admin")


def test_data_and_address_survive_an_outage_of_the_api_server(
    kube_api: LocalApi, kubectl: Kubectl, namespace: str
) -> None:
    url = kube_api.url
    kube_api.stop_apiserver()
    try:
        assert kubectl("get", "namespace", namespace, "--request-timeout=5s").returncode != 0
    finally:
        kube_api.start_apiserver()
    assert kube_api.url == url
    assert kubectl("get", "namespace", namespace).returncode == 0


@processes
@pytest.mark.usefixtures("api_kind")
def test_killed_parent_leaves_no_process_behind(tmp_path: Path) -> None:
    # Started from a thread of asyncio's pool, the way the command line does it.
    script = """
        import asyncio
        from tarsy_dev.apiserver.server import ApiServer

        async def main():
            server = ApiServer()
            await asyncio.to_thread(server.start)
            print(*server.pids, flush=True)
            await asyncio.Event().wait()

        asyncio.run(main())
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(is_alive(pid) for pid in pids)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.communicate(timeout=60)
    eventually(lambda: not any(is_alive(pid) for pid in pids))


@processes
@pytest.mark.usefixtures("api_kind")
def test_stopping_removes_the_temporary_folder_and_both_processes() -> None:
    server = ApiServer()
    server.start()
    pids, folder = server.pids, server.kubeconfig.parent
    server.stop()
    assert not folder.exists()
    assert not any(is_alive(pid) for pid in pids)
    with pytest.raises(LocalKubernetesError, match="not running"):
        _ = server.url


@processes
@pytest.mark.usefixtures("api_kind")
def test_port_that_was_taken_in_the_last_moment_is_exchanged_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        taken = stranger.getsockname()[1]
        # etcd, then kube-apiserver: each is given the stranger's port first.
        ports = iter([taken, free_port(), taken, free_port()])
        monkeypatch.setattr("tarsy_dev.apiserver.server.free_port", lambda: next(ports))
        with ApiServer() as server:
            assert not server.url.endswith(f":{taken}")
    assert next(ports, None) is None


@processes
@pytest.mark.usefixtures("api_kind")
def test_failing_program_is_reported_with_its_log_and_leaves_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "kube-apiserver"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Kubernetes v1.34.1 || { echo no such flag; exit 3; }\n')
    broken.chmod(0o755)
    binaries = dataclasses.replace(require_binaries(), kube_apiserver=broken)
    before = child_pids()
    with pytest.raises(ServerStartError, match=r"ended with 3 .*\n.*no such flag"):
        ApiServer(tmp_path / "state", binaries).start()
    assert child_pids() == before


def eventually(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(0.1)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def child_pids() -> set[str]:
    found: set[str] = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that ended meanwhile
            found.update((task / "children").read_text().split())
    return found
