"""Renders the result of a tool call for a model.

Every result begins with one line that names its call, the same in a conversation and in a context made of one, because
models do not see the ids of the wire and a citation needs one. It stands first: what shortens a long result keeps it.
"""

from tarsy.engine.prompts.fence import fence, inline, readable
from tarsy.record.messages import ToolOutcome


def result_header(ref: str, tool: str, *, is_error: bool = False) -> str:
    """The line that names a call.

    Args:
        ref: what the call is cited with (`tarsy.record.ids.call_ref`).
        tool: `server.tool`, as the model wrote it.
        is_error: whether the call failed.
    """
    return f"[callId: {inline(ref)}] {inline(tool)}{' (error)' if is_error else ''}"


def tool_text(ref: str, tool: str, outcome: ToolOutcome) -> str:
    """Returns the content of a tool message. The message has its own role, so the result needs no fence.

    Of a result with other characters than ASCII, those that nobody sees are left out, and look-alikes of fence marks
    are broken.

    Args:
        ref: id that citations of the call use (`tarsy.record.ids.call_ref`).
        tool: `server.tool`, as the model wrote it.
        outcome: result or error of the call.
    """
    text = outcome.content if outcome.content.isascii() else readable(outcome.content)
    return f"{result_header(ref, tool, is_error=outcome.is_error)}\n{text}"


def observation_text(ref: str, tool: str, outcome: ToolOutcome) -> str:
    """Returns the content of a ReAct observation. It is a user message, so the result is fenced.

    The text of a skill is not: it is no data.

    Args:
        ref: id that citations of the call use (`tarsy.record.ids.call_ref`).
        tool: `server.tool`, as the model wrote it.
        outcome: result or error of the call.
    """
    if outcome.skills:
        return f"Observation: {result_header(ref, tool)}\n{readable(outcome.content)}"
    error = f"Error executing {inline(tool)}:\n" if outcome.is_error else ""
    return f"Observation: {result_header(ref, tool)}\n{error}{fence('TOOL_RESULT', outcome.content)}"
