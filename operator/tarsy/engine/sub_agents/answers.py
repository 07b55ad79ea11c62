"""Declares the port that answers calls of the sub-agent tools."""

from typing import Protocol

from tarsy.engine.conversation.state import CallTool
from tarsy.engine.tool_calls.gate import ToolCallDecision


class Answers(Protocol):
    """Answers the calls of tools for sub-agents, one after the other."""

    async def answer(self, turn: CallTool) -> ToolCallDecision:
        """Returns the answer to a call.

        A dispatch and a cancellation are put into the state of the loop, which boundary (d) of the call writes.

        Args:
            turn: the call, its arguments without secrets.
        """
        ...
