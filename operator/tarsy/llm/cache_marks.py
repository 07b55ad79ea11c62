"""Marks the stable beginning of a request for a prompt cache that needs marks (Claude's).

A request of an agent's loop begins with the request before it. Claude keeps what comes before a mark for five minutes,
and reads it from there when a request begins with it. It takes at most four marks: here the tools, the system text, the
last message that the model has answered, and the last message. The third is where the request before ended, however
many tool results came since; the fourth is for the next request.

Decision: a request without tools gets no marks. It is the only one of its kind (a summary, a synthesis), and writing to
the cache costs more than reading the text once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

MOST_MARKS: Final = 4
_MARK: Final = {"cache_control": {"type": "ephemeral"}}


def marked_tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns tools, in Claude's form, with a mark on the last one."""
    return [*(dict(tool) for tool in tools[:-1]), *({**tool, **_MARK} for tool in tools[-1:])]


def marked_messages(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Returns a conversation with marks; messages that are blank or of the model get none.

    Args:
        messages: with the system text in front, if there is one.
    """
    places = {place for place, message in enumerate(messages) if isinstance(message, SystemMessage)}
    answers = [place for place, message in enumerate(messages) if isinstance(message, AIMessage)]
    places |= {len(messages) - 1, answers[-1] - 1 if answers else 0}
    return [_as_block(message, _MARK if place in places else {}) for place, message in enumerate(messages)]


def _as_block(message: BaseMessage, mark: Mapping[str, Any]) -> BaseMessage:
    """Texts become blocks with a mark and without, so that a text is sent alike in each request.

    Messages of models stay as they are: their blocks go back as they came. LangChain puts the mark of a tool result
    beside its text.
    """
    text = message.content
    if isinstance(message, AIMessage) or not isinstance(text, str) or not text.strip():
        return message
    return message.model_copy(update={"content": [{"type": "text", "text": text, **mark}]})
