"""Chooses the context and the namespace from kubeconfig files, as kubectl does.

Decision: the context is chosen here and passed to the library. With several files in KUBECONFIG, the first one that
sets a current context decides for kubectl, and the last one for the library.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tarsy.client.errors import ApiUseError

POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class ChosenContext:
    """The files and the context of a connection (both None: the pod's ServiceAccount), and the namespace."""

    files: str | None
    context: str | None
    namespace: str


def choose_context(
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    environ: Mapping[str, str] = os.environ,
    pod_namespace: Path = POD_NAMESPACE,
) -> ChosenContext:
    """Chooses files, context and namespace.

    Args:
        kubeconfig: the option; else KUBECONFIG, else the file in the home directory, else the pod's ServiceAccount.
        context: the option; else the current one.
        namespace: the option; else that of the context, else `default`.
        environ: the environment, for KUBECONFIG and HOME.
        pod_namespace: the file with the namespace of a pod.

    Raises:
        ApiUseError: there is no configuration, it cannot be read, or it has no such context.
    """
    files = (
        kubeconfig or environ.get("KUBECONFIG") or str(Path(environ.get("HOME") or "~").expanduser() / ".kube/config")
    )
    found = [path for part in files.split(os.pathsep) if part and (path := Path(part).expanduser()).is_file()]
    if not found:
        if kubeconfig is None and context is None and pod_namespace.is_file():
            return ChosenContext(None, None, namespace or pod_namespace.read_text().strip() or "default")
        raise ApiUseError(f"there is no kubeconfig at {files}; name one with --kubeconfig or in KUBECONFIG")
    contexts: dict[str, Any] = {}
    current = context
    for path in found:
        config = _read(path)
        current = current or str(config.get("current-context") or "")
        for item in config.get("contexts") or ():
            if isinstance(item, dict) and isinstance(item.get("context"), dict):
                contexts.setdefault(str(item.get("name")), item["context"])
    if not current:
        raise ApiUseError(f"no current context is set in {files}; choose one with --context: {_names(contexts)}")
    if current not in contexts:
        raise ApiUseError(f"there is no context {current!r} in {files}; choose one with --context: {_names(contexts)}")
    return ChosenContext(files, current, namespace or str(contexts[current].get("namespace") or "default"))


def _read(path: Path) -> dict[str, Any]:
    """Reads a kubeconfig; errors do not quote it, because it contains tokens and keys."""
    try:
        config = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ApiUseError(f"the kubeconfig {path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ApiUseError(f"the kubeconfig {path} is not YAML") from None
    if not isinstance(config, dict):
        raise ApiUseError(f"the kubeconfig {path} is not a mapping")
    return config


def _names(contexts: Mapping[str, Any]) -> str:
    return ", ".join(sorted(contexts)) or "(there is none)"
