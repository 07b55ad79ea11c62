"""Reads manifests from files, as `kubectl apply` does, with all their errors.

Decision: objects of other API groups are skipped, because a kustomize directory also contains Deployments and Secrets.
Our own objects are checked strictly: an unknown field, a duplicate key and a duplicate object are errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tarsy.app.strict_yaml import StrictLoader
from tarsy.cli.plans.mended import mended_document, under
from tarsy.plan.errors import PlanError
from tarsy.resources.meta import GROUP, AnyResource
from tarsy.resources.parse import InvalidResource, parse_object
from tarsy.resources.v1alpha1 import KINDS

SUFFIXES = (".yaml", ".yml", ".json")
Identity = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class FileProblem:
    """An error, with its file, object and field."""

    file: str
    where: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.where, self.message) if part)


@dataclass(slots=True)
class Manifests:
    """The objects of some files, in order, the labels of namespaces, and the errors."""

    objects: dict[Identity, AnyResource] = field(default_factory=dict)
    files: dict[Identity, str] = field(default_factory=dict)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    problems: list[FileProblem] = field(default_factory=list)
    broken: dict[Identity, frozenset[str]] = field(default_factory=dict)
    """Violations of its schema, with the refused fields where the rest could be read (`plan_mended.py`)."""

    def problem(self, error: PlanError) -> FileProblem | None:
        """Converts an error of a plan to one of a file; None if it follows from an invalid object that is reported."""
        for kind, _, name in self.broken:
            if error.message.startswith(f"there is no {kind} {name} in namespace "):
                return None
        if under(error.field, self.broken.get((error.kind, error.namespace, error.name), ())):
            return None
        named = f"{error.kind} {error.namespace}/{error.name}"
        file = self.files.get((error.kind, error.namespace, error.name), "")
        return FileProblem(file, f"{named}: {error.field}", error.message)


def read_files(paths: Iterable[Path], namespace: str) -> Manifests:
    """Reads the manifests of files and directories, including subdirectories.

    Args:
        paths: files and directories; a file that is named twice is read once.
        namespace: the namespace of objects without one.
    """
    manifests = Manifests()
    files: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            manifests.problems.append(FileProblem(str(path), "", "there is no such file or directory; name another"))
        found = sorted(item for item in path.rglob("*") if item.suffix in SUFFIXES) if path.is_dir() else [path]
        for file in found:
            if file.is_file():
                files.setdefault(file.resolve(), file)
    for file in files.values():
        _read(file, namespace, manifests)
    return manifests


def _read(file: Path, namespace: str, manifests: Manifests) -> None:
    try:
        documents = list(yaml.load_all(file.read_text(encoding="utf-8"), StrictLoader))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark is not None else ""
        message = getattr(error, "problem", None) or "it cannot be read as YAML"
        manifests.problems.append(FileProblem(str(file), where, f"is not YAML that Kubernetes accepts: {message}"))
        return
    for document in _objects(documents):
        if not isinstance(document, Mapping):
            manifests.problems.append(FileProblem(str(file), "", "contains something that is not an object; remove it"))
        elif _is_ours(document):
            _take(document, file, namespace, manifests)
        elif document.get("apiVersion") == "v1" and document.get("kind") == "Namespace":
            meta = document.get("metadata") or {}
            manifests.namespaces[str(meta.get("name"))] = meta.get("labels") or {}


def _objects(documents: Iterable[Any]) -> Iterator[Any]:
    for document in documents:
        items = document.get("items") if isinstance(document, Mapping) else None
        if isinstance(items, list) and str(document.get("kind")).endswith("List"):
            yield from _objects(items)
        elif document is not None:
            yield document


def _is_ours(document: Mapping[str, Any]) -> bool:
    version = document.get("apiVersion")
    if isinstance(version, str) and version:
        return version.split("/", 1)[0] == GROUP
    return document.get("kind") in KINDS  # an apiVersion that was forgotten


def _take(document: Mapping[str, Any], file: Path, namespace: str, manifests: Manifests) -> None:
    meta = document.get("metadata")
    meta = dict(meta) if isinstance(meta, Mapping) else {}
    meta.setdefault("namespace", namespace)
    identity = (str(document.get("kind")), str(meta["namespace"]), str(meta.get("name", "")))
    where = f"{identity[0]} {identity[1]}/{identity[2]}"
    before = manifests.files.get(identity)
    if before is not None:
        manifests.problems.append(FileProblem(str(file), where, f"is in {before} too; keep one of them"))
        return
    manifests.files[identity] = str(file)
    try:
        manifests.objects[identity] = parse_object({**document, "metadata": meta})
    except InvalidResource as invalid:
        rest = mended_document({**document, "metadata": meta}, invalid.errors)
        manifests.broken[identity] = rest[1] if rest else frozenset()
        if rest:
            manifests.objects[identity] = rest[0]
        manifests.problems += [
            FileProblem(str(file), f"{where}: {error.path}" if error.path else where, error.message)
            for error in invalid.errors
        ]
