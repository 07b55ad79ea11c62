"""Implements server-side apply: merges a manager's fields, refuses conflicts with other managers.

What the manager declared before and no longer does is removed, unless somebody else manages it too
(kubernetes.io/docs/reference/using-api/server-side-apply).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from embedded_kubeapi.errors import ApiError
from embedded_kubeapi.objects import Obj, now
from embedded_kubeapi.patch.fields import Path, element_of, fields_of, show_path
from embedded_kubeapi.patch.managed import Managers, Share, Writer, read_managers
from embedded_kubeapi.shape import Shape


def apply(live: Obj | None, declared: Obj, writer: Writer, shape: Shape, force: bool) -> tuple[Obj, Managers]:
    """The object after `writer` applied `declared`, and who then manages what.

    Raises:
        ApiError: 409 with one cause per field that another manager has with another value; not when `force`.
    """
    managers = read_managers(live)
    mine = fields_of(declared, shape)
    present = fields_of(live, shape) if live is not None else {}
    before = managers.pop(writer, None)
    contested = {path for path, value in mine.items() if path in present and present[path] != value}
    conflicts = [(other, path) for other, share in managers.items() for path in sorted(share.paths & contested)]
    if conflicts and not force:
        raise _conflict(conflicts)
    for other, path in conflicts:
        managers[other].paths.discard(path)
    merged = _merge(live or {}, declared, shape)
    if before is not None:
        others = set().union(*(share.paths for share in managers.values()))
        dropped = before.paths - mine.keys() - others
        kept = others | mine.keys()
        merged = _without(merged, dropped, shape, _prefixes(kept))
    unchanged = before is not None and before.paths == mine.keys()
    managers[writer] = Share(set(mine), before.time if unchanged and before and not contested else now())
    return merged, managers


def _merge(live: Any, declared: Any, shape: Shape) -> Any:
    if isinstance(declared, dict):
        if shape.atomic_map or not isinstance(live, dict):
            return declared
        merged = dict(live)
        for name, value in declared.items():
            merged[name] = _merge(live[name], value, shape.field(name)) if name in live else value
        return merged
    if isinstance(declared, list) and isinstance(live, list) and shape.list_type != "atomic":
        return _merge_list(live, declared, shape)
    return declared


def _merge_list(live: list[Any], declared: list[Any], shape: Shape) -> list[Any]:
    keys = shape.keys
    merged = {element_of(item, keys, shape): item for item in live}
    for item in declared:
        element = element_of(item, keys, shape)
        merged[element] = _merge(merged[element], item, shape.item()) if element in merged else item
    return list(merged.values())


def _without(value: Any, dropped: set[Path], shape: Shape, kept: set[Path]) -> Any:
    by_first: defaultdict[str, set[Path]] = defaultdict(set)
    for path in dropped:
        if path:
            by_first[path[0]].add(path[1:])
    if isinstance(value, dict):
        left = {}
        for name, item in value.items():
            element = "f:" + name
            below = by_first.get(element)
            if below is None:
                left[name] = item
                continue
            if () in below and (element,) not in kept:
                continue
            part = _without(item, below - {()}, shape.field(name), _inside(kept, element))
            if part or not item:
                left[name] = part
        return left
    if isinstance(value, list) and shape.list_type != "atomic":
        keys, items = shape.keys, []
        for item in value:
            element = element_of(item, keys, shape)
            below = by_first.get(element, set())
            if () in below and (element,) not in kept:
                continue
            items.append(_without(item, below - {()}, shape.item(), _inside(kept, element)) if below else item)
        return items
    return value


def _inside(paths: set[Path], element: str) -> set[Path]:
    return {path[1:] for path in paths if len(path) > 1 and path[0] == element}


def _prefixes(paths: Iterable[Path]) -> set[Path]:
    return {path[:length] for path in paths for length in range(1, len(path) + 1)}


def _conflict(conflicts: list[tuple[Writer, Path]]) -> ApiError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_show(writer)}", "field": show_path(path)}
        for writer, path in conflicts
    ]
    if len(conflicts) == 1:
        writer, path = conflicts[0]
        text = f"Apply failed with 1 conflict: conflict with {_show(writer)}: {show_path(path)}"
    else:
        by_writer: defaultdict[str, list[str]] = defaultdict(list)
        for writer, path in conflicts:
            by_writer[_show(writer)].append(f"- {show_path(path)}")
        lines = [line for shown in sorted(by_writer) for line in (f"conflicts with {shown}:", *by_writer[shown])]
        text = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", text, {"causes": causes})


def _show(writer: Writer) -> str:
    shown = f'"{writer.manager}"'
    if writer.subresource:
        shown += f' with subresource "{writer.subresource}"'
    return shown if writer.operation == "Apply" else f"{shown} using {writer.api_version}"
