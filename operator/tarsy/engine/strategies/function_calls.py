"""Implements function calls: the format of tool calls of models that are trained to make them."""

from collections.abc import Sequence

from tarsy.engine.conversation.state import (
    CallModel,
    CallTool,
    Conversation,
    ConversationTurn,
    Stop,
    ask_model,
    next_turn,
)
from tarsy.engine.model_calls.events import ResponseReader
from tarsy.engine.prompts.template import template
from tarsy.engine.tool_calls.execution import tool_message
from tarsy.record.messages import Message, ToolDefinition, ToolOutcome


class FunctionCalls:
    """Binds tools to the model call; calls and results are messages of their own.

    Args:
        tools: the tools of this attempt.
    """

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._tools = tuple(tools)

    name = "functions"
    read: ResponseReader | None = None
    functions = True
    how = "Make function calls; do not write them as text."
    stop: tuple[str, ...] = ()

    @property
    def sections(self) -> Sequence[str]:
        """Asks for parallel calls; nothing without tools."""
        return (template("parallel_calls").substitute(),) if self._tools else ()

    @property
    def change_note(self) -> str:
        """Says that text is not read for calls any more."""
        return template("change_to_calls").substitute()

    def next_turn(
        self, conversation: Conversation, opening: Sequence[Message], *, stop: Stop | None, max_iterations: int | None
    ) -> ConversationTurn:
        """Returns the next step (`tarsy.engine.conversation.state.next_turn`).

        Args:
            conversation: as on record.
            opening: the messages a new conversation starts with.
            stop: why the agent must conclude now; None if it need not.
            max_iterations: model calls after which a conclusion is forced; None for strategies that never loop.
        """
        return next_turn(conversation, opening, stop=stop, max_iterations=max_iterations)

    def ask(
        self, conversation: Conversation, turn: CallModel, *, stop: Stop | None, max_iterations: int | None
    ) -> CallModel:
        """Returns the model call of a turn (`tarsy.engine.conversation.state.ask_model`).

        Args:
            conversation: as on record.
            turn: the call that would be made otherwise.
            stop: why the agent must conclude now; None if it need not.
            max_iterations: model calls after which a conclusion is forced; None for strategies that never loop.
        """
        return ask_model(conversation, turn, stop, max_iterations)

    def offer(self, tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """All of them."""
        return tuple(tools)

    def tell(self, turn: CallTool, ref: str, outcome: ToolOutcome) -> Message:
        """Makes the tool message with the `outcome` of the call in `turn`, which the model cites as `ref`."""
        return tool_message(turn, ref, outcome)
