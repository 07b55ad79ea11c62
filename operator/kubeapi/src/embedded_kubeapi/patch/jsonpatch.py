"""Implements JSON patch (RFC 6902), with the errors of the real API's library (evanphx/json-patch)."""

from __future__ import annotations

from typing import Any

from embedded_kubeapi.objects import copy


class PatchError(ValueError):
    """The patch does not fit the object."""


class PatchTestFailed(PatchError):
    """A `test` operation found something else."""


def json_patch(target: Any, operations: Any) -> Any:
    """A changed copy of `target`.

    Raises:
        PatchError: an operation is malformed or names a place that is not there.
    """
    if not isinstance(operations, list):
        raise PatchError("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    document = copy(target)
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise PatchError("operation has no path")
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    kind, path = operation.get("op"), operation["path"]
    match kind:
        case "add" | "replace" | "test" if "value" not in operation:
            raise PatchError(f"{kind} operation of {path!r} has no value")
        case "add":
            return _add(document, path, copy(operation["value"]))
        case "remove":
            return _remove(document, path)
        case "replace":
            if not path:
                return copy(operation["value"])
            return _replace(document, path, copy(operation["value"]))
        case "move":
            value = _get(document, str(operation.get("from")), "move")
            return _add(_remove(document, operation["from"]), path, value)
        case "copy":
            return _add(document, path, copy(_get(document, str(operation.get("from")), "copy")))
        case "test":
            try:
                found = _get(document, path, "test")
            except PatchError:
                found = None
            if found != operation["value"]:
                raise PatchTestFailed(f"testing value {path} failed: test failed")
            return document
    raise PatchError(f"Unexpected kind: {kind}")


def _parts(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise PatchError(f"the path {path!r} does not begin with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _step(value: Any, part: str, path: str, kind: str) -> Any:
    if isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    raise PatchError(f"{kind} operation does not apply: doc is missing key: {path}: missing value")


def _get(document: Any, path: str, kind: str) -> Any:
    for part in _parts(path):
        document = _step(document, part, path, kind)
    return document


def _parent(document: Any, path: str, kind: str) -> tuple[Any, str]:
    *parents, last = _parts(path)
    for part in parents:
        try:
            document = _step(document, part, path, kind)
        except PatchError:
            raise PatchError(f'{kind} operation does not apply: doc is missing path: "{path}": missing value') from None
    return document, last


def _add(document: Any, path: str, value: Any) -> Any:
    if not path:
        return value
    parent, last = _parent(document, path, "add")
    if isinstance(parent, list):
        at = len(parent) if last == "-" else int(last) if last.isdigit() else -1
        if not 0 <= at <= len(parent):
            raise PatchError(f"add operation does not apply: {path}: index out of bounds")
        parent.insert(at, value)
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise PatchError(f"add operation does not apply: {path}: not a container")
    return document


def _replace(document: Any, path: str, value: Any) -> Any:
    """Sets a value. A key that an object lacks is added, as the real API does; RFC 6902 refuses it."""
    parent, last = _parent(document, path, "replace")
    if isinstance(parent, dict):
        parent[last] = value
    else:
        _step(parent, last, path, "replace")
        parent[int(last)] = value
    return document


def _remove(document: Any, path: str) -> Any:
    parent, last = _parent(document, path, "remove")
    if isinstance(parent, dict) and last in parent:
        del parent[last]
    elif isinstance(parent, list) and last.isdigit() and int(last) < len(parent):
        del parent[int(last)]
    else:
        raise PatchError(f"remove operation does not apply: Unable to remove nonexistent key: {last}: missing value")
    return document
