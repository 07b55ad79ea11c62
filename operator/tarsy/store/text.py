"""Columns and JSON under the one rule for text (`tarsy.record.text`).

Everything from outside passes here on its way into a column (DESIGN section 7: "control characters are stripped on
write"), also what was cleaned where it came in.
"""

import re
from typing import Any

import orjson

from tarsy.record.text import clean

_SUSPECT = re.compile(rb"\\u00|\\[bfr]|[\x7f-\xff]")


def clean_or_none(text: str | None) -> str | None:
    """`clean` for text that may be absent."""
    return None if text is None else clean(text)


def dump_json(value: Any) -> bytes:
    """`value` as JSON that Postgres takes: every string in it cleaned, which costs a walk only where it is needed."""
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
