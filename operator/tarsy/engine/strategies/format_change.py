"""Tells a model when a change of provider has changed the format of its tool calls.

The format that the model was last asked for is part of the loop state and is written with the boundary that asks for
it, so an attempt that resumes neither repeats nor misses the note, whatever the wording of its release.
"""

from collections.abc import Sequence
from dataclasses import replace

from tarsy.engine.conversation.state import CallModel, Conversation
from tarsy.engine.prompts.react import react_section
from tarsy.engine.prompts.template import template
from tarsy.plan.model import Strategy
from tarsy.record.messages import Message, Role, ToolDefinition

FUNCTIONS, REACT = "functions", "react"

_NOTES = {REACT: "change_to_react", FUNCTIONS: "change_to_calls"}
_FIRST_LINES = {
    "From here on another model goes on with this task, and tools are called in text.": REACT,
    "From here on another model goes on with this task, and tools are called by function calls.": FUNCTIONS,
}
"""First lines of the notes of releases whose loop state has no format. They stay as they are when the notes change."""


def announce_format(conversation: Conversation, turn: CallModel, tools: Sequence[ToolDefinition]) -> CallModel:
    """Adds a note on the format of tool calls to a turn whose provider uses another one than the last.

    Args:
        conversation: as on record.
        turn: the model call about to be made.
        tools: that the agent may call.
    """
    wanted = _format_of(conversation.agent.strategy)
    changed = bool(conversation.messages) and wanted != _format_in_use(conversation)
    turn = replace(turn, loop=turn.loop.model_copy(update={"tool_call_format": wanted}))
    if not changed:
        return turn
    section = {"react": react_section(tools)} if wanted == REACT else {}
    note = Message(Role.USER, template(_NOTES[wanted]).substitute(section))
    return replace(turn, new_messages=(note, *turn.new_messages))


def _format_of(strategy: Strategy) -> str:
    return REACT if strategy is Strategy.REACT else FUNCTIONS


def _format_in_use(conversation: Conversation) -> str:
    """The format that the model was last asked for; read from the messages of a run that an older release began."""
    if conversation.loop.tool_call_format is not None:
        return conversation.loop.tool_call_format
    for message in reversed(conversation.messages):
        found = _FIRST_LINES.get(message.content.partition("\n")[0]) if message.role is Role.USER else None
        if found is not None:
            return found
    return _format_of(conversation.plan.strategy)
