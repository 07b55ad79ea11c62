"""Abbreviates lists of names for columns that kubectl prints."""

from collections.abc import Sequence

MAX_BRIEF = 64
"""Maximum characters of the alert types column."""


def in_brief(names: Sequence[str], limit: int = MAX_BRIEF) -> str | None:
    """Returns the names joined by commas, abbreviated to the first ones and the number of the rest; None without a
    name.

    Args:
        names: names to join.
        limit: maximum characters of the result.
    """
    if not names:
        return None
    for count in range(len(names), 0, -1):
        more = f", +{len(names) - count}" if count < len(names) else ""
        text = ", ".join(names[:count]) + more
        if len(text) <= limit:
            return text
    more = f"…, +{len(names) - 1}" if len(names) > 1 else "…"
    return names[0][: limit - len(more)] + more
