"""Cleans text and JSON that is written to columns (`tarsy.record.text`).

All text from outside is cleaned here, even if it was cleaned where it was received.
"""

import re
from typing import Any

import orjson

from tarsy.record.text import clean

_NUMBERS = re.compile(rb"\de[+\d]|-0\.0")
"""Numbers that jsonb may give back in another form; also matches in texts, which costs time only."""

_SUSPECT = re.compile(rb"\\u00|\\[bfr]|[\x7f-\xff]")


def clean_or_none(text: str | None) -> str | None:
    """Applies `clean` to text that may be absent."""
    return None if text is None else clean(text)


def dump_json(value: Any) -> bytes:
    """Returns `value` as JSON with cleaned strings, as Postgres accepts it; strings are walked only when necessary."""
    try:
        dumped = orjson.dumps(value)
    except orjson.JSONEncodeError:  # a lone surrogate, or what is not JSON at all: then the second try raises
        return orjson.dumps(_clean_json(value))
    if _SUSPECT.search(dumped):
        return orjson.dumps(_clean_json(value))
    return dumped


def as_stored(value: Any) -> Any:
    """Returns a JSON value as a column of type jsonb gives it back: strings cleaned, whole numbers without exponent."""
    if value is None or isinstance(value, str | int):
        return clean(value) if isinstance(value, str) else value
    if not isinstance(value, dict | list | tuple):
        return value
    dumped = dump_json(value)
    if _NUMBERS.search(dumped):
        return _plain_numbers(orjson.loads(dumped))
    return orjson.loads(dumped) if _SUSPECT.search(dumped) else value


def _plain_numbers(value: Any) -> Any:
    match value:
        case float() if value.is_integer() and (value == 0 or abs(value) >= 1e16):
            return int(value) if value else 0.0
        case dict():
            return {key: _plain_numbers(part) for key, part in value.items()}
        case list():
            return [_plain_numbers(part) for part in value]
        case _:
            return value


def _clean_json(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(str(key)): _clean_json(part) for key, part in value.items()}
        case list() | tuple():
            return [_clean_json(part) for part in value]
        case _:
            return value
