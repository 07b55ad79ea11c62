"""A cluster to which rendered manifests are applied as wholes, as people and GitOps tools do it.

On Kubernetes 1.20 they go through `hack/kubernetes-1.20`.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apis import LocalApi
from integration.manifests.conftest import MANIFESTS, Kubectl, kubectl_of
from tarsy.resources.meta import API_VERSION

OLD = MANIFESTS.parent / "hack" / "kubernetes-1.20"
ROUNDS = 6


class Cluster:
    """A cluster, and what kubectl says there about rendered manifests."""

    def __init__(self, api: LocalApi, folder: Path) -> None:
        self.api = api
        self.kubectl: Kubectl = kubectl_of(api)
        self._folder = folder.resolve()
        self._rendered: dict[str, str] = {}
        # 1.20 knows neither rules in CRDs nor all of their fields, and refuses them when asked to validate.
        self.validate = "--validate=strict" if api.supports_cel else "--validate=false"

    def render(self, name: str) -> str:
        """A folder of manifests as one file, for this cluster."""
        if name not in self._rendered:
            old = () if self.api.supports_cel else (OLD,)
            self._rendered[name] = build(self.kubectl, self._folder, resources=[MANIFESTS / name], components=old)
        return self._rendered[name]

    def apply(self, text: str, *arguments: str) -> list[str]:
        """The lines of kubectl's answer."""
        return self.kubectl("apply", "-f", "-", self.validate, *arguments, stdin=text).stdout.splitlines()

    def applied(self, text: str, *arguments: str) -> list[dict[str, Any]]:
        """Applies, and gives the objects as they are then, without what others write: status, and who wrote when.

        Not the words of kubectl, which calls some objects (budgets) configured that are not changed.
        """
        done = self.kubectl("apply", "-f", "-", self.validate, "-o", "json", *arguments, stdin=text)
        items = json.loads(done.stdout)["items"]
        for item in items:
            item.pop("status", None)
            for key in ("resourceVersion", "managedFields"):
                item["metadata"].pop(key, None)
        return list(items)

    def diff(self, text: str) -> tuple[int, str]:
        """Exit status and output of `kubectl diff`: 0 and nothing where the cluster is as Git says."""
        done = self.kubectl("diff", "-f", "-", stdin=text, ok=False)
        return done.returncode, done.stdout

    def apply_until_there(self, objects: Sequence[dict[str, Any]]) -> int:
        """Applies objects in their order until none is refused for want of another; after how many rounds."""
        text = in_order(objects)
        for rounds in range(1, ROUNDS + 1):
            done = self.kubectl("apply", "-f", "-", self.validate, stdin=text, ok=False)
            if done.returncode == 0:
                return rounds
        raise AssertionError(f"not there after {ROUNDS} rounds: {done.stderr}")

    def not_ready(self, objects: Sequence[dict[str, Any]]) -> list[str]:
        """What of these objects of our kinds is not Ready, as it is now."""
        wanted = {(o["kind"], o["metadata"]["name"]) for o in objects if o["apiVersion"] == API_VERSION}
        found = json.loads(self.kubectl("get", "tarsy", "--all-namespaces", "-o", "json").stdout)["items"]
        there = {(item["kind"], item["metadata"]["name"]): item for item in found}
        return [
            f"{key}: {there.get(key, {}).get('status')}" for key in sorted(wanted) if not _ready(there.get(key, {}))
        ]


def _ready(item: dict[str, Any]) -> bool:
    status = item.get("status", {})
    conditions = {c["type"]: c["status"] for c in status.get("conditions", ())}
    return conditions.get("Ready") == "True" and status["observedGeneration"] == item["metadata"]["generation"]


def in_order(objects: Sequence[dict[str, Any]]) -> str:
    """The objects as one file."""
    return "\n".join(map(json.dumps, objects))


def build(kubectl: Kubectl, folder: Path, **kustomization: Any) -> str:
    """What a kustomization says that lies in `folder`; kustomize takes no absolute paths."""
    for key in ("resources", "components"):
        kustomization[key] = [os.path.relpath(path, folder) for path in kustomization.get(key, ())]
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(json.dumps(head | kustomization))
    return kubectl("kustomize", str(folder)).stdout
