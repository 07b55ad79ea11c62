"""Finds values in JSON documents by JSON pointers (RFC 6901)."""

from typing import Any

_MOST_DIGITS = 9


def find_pointer(document: Any, pointer: str) -> Any:
    """Returns the value at a place of a document; None: there is none.

    Args:
        document: of parsed JSON.
        pointer: such as /alert/name or /alerts/0; empty: the document itself.
    """
    found = document
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and len(name) <= _MOST_DIGITS and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found
