"""Takes tool calls from the text of a model that was offered functions, where the text can only be meant as calls.

Taken is what ends the answer in one of the forms of `tarsy.engine.strategies.written`, names tools that the agent has,
and is not a repetition of what the model was shown: an alert or a tool result that holds the text of a call must not
make it happen by being quoted. A call that is taken is a call like any other: policies, limits and the record hold.
Its id begins with `text_call_`, which is how the record tells where it came from.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tarsy.engine.prompts.fence import inline
from tarsy.engine.strategies.react.names import ToolIndex
from tarsy.engine.strategies.written import Written, read_written
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition

_PREFIX = "text_call_"
_BETWEEN = 40
"""Characters between the name and the arguments of a call, blanks and quotation marks left out."""
_OCCURRENCES = 2_000
_INSIGNIFICANT = re.compile(r"[\s\\\"'`]+")


@dataclass(frozen=True, slots=True)
class TakenCalls:
    """The calls of a text, and the text that is left of it."""

    calls: tuple[ToolCall, ...]
    text: str


def take_calls(text: str, tools: Sequence[ToolDefinition], shown: Sequence[Message], salt: UUID) -> TakenCalls | None:
    """The calls that a text ends with; None where there are none, or where they must not be made.

    Args:
        text: the whole answer.
        tools: the tools that are bound to the model call.
        shown: what the model was sent.
        salt: the model call: the same answer to the same call gives the same ids.
    """
    written = read_written(text)
    if written is None or is_quoted(written, shown):
        return None
    index = ToolIndex(tools)
    names = [index.resolve(call.name, forgiving=False) for call in written.calls]
    if not tools or not all(found.tool for found in names):
        return None
    calls = tuple(
        ToolCall(_identity(salt, place), found.name if found.tool is None else found.tool.name, call.arguments)
        for place, (found, call) in enumerate(zip(names, written.calls, strict=True))
    )
    return TakenCalls(calls, written.before)


def why_not_taken(text: str, tools: Sequence[ToolDefinition]) -> str | None:
    """Why the calls that a final answer ends with were not made, as a clause; None where it ends with none."""
    written = read_written(text)
    if written is None:
        return None
    index = ToolIndex(tools)
    for call in written.calls:
        if index.resolve(call.name, forgiving=False).tool is None:
            return f'"{inline(call.name)}" is not a tool that you have'
    return "it repeats text of the alert or of a tool result"


def is_written(call_id: str) -> bool:
    """Whether a call with this id was written as text."""
    return call_id.startswith(_PREFIX)


def is_quoted(written: Written, shown: Sequence[Message]) -> bool:
    """Whether a call of a text stands as a call in what the model was shown, however it is spaced and quoted there.

    `tool({...})` is how the history of an investigation tells a call that was made, and is none to repeat.
    """
    texts = [_significant(m.content) for m in shown if m.role in (Role.USER, Role.TOOL)]
    pairs = [(_significant(call.name), _significant(call.arguments)) for call in written.calls]
    return any(_holds(text, name, arguments) for text in texts for name, arguments in pairs)


def _holds(text: str, name: str, arguments: str) -> bool:
    place = text.find(name)
    for _ in range(_OCCURRENCES):
        if place < 0:
            return False
        end = place + len(name)
        if not text.startswith("(", end) and arguments in text[end : end + _BETWEEN + len(arguments)]:
            return True
        place = text.find(name, end)
    return True  # a text that repeats a name so often is not to be trusted with it


def _significant(text: str) -> str:
    """A text without blanks, quotation marks and backslashes: JSON in JSON has more of them."""
    return _INSIGNIFICANT.sub("", text)


def _identity(salt: UUID, place: int) -> str:
    return _PREFIX + hashlib.sha256(f"{salt}/{place}".encode()).hexdigest()[:12]
