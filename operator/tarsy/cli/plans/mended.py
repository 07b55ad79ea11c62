"""Removes invalid fields from a document, so that its references can be resolved nevertheless.

Decision: an invalid field is removed, and a required one gets a valid placeholder. Only the schema reports errors of
such a field; `under` recognizes the errors of a plan that follow from it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Mapping
from typing import Any

from tarsy.resources.meta import AnyResource
from tarsy.resources.parse import FieldError, InvalidResource, parse_object

_PARTS = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_ROUNDS = 12
_ABSENT = object()
_INSTEAD: tuple[Any, ...] = (_ABSENT, "x", 1, {}, ["x"])
"""Values that are tried in turn instead of a refused field."""


def mended_document(
    document: Mapping[str, Any], errors: Collection[FieldError]
) -> tuple[AnyResource, frozenset[str]] | None:
    """Returns the object without its invalid fields, and their paths; None if that is impossible."""
    draft: dict[str, Any] = copy.deepcopy(dict(document))
    tried: dict[str, int] = {}
    for _ in range(_ROUNDS):
        for path in {error.path for error in errors}:
            choice = tried.get(path, 0)
            if choice == len(_INSTEAD) or not _replace(draft, path, _INSTEAD[choice]):
                return None
            tried[path] = choice + 1
        try:
            return parse_object(draft), frozenset(tried)
        except InvalidResource as invalid:
            errors = invalid.errors
    return None


def under(field: str, paths: Collection[str]) -> bool:
    """Returns whether a field is at or below one of these paths."""
    return any(field == path or field.startswith((f"{path}.", f"{path}[")) for path in paths)


def _replace(document: dict[str, Any], path: str, value: Any) -> bool:
    """Sets or removes a field; returns False if the path does not exist."""
    *way, last = [int(index) if index else name for name, index in _PARTS.findall(path)] or [""]
    place: Any = document
    for part in way:
        try:
            place = place[part]
        except (KeyError, IndexError, TypeError):
            return False
    if isinstance(place, dict) and isinstance(last, str) and last:
        place.pop(last, None)
        if value is not _ABSENT:
            place[last] = value
        return True
    if isinstance(place, list) and isinstance(last, int) and last < len(place):
        place[last] = {} if value is _ABSENT else value  # what stands behind it keeps its index
        return True
    return False
