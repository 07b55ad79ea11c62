"""Declares the result of parsing a ReAct answer."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """Lists the requests that an answer can make."""

    TOOL_CALL = "tool_call"
    FINAL_ANSWER = "final_answer"
    UNKNOWN_TOOL = "unknown_tool"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Parsed:
    """An answer, read; what it does not have is empty.

    `tool` is the name of an existing tool for a tool call, what the model wrote for an unknown one. `feedback` is what
    the model must hear of an answer that is neither a call nor final.
    """

    kind: Kind
    thought: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    final_answer: str = ""
    feedback: str = ""
