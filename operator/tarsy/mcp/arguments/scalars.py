"""Reads values that have no quotes, and no type in a schema."""

import math
import re
from typing import Any

_INTEGER = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})", re.ASCII)
_FLOAT = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


def coerce(text: str) -> Any:
    """Reads a value without a type: quoted text, a boolean, null, a number, or the text itself."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case "null" | "none":
            return None
    if len(text) <= 70:
        if _INTEGER.fullmatch(text):
            return int(text)
        if not _has_leading_zero(text) and _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
            return number
    return text


def _has_leading_zero(text: str) -> bool:
    digits = text.lstrip("+-")
    return (len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()) or digits.isdigit()
