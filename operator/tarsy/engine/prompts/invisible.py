"""Reports invisible characters that were removed from model input. The record keeps them."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from tarsy.engine.conversation.state import Conversation
from tarsy.record.ids import event_id
from tarsy.record.text import without_invisible
from tarsy.record.timeline import Event, EventStatus, EventType

TEXT_CLEANED = "TextCleaned"


def cleaned_events(
    conversation: Conversation, what: str, texts: Iterable[str], *, tool_call: UUID | None = None
) -> Sequence[Event]:
    """Returns the event that reports how many characters were left out; none where none were.

    Args:
        conversation: of the agent.
        what: the texts come from, for people.
        texts: as they are on record.
        tool_call: whose result it is; None: the first messages of the agent.
    """
    removed = sum(without_invisible(text).removed for text in texts)
    if not removed:
        return ()
    return (
        Event(
            id=event_id(tool_call or conversation.execution, "text-cleaned"),
            type=EventType.NOTICE,
            status=EventStatus.COMPLETED,
            content=f"{removed:,} invisible characters in {what} were left out of what the model is sent. Such "
            "characters can hide instructions from people. The record keeps them.",
            metadata={"reason": TEXT_CLEANED, "removed": removed},
            stage=conversation.stage,
            execution=conversation.execution,
            tool_call=tool_call,
        ),
    )
