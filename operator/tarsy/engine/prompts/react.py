"""What ReAct adds to the messages: the format, the tools, and how to conclude.

Tools are not bound to the call, so all that a model knows of them stands here: names, descriptions, parameters with
their types. Descriptions come from tool servers, hence the fence.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tarsy.engine.prompts.builder import conclusion_message, template
from tarsy.engine.prompts.fence import fence
from tarsy.record.messages import Message, ToolDefinition


def react_section(tools: Sequence[ToolDefinition]) -> str:
    """The section of the system message that explains the format and lists the tools."""
    listed = "\n\n".join(_tool(tool) for tool in tools) or "No tools are currently available."
    return template("react").substitute(tools=fence("AVAILABLE_TOOLS", listed))


def react_conclusion_message(iterations: int, *, requested: bool) -> Message:
    """Asks for a conclusion in the form of ReAct; `requested` when a person asked for it."""
    message = conclusion_message(iterations, requested=requested)
    return Message(message.role, f"{message.content}\n\n{template('react_conclude').substitute()}")


def _tool(tool: ToolDefinition) -> str:
    lines = [f"- {tool.name}: {' '.join(tool.description.split())}", *_parameters(tool.parameters_schema)]
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
        description = " ".join(str(said.get("description", "")).split())
        yield f"  - {name} ({_type(said)}, {kind}){': ' + description if description else ''}"


def _type(schema: Mapping[str, Any]) -> str:
    """A parameter's type in a few words."""
    match schema:
        case {"enum": [*values]}:
            return "one of " + ", ".join(str(value) for value in values)
        case {"type": "array", "items": {"type": str() as item}}:
            return f"array of {item}"
        case {"type": [*kinds]}:
            return " or ".join(str(kind) for kind in kinds)
        case {"type": kind}:
            return str(kind)
        case {"anyOf": [*branches]} | {"oneOf": [*branches]}:
            return " or ".join(_type(branch) for branch in branches if isinstance(branch, dict) and "type" in branch)
        case _:
            return "any"
