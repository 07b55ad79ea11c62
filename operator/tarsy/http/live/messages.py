"""What followers are told, and what they may ask: the messages of the WebSocket, the same in server-sent events.

Decision: an event is told whole each time it changes, and so is the state of a run, so a client keeps the last of each
id and needs no history. Only deltas are pieces: they have no id and may be missed; the event tells their text again.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints
from pydantic.alias_generators import to_camel

from tarsy.http.live.cursor import CURSOR_PATTERN, MAX_LENGTH
from tarsy.http.models import View
from tarsy.http.views.common import FailureView, RunRef
from tarsy.http.views.investigations import InvestigationItem
from tarsy.http.views.timeline import EventView, RunHead
from tarsy.record.run import StageKind, State
from tarsy.record.run import StageProgress as StageOfRun
from tarsy.record.timeline import TimelineEvent

MAX_CONTENT = 131_072
"""Characters of an event's text that are told; the rest is read by REST."""

_CursorText = Annotated[str, StringConstraints(pattern=CURSOR_PATTERN, max_length=MAX_LENGTH)]
_ID = "Give it as `after` to go on behind this message; null: more belongs to the same change."


class QuestionRef(View):
    """The question that a run answers."""

    name: str = Field(description="Of its ChatMessage.")
    uid: UUID
    place: int = Field(description="Its turn among the questions about the investigation, from 1.")


class ToldEvent(EventView):
    """A timeline event as followers are told it."""

    truncated: bool = Field(default=False, description="The text is longer: read it by REST.")

    @classmethod
    def of(cls, event: TimelineEvent) -> Self:
        """An event of the record, its text bounded."""
        view = EventView.of(event)
        told = {name: getattr(view, name) for name in EventView.model_fields}
        truncated = len(event.content) > MAX_CONTENT
        return cls(**{**told, "content": event.content[:MAX_CONTENT]}, truncated=truncated)


class StageChange(View):
    """A stage as it is now."""

    index: int
    name: str
    kind: StageKind
    state: State
    agents: int
    agents_finished: int
    started_at: datetime | None
    finished_at: datetime | None
    failure: FailureView | None

    @classmethod
    def of(cls, stage: StageOfRun) -> Self:
        """A stage of the record."""
        return cls(
            index=stage.index,
            name=stage.name,
            kind=stage.kind,
            state=stage.state,
            agents=stage.agents,
            agents_finished=stage.agents_finished,
            started_at=stage.started_at,
            finished_at=stage.finished_at,
            failure=FailureView.of(stage.failure),
        )


class Message(View):
    """Anything that is told."""

    type: Any
    channel: str = Field(description="As it was subscribed to; of server-sent events that of their investigation.")


class _OfRun(Message):
    investigation: RunRef
    question: QuestionRef | None = Field(default=None, description="Null: the investigation itself is meant.")


class TimelineMessage(_OfRun):
    """A timeline event began, changed, or is closed; some are closed when they are first told."""

    type: Literal["timelineEvent.created", "timelineEvent.updated", "timelineEvent.closed"]
    id: str | None = Field(description=_ID)
    event: ToldEvent


class EventsView(View):
    """What changed in an investigation, as messages."""

    items: tuple[TimelineMessage, ...]
    id: str = Field(description="Ask `after` this one for what changes later.")
    more: bool = Field(description="There is more already: ask again now.")


class StageMessage(_OfRun):
    """A stage began, went on, or ended."""

    type: Literal["stage.changed"] = "stage.changed"
    stage: StageChange


class RunMessage(_OfRun):
    """A run is in another state; also told when following begins."""

    type: Literal["investigation.changed"] = "investigation.changed"
    run: RunHead


class ItemMessage(Message):
    """An investigation of a list has changed, or is new."""

    type: Literal["investigations.changed"] = "investigations.changed"
    item: InvestigationItem


class DeltaMessage(_OfRun):
    """Words of an event that is not closed yet. A gap is filled by the event's end, where secrets are taken out too."""

    type: Literal["delta"] = "delta"
    event: UUID
    offset: int = Field(description="Characters (Unicode code points) of the text before these.")
    text: str
    truncated: bool = Field(default=False, description="No more is told of this text until its event is closed.")


class OverflowMessage(Message):
    """There was more to catch up with than is told here: read the timeline by REST after `after`, then go on."""

    type: Literal["overflow"] = "overflow"
    after: str = Field(description="What was told before; its first number is the revision for REST.")
    id: str | None = Field(description=_ID)


class SubscribedMessage(Message):
    """The subscription stands; what changes from now on is told."""

    type: Literal["subscribed"] = "subscribed"


class CaughtUpMessage(Message):
    """All that had happened was told."""

    type: Literal["caughtUp"] = "caughtUp"
    id: str | None = Field(description=_ID)


class UnsubscribedMessage(Message):
    """The subscription has ended."""

    type: Literal["unsubscribed"] = "unsubscribed"


class PongMessage(View):
    """The answer to a ping."""

    type: Literal["pong"] = "pong"


class ErrorMessage(View):
    """Something that was asked for cannot be; a subscription that it names has ended."""

    type: Literal["error"] = "error"
    channel: str | None = None
    reason: str
    message: str


_Told = Annotated[
    TimelineMessage
    | StageMessage
    | RunMessage
    | ItemMessage
    | DeltaMessage
    | OverflowMessage
    | SubscribedMessage
    | CaughtUpMessage
    | UnsubscribedMessage
    | PongMessage
    | ErrorMessage,
    Field(discriminator="type"),
]


class ServerMessage(RootModel[_Told]):
    """What a WebSocket tells."""


class _Action(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


ChannelName = Annotated[str, StringConstraints(min_length=1, max_length=340)]
After = Annotated[
    Annotated[int, Field(ge=0, lt=10**18)] | _CursorText,
    Field(description="A revision, or the id of the last message; nothing: from the beginning."),
]


class Subscribe(_Action):
    """`investigation:NAMESPACE/NAME`, `investigations:NAMESPACE`, or `investigations` for all namespaces."""

    action: Literal["subscribe"]
    channel: ChannelName
    after: After | None = None


class CatchUp(_Action):
    """Tells a channel that is subscribed to once more, from `after` on."""

    action: Literal["catchup"]
    channel: ChannelName
    after: After


class Unsubscribe(_Action):
    """Ends a subscription."""

    action: Literal["unsubscribe"]
    channel: ChannelName


class Ping(_Action):
    """Asks whether somebody is there."""

    action: Literal["ping"]


_Asked = Annotated[Subscribe | CatchUp | Unsubscribe | Ping, Field(discriminator="action")]


class ClientAction(RootModel[_Asked]):
    """What a WebSocket is asked."""


def kind_of(event: TimelineEvent) -> Literal["timelineEvent.created", "timelineEvent.updated", "timelineEvent.closed"]:
    """What has become of an event, as far as it itself tells."""
    if event.status != "streaming":
        return "timelineEvent.closed"
    return "timelineEvent.created" if event.created_at == event.updated_at else "timelineEvent.updated"


def in_change_order(events: Iterable[TimelineEvent]) -> list[TimelineEvent]:
    """Events in the order in which they changed."""
    return sorted(events, key=lambda event: (event.revision, event.seq))


def with_last(events: Sequence[TimelineEvent]) -> Iterator[tuple[TimelineEvent, bool]]:
    """Each event, and whether it is the last of its change; in the order of `in_order`."""
    for place, event in enumerate(events, 1):
        yield event, place == len(events) or events[place].revision != event.revision


def written(message: View) -> str:
    """A message as JSON."""
    return message.model_dump_json(by_alias=True)
