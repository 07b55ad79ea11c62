"""Reads `metadata.managedFields`: who wrote which fields of an object, and when.

The API server keeps one time for each manager: that of its last write. It lists all fields that the manager owns, so
one of them changed then, not all. Entries of subresources (`status`) are reports, not changes, except `scale`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tarsy.evidence.fields import Object, mapping, mappings, moment, string

NEAR = timedelta(seconds=5)
"""A write this close to a change is taken for its cause."""

_IGNORED = ("metadata", "status")
_DEPTH = 3
_MOST = 40


@dataclass(frozen=True, slots=True)
class Write:
    """The last write of a manager.

    Attributes:
        manager: name of the field manager.
        at: when.
        fields: paths that the manager owns, without metadata and status, at most three keys deep.
        created: whether the write created the object.
    """

    manager: str
    at: datetime
    fields: tuple[str, ...]
    created: bool


def writes(obj: Object) -> Sequence[Write]:
    """Returns the last writes of an object's managers to anything but its status, the oldest first."""
    created = moment(obj, "metadata", "creationTimestamp")
    found = []
    for entry in mappings(obj, "metadata", "managedFields"):
        at = moment(entry, "time")
        if at is None or string(entry, "subresource") not in ("", "scale"):
            continue
        fields = tuple(_paths(mapping(entry, "fieldsV1")))[:_MOST]
        if fields or created == at:
            found.append(Write(string(entry, "manager"), at, fields, created is not None and at == created))
    return sorted(found, key=lambda one: one.at)


def writer_of(obj: Object, path: tuple[str, ...], at: datetime) -> str:
    """Returns the manager that wrote below a path close to a time; empty: none is known."""
    prefix = ".".join(path)
    for one in writes(obj):
        if abs(one.at - at) <= NEAR and any(field == prefix or field.startswith(prefix + ".") for field in one.fields):
            return one.manager
    return ""


def _paths(fields: Object) -> Iterator[str]:
    for key, inner in fields.items():
        name = key.removeprefix("f:")
        if key.startswith("f:") and name not in _IGNORED:
            yield from _below(name, inner, _DEPTH - 1)


def _below(path: str, fields: Any, depth: int) -> Iterator[str]:
    inner = mapping(fields) if isinstance(fields, dict) else {}
    named = [key for key in inner if isinstance(key, str) and key.startswith("f:")]
    if not named or depth == 0:
        yield path
        return
    for key in named:
        yield from _below(f"{path}.{key[2:]}", inner[key], depth - 1)
