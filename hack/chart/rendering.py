"""Renders kustomizations to objects."""

import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from os.path import relpath
from pathlib import Path
from typing import Any, Final

import yaml
from hack.components import CHECKOUT

MANIFESTS: Final = CHECKOUT / "manifests"
ObjectKey = tuple[str, str, str, str]
"""apiVersion, kind, namespace and name of an object."""


class _Loader(yaml.CSafeLoader):
    """Reads `=` as text, as Kubernetes does."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))


def read_objects(text: str) -> dict[ObjectKey, dict[str, Any]]:
    """Reads the objects of a stream of YAML documents, by key.

    Raises:
        ValueError: an object is there twice.
    """
    found: dict[ObjectKey, dict[str, Any]] = {}
    for obj in yaml.load_all(text, _Loader):
        if not obj:
            continue
        meta = obj["metadata"]
        key = (obj["apiVersion"], obj["kind"], meta.get("namespace", ""), meta["name"])
        if key in found:
            raise ValueError(f"{key} is there twice")
        found[key] = obj
    return found


@cache
def kustomized(resources: tuple[str, ...], components: tuple[str, ...] = ()) -> Mapping[ObjectKey, Mapping[str, Any]]:
    """Renders folders of manifests/ together, with components; once for each combination.

    Args:
        resources: folders.
        components: folders of components, applied in this order.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        lists = {"resources": resources, "components": components}
        spec = {key: [relpath(MANIFESTS / name, root) for name in names] for key, names in lists.items() if names}
        (root / "kustomization.yaml").write_text(yaml.safe_dump({"kind": "Kustomization", **spec}), encoding="utf-8")
        done = subprocess.run(["kubectl", "kustomize", str(root)], check=True, capture_output=True, text=True)
    return read_objects(done.stdout)
