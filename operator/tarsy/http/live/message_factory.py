"""Builds the messages of the channel of one investigation, serialized once for all followers."""

from tarsy.http.live.cursor import Cursor
from tarsy.http.live.messages import (
    CaughtUpMessage,
    DeltaMessage,
    OverflowMessage,
    QuestionRef,
    RunMessage,
    StageChange,
    StageMessage,
    TimelineMessage,
    ToldEvent,
    kind_of,
    written,
)
from tarsy.http.live.send_queue import QueuedMessage
from tarsy.http.views.common import RunRef
from tarsy.http.views.timeline import RunHead
from tarsy.record.run import InvestigationRecord, StageProgress
from tarsy.record.timeline import TimelineEvent
from tarsy.stream.deltas import Delta


def channel_of(namespace: str, name: str) -> str:
    """Returns the name of the channel of an investigation."""
    return f"investigation:{namespace}/{name}"


class MessageFactory:
    """Builds messages about one investigation.

    Args:
        record: the investigation.
    """

    def __init__(self, record: InvestigationRecord) -> None:
        self.channel = channel_of(record.namespace, record.name)
        self._ref = RunRef(namespace=record.namespace, name=record.name, uid=record.id)

    def message(
        self, place: int, of: InvestigationRecord, event: TimelineEvent, cursor: Cursor | None
    ) -> TimelineMessage:
        """Builds the message of an event.

        Args:
            place: place of its run: 0 is the investigation, 1 and up are questions.
            of: the run.
            event: the event.
            cursor: position after the event; None if more events of the same change follow.
        """
        return TimelineMessage(
            type=kind_of(event),
            channel=self.channel,
            id=None if cursor is None else str(cursor),
            investigation=self._ref,
            question=_question(place, of),
            event=ToldEvent.of(event),
        )

    def event(self, place: int, of: InvestigationRecord, event: TimelineEvent, cursor: Cursor | None) -> QueuedMessage:
        """Builds and serializes the message of an event.

        Args:
            place: place of its run: 0 is the investigation, 1 and up are questions.
            of: the run.
            event: the event.
            cursor: position after the event; None if more events of the same change follow.
        """
        message = self.message(place, of, event, cursor)
        return QueuedMessage(message.type, written(message), message.id, place)

    def stage(self, place: int, of: InvestigationRecord, stage: StageProgress) -> QueuedMessage:
        """Builds the message of a changed stage; for `place` and `of` see `message`."""
        message = StageMessage(
            channel=self.channel,
            investigation=self._ref,
            question=_question(place, of),
            stage=StageChange.of(stage),
        )
        return QueuedMessage(message.type, written(message), place=place)

    def run(self, place: int, of: InvestigationRecord) -> QueuedMessage:
        """Builds the message of the state of a run."""
        message = RunMessage(
            channel=self.channel, investigation=self._ref, question=_question(place, of), run=RunHead.of(of)
        )
        return QueuedMessage(message.type, written(message), place=place)

    def delta(self, place: int, of: InvestigationRecord, delta: Delta) -> QueuedMessage:
        """Builds the message of a delta; for `place` and `of` see `message`."""
        message = DeltaMessage(
            channel=self.channel,
            investigation=self._ref,
            question=_question(place, of),
            event=delta.event,
            offset=delta.offset,
            text=delta.text,
            truncated=delta.truncated,
        )
        return QueuedMessage(message.type, written(message), place=place)

    def overflow(self, after: Cursor, cursor: Cursor) -> QueuedMessage:
        """Builds the message that changes between two positions were skipped."""
        message = OverflowMessage(channel=self.channel, after=str(after), id=str(cursor))
        return QueuedMessage(message.type, written(message), message.id)

    def caught_up(self, cursor: Cursor) -> QueuedMessage:
        """Builds the message that all earlier changes were sent."""
        message = CaughtUpMessage(channel=self.channel, id=str(cursor))
        return QueuedMessage(message.type, written(message), message.id)


def _question(place: int, of: InvestigationRecord) -> QuestionRef | None:
    return QuestionRef(name=of.name, uid=of.id, place=place) if place else None
