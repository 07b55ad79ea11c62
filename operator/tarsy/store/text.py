"""Text as it may be stored: without control characters and without halves of surrogate pairs.

Postgres refuses NUL, terminals obey the others, and UTF-8 has no lone surrogates. Everything from outside passes
here on its way into a column (DESIGN section 7: "control characters are stripped on write"). Nothing is shortened.
"""

import re
from typing import Any

import orjson

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUSPECT = re.compile(rb"\\u00|\\[bfr]|[\x7f-\xff]")


def clean(text: str) -> str:
    """`text` without control characters (newline and tab stay) and with lone surrogates replaced by U+FFFD."""
    if _CONTROL.search(text):
        text = _CONTROL.sub("", text)
    if not text.isascii() and _SURROGATE.search(text):
        text = _SURROGATE.sub("�", text)
    return text


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
