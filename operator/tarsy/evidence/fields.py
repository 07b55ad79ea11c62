"""Reads fields of Kubernetes objects without trusting their types.

Built-in kinds are validated by the API server, custom resources need not be. A field of another type than expected
counts as absent, so that one odd object cannot fail an investigation.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Object = Mapping[str, Any]

_EMPTY: Object = {}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z")


def value(obj: Object, *path: str) -> Any:
    """Returns the value at a path of keys; None where there is none."""
    found: Any = obj
    for key in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def mapping(obj: Object, *path: str) -> Object:
    """Returns the mapping at a path; an empty one where there is none."""
    found = value(obj, *path)
    return found if isinstance(found, Mapping) else _EMPTY


def mappings(obj: Object, *path: str) -> Sequence[Object]:
    """Returns the mappings of the list at a path; other items are left out."""
    found = value(obj, *path)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def strings(obj: Object, *path: str) -> Sequence[str]:
    """Returns the strings of the list at a path; other items are left out."""
    found = value(obj, *path)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def string(obj: Object, *path: str) -> str:
    """Returns the string at a path; an empty one where there is none."""
    found = value(obj, *path)
    return found if isinstance(found, str) else ""


def integer(obj: Object, *path: str) -> int | None:
    """Returns the integer at a path; None where there is none."""
    found = value(obj, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def labels(obj: Object, *path: str) -> Mapping[str, str]:
    """Returns the string values of the mapping at a path."""
    return {key: text for key, text in mapping(obj, *path).items() if isinstance(key, str) and isinstance(text, str)}


def moment(obj: Object, *path: str) -> datetime | None:
    """Returns the RFC 3339 time at a path, in UTC; None where there is none."""
    return parse_time(string(obj, *path))


def parse_time(text: str) -> datetime | None:
    """Returns a time as the Kubernetes API writes it (RFC 3339, UTC); None if it is not one."""
    if not _TIME.fullmatch(text):
        return None
    whole, _, fraction = text.removesuffix("Z").partition(".")
    try:
        found = datetime.fromisoformat(whole).replace(tzinfo=UTC)
    except ValueError:
        return None
    return found.replace(microsecond=int(f"{fraction:0<6}"[:6])) if fraction else found


def one_line(text: str, otherwise: str = "") -> str:
    """Returns a text with each run of white space as one space; `otherwise` for a blank one."""
    return " ".join(text.split()) or otherwise
