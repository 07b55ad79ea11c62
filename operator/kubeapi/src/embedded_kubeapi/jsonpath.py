"""Implements the JSONPath of Kubernetes, for printer columns and selectable fields.

Fields, quoted fields and unions of them, indices, slices, `*`, and filters that compare a field of an item with a
literal or ask whether it is there (k8s.io/client-go/util/jsonpath). No recursion (`..`): columns may not use it well.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_TOKEN = re.compile(
    r"""\.?(?P<field>(?:[A-Za-z0-9_\-$]|\\.)+)
      | \[\s*'(?P<quoted>(?:[^'\\]|\\.)*)'\s*\] | \[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]
      | \[\s*(?P<union>'[^'\\]*'(?:\s*,\s*'[^'\\]*')+)\s*\]
      | \.?\*|\[\s*(?P<star>\*)\s*\]
      | \[\s*(?P<slice>-?\d*\s*:\s*-?\d*)\s*\]
      | \[\s*(?P<index>-?\d+)\s*\]
      | \[\?\(\s*@(?P<left>[^=!<>()]*?)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<literal>[^)]*?))?\s*\)\]""",
    re.VERBOSE,
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
Step = Callable[[Any], Iterator[Any]]


class BadPath(ValueError):
    """The text is not a supported JSONPath."""


@dataclass(frozen=True)
class JsonPath:
    """A parsed path."""

    steps: tuple[Step, ...]

    def find(self, obj: Any) -> list[Any]:
        """Returns all values that the path selects."""
        found = [obj]
        for step in self.steps:
            found = [after for before in found for after in step(before)]
        return found


@lru_cache(maxsize=2048)
def parse(text: str) -> JsonPath:
    """Parses a path such as `.status.conditions[?(@.type=="Ready")].status`; braces around it are allowed.

    Raises:
        BadPath: it cannot be parsed.
    """
    path = text.strip()
    if path.startswith("{") and path.endswith("}"):
        path = path[1:-1]
    path = path.removeprefix("$")
    steps, at = [], 0
    while at < len(path):
        if path[at:] == ".":
            break
        match = _TOKEN.match(path, at)
        if match is None:
            raise BadPath(f"unexpected {path[at:]!r} in the JSONPath {text!r}")
        steps.append(_step(match))
        at = match.end()
    return JsonPath(tuple(steps))


def _step(match: re.Match[str]) -> Step:
    for group in ("field", "quoted", "double"):
        if (name := match[group]) is not None:
            return _field(re.sub(r"\\(.)", r"\1", name))
    if match["union"] is not None:
        fields = [_field(part.strip()[1:-1]) for part in match["union"].split(",")]
        return lambda v: (found for field in fields for found in field(v))
    if match["index"] is not None:
        index = int(match["index"])
        return lambda v: iter(v[index : index + 1 or None] if isinstance(v, list) else ())
    if match["slice"] is not None:
        low, high = (int(part) if part.strip() else None for part in match["slice"].split(":"))
        return lambda v: iter(v[low:high] if isinstance(v, list) else ())
    if match["left"] is not None:
        return _filter(parse(match["left"]), match["op"], match["literal"])
    return lambda v: iter(v.values() if isinstance(v, dict) else v if isinstance(v, list) else ())


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _filter(left: JsonPath, op: str | None, literal: str | None) -> Step:
    expected = _literal(literal or "")

    def holds(item: Any) -> bool:
        found = left.find(item)
        if op is None:
            return bool(found)
        try:
            return bool(found) and _COMPARE[op](found[0], expected)
        except TypeError:
            return False

    return lambda v: (item for item in (v if isinstance(v, list) else ()) if holds(item))


def _literal(text: str) -> Any:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text
