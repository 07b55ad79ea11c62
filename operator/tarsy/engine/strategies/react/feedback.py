"""Renders the feedback to a model whose answer cannot be acted on."""

from collections.abc import Sequence

from tarsy.engine.prompts.example import example_call
from tarsy.llm import ToolDefinition

_REMINDER = """\
Remember:
1. Every header needs a colon: "Thought:", "Action:", "Action Input:", "Final Answer:".
2. Each section starts on a new line.
3. Stop after "Action Input:". Never write an "Observation:" yourself.
4. An answer is either one tool call or a Final Answer, never both."""
_TO_CALL = """\
To call a tool (without parameters, Action Input is {}):
"""
_TO_CONCLUDE = """\
To conclude:
Thought: The evidence is enough to say what happened.
Final Answer: your complete analysis"""

NO_INPUT = (
    'Your answer has "Action:" but is missing "Action Input:". Every "Action:" MUST be followed by "Action Input:", '
    "even when the tool takes no parameters (leave it empty, or write {})."
)
NO_ACTION = (
    'Your answer has "Action Input:" but is missing "Action:". "Action Input:" must be preceded by "Action:" with the '
    "name of one of your tools."
)
ONLY_THOUGHT = (
    'Your answer has only a "Thought:". A thought must be followed by either a tool call ("Action:" and '
    '"Action Input:") or a conclusion with "Final Answer:".'
)
NOTHING = "Could not detect any ReAct sections in your answer. Use the exact format below."


def format_error(text: str, tools: Sequence[ToolDefinition] = ()) -> str:
    """One of the sentences above, or another, with the reminder of the format, its example one of `tools`."""
    return f"FORMAT ERROR: {text}\n\n{reminder(tools)}"


def reminder(tools: Sequence[ToolDefinition]) -> str:
    """The rules of the format, with a call of one of `tools` and a conclusion as examples."""
    example = example_call(tools)
    return "\n\n".join([_REMINDER, *([_TO_CALL + example] if example else []), _TO_CONCLUDE])


def incomplete(found: Sequence[str], missing: Sequence[str], why: str = "") -> str:
    """Feedback on an answer with sections missing, in none of the usual ways.

    Args:
        found: sections that are there.
        missing: sections that are not.
        why: a sentence with the reason, if one is known.
    """
    reason = f" {why}" if why else ""
    return f"Incomplete ReAct format.{reason} Found: {', '.join(found) or 'nothing'}. Missing: {', '.join(missing)}."


def unknown_tool(name: str, near: Sequence[str], tools: Sequence[ToolDefinition]) -> str:
    """Feedback on a tool that does not exist, or could be one of several.

    Args:
        name: as the model wrote it.
        near: names that the model may have meant.
        tools: all tools of the agent; they are always listed completely.
    """
    text = f"Unknown tool '{name}'. Action is the name of one of the available tools, as it is listed."
    if near:
        text += f" Did you mean {' or '.join(near)}?"
    return f"{text}\n{tool_list(tools)}"


def tool_list(tools: Sequence[ToolDefinition]) -> str:
    """All tools with their descriptions."""
    if not tools:
        return "No tools are currently available."
    return "Available tools:\n" + "\n".join(f"  - {tool.name}: {_one_line(tool.description)}" for tool in tools)


def _one_line(text: str) -> str:
    return " ".join(text.split())
