"""Computes sets of field paths, differences between objects, and their FieldsV1 form in `managedFields`.

A path is a tuple of FieldsV1 elements: `f:spec`, `k:{"name":"a"}` for an item of a list that is a map, `v:"x"` for one
of a list that is a set. Items of lists are members themselves; containers are when empty or atomic, and
for the writer whose plain write brings them (structured-merge-diff, fieldpath and typed).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from embedded_kubeapi.objects import Obj
from embedded_kubeapi.shape import Shape

Path = tuple[str, ...]
Fields = dict[Path, Any]  # path -> the value there; of a list item, None
_SELF = "."
# Written by the server itself, managed by nobody (k8s.io/apimachinery managedfields, stripmeta).
_META_SKIPPED = frozenset(("managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "name",
                           "namespace", "selfLink"))  # fmt: skip


def fields_of(obj: Obj, shape: Shape, containers: bool = False) -> Fields:
    """All fields of an object that somebody can manage; with the containers that count as such, if asked for."""
    found: Fields = {}
    for name, value in obj.items():
        if name in ("apiVersion", "kind"):
            continue
        if name == "metadata":
            value = {key: item for key, item in value.items() if key not in _META_SKIPPED}
            if not value:
                continue
        _collect(value, ("f:" + name,), shape.field(name), found, containers)
    return found


def _collect(value: Any, path: Path, shape: Shape, found: Fields, containers: bool) -> None:
    divided = not shape.atomic_map if isinstance(value, dict) else shape.list_type != "atomic"
    if containers and divided and value and isinstance(value, (dict, list)) and shape.counts:
        found[path] = None
    if isinstance(value, dict) and value and divided:
        for name, item in value.items():
            _collect(item, (*path, "f:" + name), shape.field(name), found, containers)
    elif isinstance(value, list) and value and divided:
        keys = shape.keys if shape.list_type == "map" else ()
        for item in value:
            element = element_of(item, keys, shape)
            found[*path, element] = None
            if isinstance(item, dict) and shape.list_type == "map":
                inner = shape.item()
                for name, part in item.items():
                    _collect(part, (*path, element, "f:" + name), inner.field(name), found, containers)
    else:
        found[path] = value


def element_of(item: Any, keys: tuple[str, ...], shape: Shape) -> str:
    """The path element of an item of a list that is a map or a set."""
    if shape.list_type == "map" and isinstance(item, dict):
        named = {key: item.get(key, shape.default(key)) for key in keys}
        return "k:" + _compact({key: value for key, value in sorted(named.items()) if value is not None})
    return "v:" + _compact(item)


def changed(old: Fields, new: Fields) -> set[Path]:
    """Paths of `new` that `old` does not have or has with another value."""
    return {path for path, value in new.items() if path not in old or old[path] != value}


def to_fields_v1(paths: Iterable[Path]) -> dict[str, Any]:
    """The nested form in which `managedFields` shows a set of paths."""
    ordered = sorted(paths)
    members = set(ordered)
    prefixes = {path[:length] for path in ordered for length in range(1, len(path))}
    tree: dict[str, Any] = {}
    for path in ordered:
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        if path in prefixes and path in members:
            node[_SELF] = {}
    return tree


def from_fields_v1(tree: Any) -> set[Path]:
    """The paths of the nested form."""
    return set(_paths(tree, ())) if isinstance(tree, dict) else set()


def _paths(tree: dict[str, Any], path: Path) -> Iterator[Path]:
    if not tree and path:
        yield path
    for element, below in tree.items():
        if element == _SELF:
            yield path
        elif isinstance(below, dict):
            yield from _paths(below, (*path, element))


def show_path(path: Path) -> str:
    """A path for people, such as `.spec.containers[name="a"].image`."""
    shown = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            shown += f".{rest}"
        elif kind == "k":
            shown += "[" + ",".join(f"{key}={_compact(value)}" for key, value in json.loads(rest).items()) + "]"
        else:
            shown += f"[={rest}]"
    return shown


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
