"""Finds kube-apiserver and etcd, and kubectl if it is installed.

The order is KUBEBUILDER_ASSETS (what setup-envtest leaves), PATH, then the project's own cache. A pair is taken from
one place as a whole: an API server beside an etcd of another origin is a combination nobody has run. A
KUBEBUILDER_ASSETS that is set but holds no pair is an error, not a reason to look on: whoever set it meant it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tarsy_dev.apiserver.errors import BinariesNotFound, LocalKubernetesError

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_VERSION_TIMEOUT_SECONDS = 30
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Binaries:
    """One set of programs that run together."""

    kube_apiserver: Path
    etcd: Path
    kubectl: Path | None
    source: str


def architecture() -> str:
    """This machine's architecture as Kubernetes release files name it."""
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(machine, machine)


def cache_root(env: Mapping[str, str] = os.environ) -> Path:
    """The folder that holds one sub-folder a version; it need not exist."""
    base = env.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path is invalid and to be ignored.
    user_cache = Path(base) if base and Path(base).is_absolute() else Path(env.get("HOME") or Path.home()) / ".cache"
    return user_cache / "tarsy" / "kubernetes"


def find_binaries(env: Mapping[str, str] = os.environ) -> Binaries | None:
    """Returns the first complete pair in the order of this module, or None.

    Raises:
        BinariesNotFound: KUBEBUILDER_ASSETS is set and holds no kube-apiserver or no etcd.
    """
    search_path = env.get("PATH", "")
    kubectl = shutil.which("kubectl", path=search_path)
    if assets := env.get("KUBEBUILDER_ASSETS"):
        found = _pair_in(Path(assets), "KUBEBUILDER_ASSETS", kubectl)
        if found is None:
            raise BinariesNotFound(
                f"KUBEBUILDER_ASSETS={assets} holds no executable kube-apiserver and etcd: "
                "point it at the folder that setup-envtest prints, or unset it"
            )
        return found
    apiserver, etcd = (shutil.which(name, path=search_path) for name in ("kube-apiserver", "etcd"))
    if apiserver and etcd:
        return Binaries(Path(apiserver), Path(etcd), Path(kubectl) if kubectl else None, "PATH")
    for folder in sorted(_complete_folders(cache_root(env)), key=_folder_version, reverse=True):
        if found := _pair_in(folder, "cache", kubectl):
            return found
    return None


def require_binaries(env: Mapping[str, str] = os.environ) -> Binaries:
    """Like `find_binaries`.

    Raises:
        BinariesNotFound: there are none; the message says how to get them.
    """
    if found := find_binaries(env):
        return found
    raise BinariesNotFound(
        f"no kube-apiserver and etcd in KUBEBUILDER_ASSETS, on PATH or in {cache_root(env)}: run `make kube-apiserver`"
    )


def program_version(program: Path) -> tuple[int, int, int]:
    """Returns the version that `program --version` prints, as (major, minor, patch).

    Raises:
        LocalKubernetesError: the program does not run or prints no version.
    """
    try:
        result = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LocalKubernetesError(f"{program} --version does not run on this machine: {error}") from error
    match = _VERSION.search(result.stdout)
    if match is None:
        raise LocalKubernetesError(f"{program} --version prints no version: {result.stdout[:200]!r}")
    return int(match[1]), int(match[2]), int(match[3] or 0)


def _pair_in(folder: Path, source: str, kubectl_on_path: str | None) -> Binaries | None:
    apiserver, etcd, kubectl = (folder / name for name in ("kube-apiserver", "etcd", "kubectl"))
    if not (_is_program(apiserver) and _is_program(etcd)):
        return None
    if _is_program(kubectl):
        return Binaries(apiserver, etcd, kubectl, source)
    return Binaries(apiserver, etcd, Path(kubectl_on_path) if kubectl_on_path else None, source)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _complete_folders(root: Path) -> list[Path]:
    suffix = f"-{architecture()}"
    return [manifest.parent for manifest in root.glob(f"*/{MANIFEST}") if manifest.parent.name.endswith(suffix)]


def _folder_version(folder: Path) -> tuple[int, int, int]:
    match = _VERSION.match(folder.name)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)
