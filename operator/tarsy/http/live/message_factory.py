"""The messages of one investigation's channel, written once for all who follow it."""

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
    """The name of an investigation's channel."""
    return f"investigation:{namespace}/{name}"


class MessageFactory:
    """Writes them.

    Args:
        record: the investigation.
    """

    def __init__(self, record: InvestigationRecord) -> None:
        self.channel = channel_of(record.namespace, record.name)
        self._ref = RunRef(namespace=record.namespace, name=record.name, uid=record.id)

    def message(
        self, place: int, of: InvestigationRecord, event: TimelineEvent, cursor: Cursor | None
    ) -> TimelineMessage:
        """An event of the run at `place`; `cursor` when nothing more belongs to its change."""
        return TimelineMessage(
            type=kind_of(event),
            channel=self.channel,
            id=None if cursor is None else str(cursor),
            investigation=self._ref,
            question=_question(place, of),
            event=ToldEvent.of(event),
        )

    def event(self, place: int, of: InvestigationRecord, event: TimelineEvent, cursor: Cursor | None) -> QueuedMessage:
        """The same, to be sent."""
        message = self.message(place, of, event, cursor)
        return QueuedMessage(message.type, written(message), message.id, place)

    def stage(self, place: int, of: InvestigationRecord, stage: StageProgress) -> QueuedMessage:
        """A stage as it is now."""
        message = StageMessage(
            channel=self.channel,
            investigation=self._ref,
            question=_question(place, of),
            stage=StageChange.of(stage),
        )
        return QueuedMessage(message.type, written(message), place=place)

    def run(self, place: int, of: InvestigationRecord) -> QueuedMessage:
        """The state of a run."""
        message = RunMessage(
            channel=self.channel, investigation=self._ref, question=_question(place, of), run=RunHead.of(of)
        )
        return QueuedMessage(message.type, written(message), place=place)

    def delta(self, place: int, of: InvestigationRecord, delta: Delta) -> QueuedMessage:
        """Words of an event."""
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
        """That there was too much to tell between the two."""
        message = OverflowMessage(channel=self.channel, after=str(after), id=str(cursor))
        return QueuedMessage(message.type, written(message), message.id)

    def caught_up(self, cursor: Cursor) -> QueuedMessage:
        """That all there was is told."""
        message = CaughtUpMessage(channel=self.channel, id=str(cursor))
        return QueuedMessage(message.type, written(message), message.id)


def _question(place: int, of: InvestigationRecord) -> QuestionRef | None:
    return QuestionRef(name=of.name, uid=of.id, place=place) if place else None
