"""Normalizes answers to lines: sorted `path = value` for JSON, trimmed columns for text, no values that vary by run.

JSON is flattened so that a difference is one line that says where it is, however deep.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

# Fields whose value differs in each run, by their last name.
_VARYING = {
    "resourceVersion": "RV", "continue": "CONTINUE", "token": "TOKEN", "storageVersionHash": "HASH", "hash": "HASH",
    "serverAddress": "ADDRESS", "serverRelativeURL": "URL", "pod-template-hash": "HASH", "clusterIP": "IP",
    "caBundle": "CA", "ca.crt": "CA",
}  # fmt: skip
_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"), "TOKEN"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "TIME"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"\b10(\.\d{1,3}){3}\b"), "IP"),
    (re.compile(r"/tmp/[\w./-]+"), "FILE"),
    (re.compile(r"([Rr]esource ?[Vv]ersion:?\s*)\d+( \(\d+\))?(, current: \d+)?"), r"\1RV"),
)
_AGE = re.compile(r"(?<!\S)(\d+[smhdy])+(?!\S)")


def words(text: str) -> str:
    """A text without uids, times, tokens and addresses."""
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    return text


def text_lines(text: str) -> list[str]:
    """What a person sees: columns two spaces apart whatever their width, ages as AGE, no blank lines at the end."""
    lines = [re.sub(r" {2,}", "  ", _AGE.sub("AGE", words(line))).rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def value_lines(value: Any, forget: Sequence[str] = ()) -> list[str]:
    """Each leaf of a JSON value as `path = value`."""
    return [f"{path or '.'} = {_shown(path, leaf)}" for path, leaf in _leaves(value, "") if not _in(path, forget)]


def shape_lines(value: Any, forget: Sequence[str] = ()) -> list[str]:
    """Each path that occurs with the types that it has; the items of a list are one."""
    found: dict[str, set[str]] = {}
    for path, leaf in _leaves(value, ""):
        path = re.sub(r"\[\d+\]", "[]", path)
        if not _in(path, forget):
            found.setdefault(path, set()).add(_type(leaf))
    return sorted(f"{path or '.'}: {' | '.join(sorted(types))}" for path, types in found.items())


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key in sorted(value):
            shown = key if re.fullmatch(r"[\w$-]+", key) else f"[{json.dumps(key)}]"
            yield from _leaves(value[key], f"{path}.{shown}" if path and not shown.startswith("[") else path + shown)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _in(path: str, forget: Sequence[str]) -> bool:
    plain = re.sub(r"\[\d*\]", "[]", path)
    return any(plain == prefix or plain.startswith((f"{prefix}.", f"{prefix}[")) for prefix in forget)


def _shown(path: str, leaf: Any) -> str:
    if not isinstance(leaf, str):
        return json.dumps(leaf)
    name = path.rpartition(".")[2]
    if leaf and name in _VARYING:
        return _VARYING[name]
    cleaned = words(leaf)
    return json.dumps("AGE" if _AGE.fullmatch(leaf) else cleaned, ensure_ascii=False)


def _type(leaf: Any) -> str:
    match leaf:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "[]"
        case _:
            return "{}"
