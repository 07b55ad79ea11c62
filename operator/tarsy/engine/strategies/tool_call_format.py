"""Declares the format of tool calls: the part of a tool loop that differs between strategies."""

from collections.abc import Sequence
from typing import Protocol

from tarsy.engine.conversation.state import CallModel, CallTool, Conversation, ConversationTurn, Stop
from tarsy.engine.model_calls.events import ResponseReader
from tarsy.record.messages import Message, ToolDefinition, ToolOutcome


class ToolCallFormat(Protocol):
    """Declares how the models of a strategy call tools and receive the results."""

    @property
    def name(self) -> str:
        """The name of the format in the loop state; it never changes."""
        ...

    @property
    def sections(self) -> Sequence[str]:
        """Sections that the format adds to the first system message."""
        ...

    @property
    def change_note(self) -> str:
        """The message to a model that takes over a conversation in another format."""
        ...

    @property
    def read(self) -> ResponseReader | None:
        """Makes the timeline events of an answer's text; None when the text is the event."""
        ...

    @property
    def functions(self) -> bool:
        """Whether tools are called by functions, not in text."""
        ...

    @property
    def how(self) -> str:
        """Explains how to call a tool, in a sentence for the model."""
        ...

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end an answer."""
        ...

    def next_turn(
        self, conversation: Conversation, opening: Sequence[Message], *, stop: Stop | None, max_iterations: int | None
    ) -> ConversationTurn:
        """Returns the next step, from the record alone (`tarsy.engine.conversation.state.next_turn`).

        Args:
            conversation: as on record.
            opening: the messages a new conversation starts with.
            stop: why the agent must conclude now; None if it need not.
            max_iterations: model calls after which a conclusion is forced; None for strategies that never loop.
        """
        ...

    def ask(
        self, conversation: Conversation, turn: CallModel, *, stop: Stop | None, max_iterations: int | None
    ) -> CallModel:
        """Returns the model call of a turn, made a forced conclusion where it is time to conclude.

        Args:
            conversation: as on record.
            turn: the call that would be made otherwise.
            stop: why the agent must conclude now; None if it need not.
            max_iterations: model calls after which a conclusion is forced; None for strategies that never loop.
        """
        ...

    def offer(self, tools: Sequence[ToolDefinition]) -> tuple[ToolDefinition, ...]:
        """The tools to bind to a call."""
        ...

    def tell(self, turn: CallTool, ref: str, outcome: ToolOutcome) -> Message:
        """Makes the message with the outcome of a call, which the model cites as `ref`."""
        ...
