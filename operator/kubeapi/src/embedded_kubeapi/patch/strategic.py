"""Implements strategic merge patch: merges lists of built-in kinds by key, with the directives that kubectl sends.

`$patch: replace|delete|merge`, `$retainKeys`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`
(k8s.io/apimachinery/pkg/util/strategicpatch).
"""

from __future__ import annotations

from typing import Any

from embedded_kubeapi.patch.jsonpatch import PatchError
from embedded_kubeapi.shape import Shape

_PATCH, _RETAIN = "$patch", "$retainKeys"
_DELETE, _ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"


def strategic_merge(target: Any, patch: Any, shape: Shape) -> Any:
    """`target` changed as `patch` says. Neither is modified.

    Raises:
        PatchError: an item of a list that merges by key has no key, or a directive is unknown.
    """
    if isinstance(patch, dict):
        return _object(target if isinstance(target, dict) else {}, patch, shape)
    if isinstance(patch, list):
        return _list(target if isinstance(target, list) else [], patch, shape)
    return patch


def _object(target: dict[str, Any], patch: dict[str, Any], shape: Shape) -> Any:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(f"unknown patch type found: {directive}")
    merged = dict(target)
    if (retained := patch.get(_RETAIN)) is not None:
        merged = {name: value for name, value in merged.items() if name in retained}
    for name, value in patch.items():
        if name in (_PATCH, _RETAIN) or name.startswith(_ORDER):
            continue
        if name.startswith(_DELETE):
            field = name.removeprefix(_DELETE)
            if field in merged:
                merged[field] = [item for item in merged[field] or () if item not in value]
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = strategic_merge(merged.get(name), value, shape.field(name))
    for name, order in patch.items():
        if name.startswith(_ORDER) and isinstance(merged.get(name.removeprefix(_ORDER)), list):
            field = name.removeprefix(_ORDER)
            merged[field] = _ordered(merged[field], order, shape.field(field))
    return merged


def _list(target: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    if shape.list_type == "set":
        return target + [item for item in patch if item not in target]
    if shape.list_type != "map" or any(not isinstance(item, dict) for item in (*target, *patch)):
        return patch
    if any(item.get(_PATCH) == "replace" for item in patch):
        return [item for item in patch if item.get(_PATCH) != "replace"]
    key = shape.keys[:1]  # strategic merge knows one key, apply knows several
    merged = list(target)
    for item in patch:
        if item.get(_PATCH) and not any(name in item for name in key):
            continue
        if any(name not in item for name in key):
            raise PatchError(f"map: {item} does not contain declared merge key: {key[0]}")
        at = next((at for at, other in enumerate(merged) if all(other.get(n) == item[n] for n in key)), None)
        if item.get(_PATCH) == "delete":
            if at is not None:
                del merged[at]
        elif at is None:
            merged.append(_object({}, item, shape.item()))
        else:
            merged[at] = _object(merged[at], item, shape.item())
    return merged


def _ordered(items: list[Any], order: list[Any], shape: Shape) -> list[Any]:
    key = shape.keys[:1]

    def identity(item: Any) -> Any:
        return tuple(item.get(name) for name in key) if isinstance(item, dict) and key else repr(item)

    places = {identity(item): at for at, item in enumerate(order)}
    listed = iter(sorted((i for i in items if identity(i) in places), key=lambda item: places[identity(item)]))
    return [next(listed) if identity(item) in places else item for item in items]
