"""Runs the embedded API with Kubernetes 1.36's API extensions server behind it, for this project's kinds.

Custom resources and their definitions are served by the real machinery (validation, CEL, apply, columns, selectable
fields, admission policies); everything else by the embedded API, which also says who a caller is and what they may do.
The two are connected like any aggregated API: by APIServices and a front proxy's certificate. The server reads policies
and webhook configurations from the embedded API, and reaches the Services of webhooks through `service_proxy`.

The controllers of a control plane are missing for these kinds: objects are not deleted with their namespace or owner.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from embedded_kubeapi.pki import FRONT_PROXY_USER
from embedded_kubeapi.server import EmbeddedApi
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import GROUP, VERSION
from tarsy_dev.apiserver.errors import ServerStartError
from tarsy_dev.apiserver.extensions_build import ExtensionsBinaries, require_extensions
from tarsy_dev.apiserver.process import Spawner, end, free_port
from tarsy_dev.apiserver.progress import tail
from tarsy_dev.apiserver.service_proxy import ServiceProxy
from tarsy_dev.objects import put

_START_SECONDS = 90.0
_POLL_SECONDS = 0.2
_END_SECONDS = 10.0
_NAMESPACE, _SERVICE = "kube-system", "api-extensions"
_SERVED = (("apiextensions.k8s.io", "v1"), (GROUP, VERSION))


class ExtensionsApi(EmbeddedApi):
    """A Kubernetes API server; call `start` and `stop` once each, or use it as a context manager.

    Args:
        state_dir: as of `EmbeddedApi`.
        binaries: what to run; None finds them (`require_extensions`).
    """

    def __init__(self, state_dir: Path | None = None, binaries: ExtensionsBinaries | None = None) -> None:
        super().__init__(state_dir)
        self._binaries = binaries
        self._extensions: contextlib.ExitStack | None = None
        self._extensions_port = 0

    def start(self) -> None:
        """Start, and return when custom resources can be defined.

        Raises:
            LocalKubernetesError: there are no programs, or one ended or was not ready in time.
        """
        binaries = self._binaries or require_extensions()
        super().start()
        self._extensions = contextlib.ExitStack()
        try:
            self._start_behind(binaries, self._extensions)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop, the programs first."""
        behind, self._extensions = self._extensions, None
        if behind is not None:
            behind.close()
        super().stop()

    def serve(self, group: str, version: str) -> None:
        """Registers one more group version of custom resources; those of this project are registered at the start."""
        with ThreadPoolExecutor(1) as thread:  # the caller's own thread may have a running loop
            thread.submit(asyncio.run, self._register(group, version)).result()

    @property
    def version(self) -> tuple[int, int]:
        """The version of the API extensions server."""
        return (self._binaries or require_extensions()).version

    def _start_behind(self, binaries: ExtensionsBinaries, stack: contextlib.ExitStack) -> None:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tarsy-extensions-")))
        spawner = Spawner()
        stack.callback(spawner.close)
        client, peers, port = free_port(), free_port(), free_port()
        etcd = spawner.spawn(_etcd(binaries.etcd, folder, client, peers), folder / "etcd.log")
        stack.callback(end, etcd, _END_SECONDS)
        webhooks = stack.enter_context(ServiceProxy())
        environment = {key: value for key, value in os.environ.items() if not key.upper().endswith("_PROXY")}
        server = spawner.spawn(
            self._server(binaries.server, folder, client, port),
            folder / "server.log",
            environment | {"HTTPS_PROXY": webhooks.url},
        )
        stack.callback(end, server, _END_SECONDS)
        self._extensions_port = port
        with ThreadPoolExecutor(1) as thread:  # the caller's own thread may have a running loop
            ready = thread.submit(asyncio.run, self._connect()).result()
        if not ready:
            raise ServerStartError(
                f"the API extensions server was not ready after {_START_SECONDS:g} s; the end of its log:\n"
                f"{tail(folder / 'server.log')}"
            )

    def _server(self, program: Path, folder: Path, etcd: int, port: int) -> list[str | Path]:
        pki = self._certificates
        mine = self.kubeconfig
        return [
            program,
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={folder / 'certificates'}",
            f"--kubeconfig={mine}",
            f"--authentication-kubeconfig={mine}",
            f"--authorization-kubeconfig={mine}",
            "--authentication-tolerate-lookup-failure",
            f"--client-ca-file={self.ca_file}",
            f"--requestheader-client-ca-file={pki.path('front-proxy-ca.crt')}",
            f"--requestheader-allowed-names={FRONT_PROXY_USER}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-uid-headers=X-Remote-Uid",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            # The embedded API serves neither kind that these ask for.
            "--enable-priority-and-fairness=false",
            "--disable-admission-plugins=MutatingAdmissionPolicy",
        ]

    async def _register(self, group: str, version: str) -> None:
        async with await KubeClient.load(self.kubeconfig) as admin:
            await put(admin, _api_service(group, version, self._extensions_port))

    async def _connect(self) -> bool:
        """Registers the server, and waits until it serves; returns False if it does not in time."""
        async with await KubeClient.load(self.kubeconfig) as admin:
            await put(admin, _namespace())
            await put(admin, _service())
            for group, version in _SERVED:
                await self._register(group, version)
            deadline = time.monotonic() + _START_SECONDS
            while time.monotonic() < deadline:
                with contextlib.suppress(ApiError):
                    if (await admin.read("/apis/apiextensions.k8s.io/v1")).get("resources"):
                        return True
                await asyncio.sleep(_POLL_SECONDS)
        return False


def _etcd(program: Path, folder: Path, client: int, peers: int) -> list[str | Path]:
    here, there = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peers}"
    return [
        program,
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}",
        f"--listen-peer-urls={there}",
        f"--initial-advertise-peer-urls={there}",
        f"--initial-cluster=default={there}",
        "--unsafe-no-fsync",
    ]


def _namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}


def _service() -> dict[str, Any]:
    meta = {"name": _SERVICE, "namespace": _NAMESPACE}
    spec = {"type": "ExternalName", "externalName": "127.0.0.1"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def _api_service(group: str, version: str, port: int) -> dict[str, Any]:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 1000,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,  # its certificate is one that it made for itself, on this machine
            "service": {"name": _SERVICE, "namespace": _NAMESPACE, "port": port},
        },
    }
