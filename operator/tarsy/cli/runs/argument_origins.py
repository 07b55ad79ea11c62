"""Renders where the arguments of a tool call come from, for a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_MOST = 8


def origins_text(found: object) -> str:
    """Returns the origins of arguments as a timeline event has them, in one line; empty: none are known.

    Args:
        found: the metadata `provenance` of an event of a tool call.
    """
    lines = origin_lines(found)
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return "; ".join([*lines[:_MOST], *more])


def origin_lines(found: object) -> Sequence[str]:
    """Returns one line for each argument, destinations marked.

    Args:
        found: `provenance` of an event or of a ToolApproval.
    """
    items = found if isinstance(found, list | tuple) else ()
    return [_told(one) for one in items if isinstance(one, Mapping)]


def _told(one: Mapping[str, Any]) -> str:
    origins = one.get("origins")
    words = ", ".join(str(origin) for origin in origins) if isinstance(origins, Iterable) else ""
    return f"{one.get('argument', '')}{' (destination)' if one.get('destination') else ''} from {words}"
