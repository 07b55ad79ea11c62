"""Cleans text and JSON that is written to columns (`tarsy.record.text`).

All text from outside is cleaned here, even if it was cleaned where it was received.
"""

import re
from typing import Any

import orjson

from tarsy.record.text import clean

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
