"""Which Kubernetes API a test stands on, of the same surface: the embedded one, a real one, or the embedded one with
the API extensions server of a newer Kubernetes behind it.

Decision: a process starts each kind at most once and keeps it to its end, so a test file of the one kind between two of
the other costs no new start.
"""

import asyncio
import contextlib
import shutil
from pathlib import Path
from typing import Literal

from kubernetes.aio.client import Configuration

from embedded_kubeapi.server import EmbeddedApi
from tarsy.kube.client import KubeClient
from tarsy.kube.configuration import load_configuration
from tarsy_dev.apiserver.binaries import find_binaries
from tarsy_dev.apiserver.extensions_server import ExtensionsApi
from tarsy_dev.apiserver.server import ApiServer
from tarsy_dev.objects import install_crds

ApiKind = Literal["embedded", "real", "newer"]
LocalApi = ApiServer | EmbeddedApi
START_SECONDS = 300.0
"""How long a server may take to start: its machine has other tests to run, and perhaps not only those."""


def new_api(kind: ApiKind, folder: Path | None = None) -> LocalApi:
    """An API of this kind, not yet started; `folder` as its own `state_dir`."""
    match kind:
        case "embedded":
            return EmbeddedApi(folder)
        case "real":
            return ApiServer(folder, start_timeout=START_SECONDS)
        case "newer":
            return ExtensionsApi(folder)


def find_kubectl() -> Path | None:
    """The kubectl that goes with the real API server, else the one on PATH."""
    found = find_binaries()
    path = shutil.which("kubectl")
    return found.kubectl if found and found.kubectl else Path(path) if path else None


class Apis:
    """The APIs of a test process; see `get` and `with_crds`."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._running: dict[ApiKind, LocalApi] = {}
        self._installed: set[ApiKind] = set()

    def get(self, kind: ApiKind) -> LocalApi:
        """The running API of this kind."""
        if kind not in self._running:
            self._running[kind] = self._stack.enter_context(new_api(kind))
        return self._running[kind]

    def with_crds(self, kind: ApiKind) -> LocalApi:
        """The same with this project's CRDs."""
        api = self.get(kind)
        if kind not in self._installed:
            asyncio.run(_install(api))
            self._installed.add(kind)
        return api


_CONFIGURATIONS: dict[tuple[Path, int], Configuration] = {}


async def configuration_of(kubeconfig: Path) -> Configuration:
    """Returns what a kubeconfig without plugins says, read once: a thousand tests have clients of the same few."""
    key = kubeconfig, _written(kubeconfig)
    if key not in _CONFIGURATIONS:
        _CONFIGURATIONS[key], _ = await load_configuration(kubeconfig, None)
    return _CONFIGURATIONS[key]


def _written(file: Path) -> int:
    return file.stat().st_mtime_ns


async def _install(api: LocalApi) -> None:
    async with await KubeClient.load(api.kubeconfig) as client:
        await install_crds(client)
