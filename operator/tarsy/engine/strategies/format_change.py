"""Tells a model when a change of provider has changed the format of its tool calls.

The format that the model was last asked for is part of the loop state and is written with the boundary that asks for
it, so an attempt that resumes neither repeats nor misses the note, whatever the wording of its release.
"""

from dataclasses import replace

from tarsy.engine.conversation.state import CallModel, Conversation
from tarsy.engine.ports import Toolbox
from tarsy.engine.strategies.function_calls import FunctionCalls
from tarsy.engine.strategies.react_format import ReactCalls
from tarsy.engine.strategies.table import tool_call_format
from tarsy.record.messages import Message, Role

_FIRST_LINES = {
    "From here on another model goes on with this task, and tools are called in text.": ReactCalls.name,
    "From here on another model goes on with this task, and tools are called by function calls.": FunctionCalls.name,
}
"""First lines of the notes of releases whose loop state has no format. They stay as they are when the notes change."""


def announce_format(conversation: Conversation, turn: CallModel, toolbox: Toolbox) -> CallModel:
    """Adds a note on the format of tool calls to a turn whose provider uses another one than the last.

    Args:
        conversation: as on record.
        turn: the model call about to be made.
        toolbox: the tools that the agent may call.
    """
    wanted = tool_call_format(conversation.agent.strategy, toolbox)
    changed = bool(conversation.messages) and wanted.name != _format_in_use(conversation, toolbox)
    turn = replace(turn, loop=turn.loop.model_copy(update={"tool_call_format": wanted.name}))
    if not changed:
        return turn
    return replace(turn, new_messages=(Message(Role.USER, wanted.change_note), *turn.new_messages))


def _format_in_use(conversation: Conversation, toolbox: Toolbox) -> str:
    """The format that the model was last asked for; read from the messages of a run that an older release began."""
    if conversation.loop.tool_call_format is not None:
        return conversation.loop.tool_call_format
    for message in reversed(conversation.messages):
        found = _FIRST_LINES.get(message.content.partition("\n")[0]) if message.role is Role.USER else None
        if found is not None:
            return found
    return tool_call_format(conversation.plan.strategy, toolbox).name
