"""Builds the tables that kubectl requests to print lists, from a kind's columns."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from embedded_kubeapi.jsonpath import parse
from embedded_kubeapi.objects import Obj
from embedded_kubeapi.resource import Column, Resource

NAME = Column("Name", ".metadata.name", "string", "Name must be unique within a namespace.", format="name")
AGE = Column("Age", ".metadata.creationTimestamp", "date", "Time since the object was created.")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def table(
    resource: Resource, items: Sequence[Obj], list_meta: Obj, include: str = "Metadata", headers: bool = True
) -> Obj:
    """Builds a `Table` of objects.

    Args:
        list_meta: metadata of the list, with its resourceVersion.
        include: what comes with each row: Metadata, Object or None.
        headers: False leaves out the column definitions, as later events of a watch do.
    """
    columns = resource.columns or (AGE,)
    if all(column.name != NAME.name for column in columns):
        columns = (NAME, *columns)
    present = datetime.now(UTC)
    rows = []
    for obj in items:
        row: Obj = {"cells": [cell(column, obj, present) for column in columns]}
        if include == "Object":
            row["object"] = obj
        elif include == "None":
            row["object"] = None
        else:
            row["object"] = {
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]
            }  # fmt: skip
        rows.append(row)
    body: Obj = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list_meta}
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns
    ]
    return {**body, "columnDefinitions": definitions if headers else None, "rows": rows}


def cell(column: Column, obj: Obj, present: datetime) -> Any:
    """Returns a cell: the value at the column's path, in the column's type; ages count up to `present`."""
    if callable(column.path):
        return column.path(obj)
    found = parse(column.path).find(obj)
    value = found[0] if found else None
    if value is None:
        return "<unknown>" if column is AGE else None
    match column.type:
        case "date":
            return age(value, present)
        case "integer" if isinstance(value, (int, float)) and not isinstance(value, bool):
            return math.trunc(value)
        case "number" if isinstance(value, (int, float)):
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "string":
            return value if isinstance(value, str) else _text(value)
        case _:
            return None


def age(timestamp: object, present: datetime) -> str:
    """The time since then as kubectl shows it, such as 5m12s (k8s.io/apimachinery duration.HumanDuration)."""
    try:
        then = datetime.fromisoformat(str(timestamp).replace("Z", "+00:00"))
    except ValueError:
        return "<invalid>"
    return human_duration(int((present - then).total_seconds()))


def human_duration(seconds: int) -> str:
    """Seconds as kubectl shows them: two units while the first is small."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, unit: int, name: str, small_unit: int, small_name: str) -> str:
    small = seconds % unit // small_unit
    return f"{seconds // unit}{name}" + (f"{small}{small_name}" if small else "")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return str(value)
