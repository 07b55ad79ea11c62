"""Renders the ReAct parts of the messages: the format, the tools, and how to conclude.

Tools are not bound to the call, so all that a model knows of them stands here: names, descriptions, parameters with
their types. Descriptions come from tool servers, hence the fence.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tarsy.engine.prompts.builder import conclusion_message
from tarsy.engine.prompts.example import example_call
from tarsy.engine.prompts.fence import fence
from tarsy.engine.prompts.template import template
from tarsy.record.messages import Message, ToolDefinition


def react_section(tools: Sequence[ToolDefinition]) -> str:
    """The section of the system message that explains the format and lists the tools."""
    if not tools:
        return template("react_no_tools").substitute(tools="No tools are currently available.")
    listed = fence("AVAILABLE_TOOLS", "\n\n".join(_tool(tool) for tool in tools))
    return template("react").substitute(example=example_call(tools), tools=listed)


def react_conclusion_message(
    iterations: int, *, requested: bool, budget: str | None = None, repeats: bool = False
) -> Message:
    """Asks for a conclusion in the form of ReAct.

    Args:
        iterations: model calls so far.
        requested: whether a person asked for it.
        budget: which budget is used up, with figures; None when none is.
        repeats: whether the model asked for the same results again and again.
    """
    message = conclusion_message(iterations, requested=requested, budget=budget, repeats=repeats)
    return Message(message.role, f"{message.content}\n\n{template('react_conclude').substitute()}")


def _tool(tool: ToolDefinition) -> str:
    lines = [f"- {_line(tool.name)}: {_line(tool.description)}", *_parameters(tool.parameters_schema)]
    return "\n".join(lines)


def _parameters(schema: Mapping[str, Any]) -> Iterator[str]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not properties:
        yield "  Parameters: none"
        return
    needed = set(required) if isinstance(required, list) else set()
    yield "  Parameters:"
    for name, said in properties.items():
        said = said if isinstance(said, dict) else {}
        kind = "required" if name in needed else "optional"
        description = _line(said.get("description", ""))
        yield f"  - {_line(name)} ({_type(said)}, {kind}){': ' + description if description else ''}"


def _type(schema: Mapping[str, Any]) -> str:
    """A parameter's type in a few words."""
    match schema:
        case {"enum": [*values]}:
            return "one of " + ", ".join(_line(value) for value in values)
        case {"type": "array", "items": {"type": str() as item}}:
            return f"array of {_line(item)}"
        case {"type": [*kinds]}:
            return " or ".join(_line(kind) for kind in kinds)
        case {"type": kind}:
            return _line(kind)
        case {"anyOf": [*branches]} | {"oneOf": [*branches]}:
            return " or ".join(_type(branch) for branch in branches if isinstance(branch, dict) and "type" in branch)
        case _:
            return "any"


def _line(text: object) -> str:
    """Text of a tool server on one line: what is listed cannot look like another entry of the list."""
    return " ".join(str(text).split())
