"""Gives values the types of their tool's schema; where it is silent, text is coerced.

A number keeps the text it was written as until its type is known, so `version: 1.10` can still become "1.10". What
does not fit its type is left alone: the check against the schema tells the model, better than a guess would.
"""

import math
import re
from typing import Any

from tarsy.mcp.arguments import relaxed
from tarsy.mcp.arguments.relaxed import Bare, NotRelaxed
from tarsy.mcp.arguments.scalars import coerce
from tarsy.mcp.arguments.shape import Shape

_INTEGER = re.compile(r"[+-]?\d{1,18}(?:\.0{1,18})?", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}


class Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


def settle(value: Any, shape: Shape) -> Any:
    """Gives a value, and all in it, its type."""
    match value:
        case Number():
            return str(value) if shape.is_text else _number(value)
        case Bare():
            return _typed(value, shape)
        case str():
            return _requoted(value, shape)
        case bool() if shape.is_text:
            return "true" if value else "false"
        case dict():
            return {str(key): settle(item, shape.property(key)) for key, item in value.items()}
        case list():
            items = shape.items()
            return [settle(item, items) for item in value]
        case _:
            return value


def _number(written: str) -> Any:
    if "." in written or "e" in written or "E" in written:
        number = float(written)
        return number if math.isfinite(number) else str(written)
    return int(written) if len(written) < 4000 else str(written)


def _requoted(text: str, shape: Shape) -> Any:
    """Quoted text stays text, unless its type is another one that it can be read as: "3" where a number belongs."""
    if not shape.types or "string" in shape.types:
        return text
    value = _typed(text, shape)
    return text if isinstance(value, str) else value


def _typed(written: str, shape: Shape) -> Any:
    text, types = str(written).strip(), shape.types
    word = text.lower()
    if not types:
        return coerce(text)
    if "null" in types and word in {"null", "none"}:
        return None
    if shape.is_text:
        return _unquoted(text)
    if "boolean" in types and word in _BOOLEANS and ("string" not in types or word in {"true", "false"}):
        return _BOOLEANS[word]
    if "integer" in types and _INTEGER.fullmatch(text):
        return int(text.partition(".")[0])
    if "number" in types and _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return int(text) if _INTEGER.fullmatch(text) and "." not in text else number
    if "string" in types:
        return _unquoted(text)
    if "array" in types or "object" in types:
        return _collection(text, shape)
    return coerce(text)


def _collection(text: str, shape: Shape) -> Any:
    try:
        value, end = relaxed.read_relaxed(text)
        if not text[end:].strip():
            return settle(value, shape)
    except NotRelaxed:
        pass
    if "array" in shape.types and text and text[0] not in "[{":
        return [settle(Bare(item.strip()), shape.items()) for item in text.split(",")]
    return _unquoted(text)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text
