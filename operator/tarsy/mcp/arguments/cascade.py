"""Reads the arguments of a tool call: a cascade in which the first form that fits wins.

JSON, JSON with something around it or nearly JSON, nested YAML, pairs, and at last the text itself as `input`. Types
are settled afterwards, by the tool's schema where it has an opinion. A part without a key belongs to the value before
it, so nothing the model wrote is lost. Every step is linear in the text.
"""

import json
import re
from typing import Any, NoReturn

from tarsy.mcp.arguments import pairs, relaxed
from tarsy.mcp.arguments.relaxed import Bare, NotRelaxed
from tarsy.mcp.arguments.settle import Number, settle
from tarsy.mcp.arguments.shape import Shape
from tarsy.mcp.arguments.yaml_tree import read_yaml

_FENCE = re.compile(r"```[ \t]*(?:json[5c]?|ya?ml|te?xt|plaintext|python|toml|tool_code)?[ \t]*\n?", re.I)
_INVENTED = re.compile(r"(?<=\s)Observation:")


class _NoNumber(ValueError):
    """A NaN or an infinity, which JSON does not have."""


def _refuse(constant: str) -> NoReturn:
    raise _NoNumber(constant)


_DECODER = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=_refuse, strict=False)


def parse_arguments(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Reads the arguments of a function call: JSON is taken as it is, any other form goes through the cascade.

    Args:
        text: what the model wrote.
        schema: the tool's JSON schema; empty when nothing is known of it.

    Returns:
        The arguments; `{"input": ...}` when the text is one bare value. Never raises.
    """
    text = text.strip()
    if not text:
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse)
    except _NoNumber:
        return {"input": text}
    except (ValueError, RecursionError) as error:
        if text[0] in "{[" and isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
            return {"input": text}  # perhaps two calls run together: which one is meant is not guessed
        return read_arguments(text, schema)
    return value if isinstance(value, dict) else {"input": value}


def is_sendable(arguments: dict[str, Any]) -> bool:
    """Whether the arguments can be put on the wire (no half surrogates, no infinities)."""
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def read_arguments(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Reads arguments that a model wrote as text, and gives them the types of the schema; never raises.

    Args:
        text: what the model wrote.
        schema: the tool's JSON schema; empty when nothing is known of it.

    Returns:
        The arguments; `{"input": ...}` when the text is one value without a name.
    """
    body = _bare(text.strip())
    if not body:
        return {}
    try:
        shape = Shape(schema)
        found, value = _structure(body)
        if not found:
            value = _flat(body, shape)
        if not isinstance(value, dict):
            return {"input": settle(value, Shape(None))}
        read = settle(value, shape)
    except (ValueError, TypeError, RecursionError):
        return {"input": body}
    return read if isinstance(read, dict) else {"input": read}


def _bare(text: str) -> str:
    """The text without a code fence or backticks around it."""
    if text.startswith("```"):
        found = _FENCE.match(text)
        text = text[found.end() :] if found else text
        if not text.lstrip().startswith(("{", "[")):
            text = text.partition("```")[0]
    elif text.startswith("`"):
        text = text.strip("`")
    return text.strip()


def _structure(text: str) -> tuple[bool, Any]:
    """A JSON value, whether strict, relaxed, in a fence further down, or followed by something else."""
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        pass
    else:
        if not text[end:].strip("` \t\n"):
            return True, _unwrapped(value)
        if isinstance(value, dict | list):
            return True, value
    start = 0
    if not text.startswith(("{", "[")):
        start = next((f.end() for f in [re.search(r"^```(?:json)?[ \t]*\n[ \t]*(?=\{)", text, re.M)] if f), -1)
    if start < 0:
        return False, None
    try:
        return True, relaxed.read_relaxed(text, start)[0]
    except NotRelaxed:
        return False, None


def _unwrapped(value: Any) -> Any:
    """Returns the content of a JSON string that contains a JSON object."""
    if isinstance(value, str) and not isinstance(value, Number) and value.lstrip().startswith("{"):
        try:
            inner = _DECODER.decode(value)
        except (ValueError, RecursionError):
            return value
        return inner if isinstance(inner, dict) else value
    return value


def _flat(text: str, shape: Shape) -> Any:
    text = _INVENTED.split(text, maxsplit=1)[0].rstrip().removesuffix("**").rstrip()
    return read_yaml(text, Bare) or pairs.read_pairs(text, shape) or text
