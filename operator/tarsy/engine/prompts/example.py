"""Makes an example of a ReAct tool call from a tool that the agent really has.

Models copy examples letter by letter: a placeholder for a tool's name comes back as a name (`server.kubernetes.get`).
The tool is the one that needs the fewest parameters, and values are concrete. Names come from tool servers, so only
plain ones are shown.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from tarsy.record.messages import ToolDefinition

_TOOL = re.compile(r"[\w./:-]{1,128}", re.ASCII)
_PARAMETER = re.compile(r"[\w.-]{1,64}", re.ASCII)
_PLAIN = re.compile(r"[\w ./:-]{1,64}", re.ASCII)
_USUAL = {"namespace": "default", "kind": "Pod", "name": "example", "pod": "example"}
_OF_TYPE: dict[str, Any] = {"integer": 10, "number": 10, "boolean": True, "array": [], "object": {}}


def example_call(tools: Sequence[ToolDefinition]) -> str:
    """A call of one of `tools` in the form of ReAct; empty where no tool has a plain name."""
    shown = [(arguments, tool.name) for tool in tools if (arguments := _arguments(tool)) is not None]
    shown = shown or [({}, tool.name) for tool in tools if _TOOL.fullmatch(tool.name)]
    if not shown:
        return ""
    arguments, name = min(shown, key=lambda found: (len(found[0]), found[1]))
    return f"Thought: I look at the system before I conclude.\nAction: {name}\nAction Input: {json.dumps(arguments)}"


def _arguments(tool: ToolDefinition) -> dict[str, Any] | None:
    """Arguments for what the tool requires; None for a tool that is not fit to be shown."""
    schema = tool.parameters_schema
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, dict) else {}
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    if not _TOOL.fullmatch(tool.name) or not all(map(_PARAMETER.fullmatch, names)):
        return None
    return {name: _value(name, known.get(name)) for name in names}


def _value(name: str, schema: object) -> Any:
    match schema:
        case {"enum": [str() as first, *_]} | {"default": str() as first} | {"examples": [str() as first, *_]} if (
            _PLAIN.fullmatch(first)
        ):
            return first
        case {"type": str() as kind} if kind in _OF_TYPE:
            return _OF_TYPE[kind]
        case _:
            return _USUAL.get(name, "example")
