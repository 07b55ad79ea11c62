"""From the text a model wrote to the arguments of a tool: a cascade in which the first form that fits wins.

The forms are those of seed 004, "ActionInput Parameter Parsing" (reference section 3.5). Two decisions: YAML is read
as a tree of text that goes through the same coercion as `key: value` (so neither dates nor `12:30:45` nor `no` turn
into something else), and a part without a key belongs to the value before it, so nothing the model wrote is lost.
Every step is linear in the text, and none raises.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

import yaml

_YAML_LIMIT = 16 * 1024
_COMPLEX = re.compile(r"\n[ \t]*-|\n  [^\n]*:|: [\[{]")
_PAIR = re.compile(r"\s*([A-Za-z_][\w.-]*)[ \t]*([:=])")
_INTEGER = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})", re.ASCII)
_FLOAT = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?", re.ASCII)


def parse_arguments(text: str) -> dict[str, Any]:
    """Reads a tool call's arguments.

    Args:
        text: What the model wrote: JSON, or nearly.

    Returns:
        The arguments; `{"input": ...}` when the text is one bare value.
    """
    text = text.strip()
    if not text:
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return read_yaml(text) or _from_pairs(text) or {"input": text}
    return value if isinstance(value, dict) else {"input": value}


def is_sendable(arguments: dict[str, Any]) -> bool:
    """Whether the arguments can be put on the wire (no half surrogates, no infinities)."""
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def coerce(text: str) -> Any:
    """What a value without a type means: quoted text, a boolean, null, a number, or itself."""
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


class _Composer(yaml.SafeLoader):
    """Composes a tree without aliases: they would make the result exponentially larger than the text."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def read_yaml(text: str, scalar: Callable[[str], Any] = coerce) -> dict[str, Any] | None:
    """Reads text that looks like nested YAML.

    Args:
        text: What the model wrote.
        scalar: Turns a scalar without quotes into its value.

    Returns:
        The mapping; None when the text is something else.
    """
    if len(text) > _YAML_LIMIT or not _COMPLEX.search(text):
        return None
    try:
        value = _plain(yaml.compose(text, Loader=_Composer), scalar)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _plain(node: yaml.Node | None, scalar: Callable[[str], Any]) -> Any:
    if isinstance(node, yaml.MappingNode):
        if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise ValueError("a key is not text")
        return {key.value: _plain(value, scalar) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, scalar) for item in node.value]
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.style else scalar(node.value)
    return None


def _from_pairs(text: str) -> dict[str, Any] | None:
    pairs: list[tuple[str, list[str]]] = []
    separator = ""
    for part in re.split(r"([,\n])", text):
        if part in {",", "\n"}:
            separator = part
            continue
        if found := _PAIR.match(part):
            pairs.append((found[1], [part[found.end() :]]))
        elif pairs:
            pairs[-1][1].extend((separator, part))
        elif part.strip():
            return None
    return {key: coerce("".join(parts).rstrip(", \t\r\n")) for key, parts in pairs} or None
