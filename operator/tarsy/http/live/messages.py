"""Models of the messages that the WebSocket and server-sent events send, and of the actions that clients send.

Decision: every change of an event, and of the state of a run, is sent as the complete object, so a client keeps the
latest version of each id and needs no history. Only deltas are partial: they have no id and may be lost; the event
contains their text again.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints
from pydantic.alias_generators import to_camel

from tarsy.http.live.cursor import CURSOR_PATTERN, MAX_LENGTH
from tarsy.http.models import View
from tarsy.http.views.acted import ActedView
from tarsy.http.views.common import NEWER_WORD, FailureView, RunRef
from tarsy.http.views.investigations import InvestigationItem
from tarsy.http.views.timeline import EventView, RunHead
from tarsy.record.run import StageKind, State
from tarsy.record.run import StageProgress as StageOfRun
from tarsy.record.timeline import TimelineEvent

MAX_CONTENT = 131_072
"""Maximum characters of an event's text in a message; REST returns the rest."""

_CursorText = Annotated[str, StringConstraints(pattern=CURSOR_PATTERN, max_length=MAX_LENGTH)]
_ID = "Pass it as `after` to continue after this message. Null if more messages of the same change follow."


class QuestionRef(View):
    """The question that a run answers."""

    name: str = Field(description="Name of its ChatMessage.")
    uid: UUID
    place: int = Field(description="Number of the question within the investigation, from 1.")


class ToldEvent(EventView):
    """A timeline event in a message."""

    truncated: bool = Field(default=False, description="Whether the text is cut off; REST returns all of it.")

    @classmethod
    def of(cls, event: TimelineEvent) -> Self:
        """Converts a recorded event, with its text truncated."""
        view = EventView.of(event)
        told = {name: getattr(view, name) for name in EventView.model_fields}
        truncated = len(event.content) > MAX_CONTENT
        return cls(**{**told, "content": event.content[:MAX_CONTENT]}, truncated=truncated)


class StageChange(View):
    """The current state of a stage."""

    index: int
    name: str
    kind: Annotated[StageKind | str, NEWER_WORD]
    state: State
    agents: int
    agents_finished: int
    started_at: datetime | None
    finished_at: datetime | None
    failure: FailureView | None
    acted: ActedView | None = Field(default=None, description="Of a stage of kind action. Null otherwise.")

    @classmethod
    def of(cls, stage: StageOfRun) -> Self:
        """Converts a recorded stage."""
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
            acted=ActedView.of(stage.acted),
        )


class Message(View):
    """Base of the messages about a channel."""

    type: Any
    channel: str = Field(description="Subscribed channel; with server-sent events, the channel of the investigation.")


class _OfRun(Message):
    investigation: RunRef
    question: QuestionRef | None = Field(
        default=None, description="Question that the message is about. Null for the investigation itself."
    )


class TimelineMessage(_OfRun):
    """A timeline event was created, updated or closed. A new event may be closed already."""

    type: Literal["timelineEvent.created", "timelineEvent.updated", "timelineEvent.closed"]
    id: str | None = Field(description=_ID)
    event: ToldEvent


class EventsView(View):
    """Changes of an investigation, as messages."""

    items: tuple[TimelineMessage, ...]
    id: str = Field(description="Pass it as `after` to get later changes.")
    more: bool = Field(description="Whether more changes are available now.")


class StageMessage(_OfRun):
    """A stage started, progressed or ended."""

    type: Literal["stage.changed"] = "stage.changed"
    stage: StageChange


class RunMessage(_OfRun):
    """The state of a run has changed. Also sent at the start of a subscription."""

    type: Literal["investigation.changed"] = "investigation.changed"
    run: RunHead


class ItemMessage(Message):
    """An investigation of a list is new or has changed."""

    type: Literal["investigations.changed"] = "investigations.changed"
    item: InvestigationItem


class DeltaMessage(_OfRun):
    """Further text of an open event. The closed event contains the complete, masked text and fills any gap."""

    type: Literal["delta"] = "delta"
    event: UUID
    offset: int = Field(description="Position of the text within the event, in Unicode code points.")
    text: str
    truncated: bool = Field(default=False, description="Whether no more text follows until the event is closed.")


class OverflowMessage(Message):
    """Too many changes to catch up over the stream: read the timeline with REST from `after`, then continue."""

    type: Literal["overflow"] = "overflow"
    after: str = Field(description="Position before the skipped changes; its first number is the revision for REST.")
    id: str | None = Field(description=_ID)


class SubscribedMessage(Message):
    """The subscription is active; later changes are sent."""

    type: Literal["subscribed"] = "subscribed"


class CaughtUpMessage(Message):
    """All earlier changes have been sent."""

    type: Literal["caughtUp"] = "caughtUp"
    id: str | None = Field(description=_ID)


class UnsubscribedMessage(Message):
    """The subscription has ended."""

    type: Literal["unsubscribed"] = "unsubscribed"


class PongMessage(View):
    """The answer to a ping."""

    type: Literal["pong"] = "pong"


class ErrorMessage(View):
    """An action failed, or the subscription of `channel` has ended."""

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
    """A message of the server over the WebSocket."""


class _Action(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


ChannelName = Annotated[str, StringConstraints(min_length=1, max_length=340)]
After = Annotated[
    Annotated[int, Field(ge=0, lt=10**18)] | _CursorText,
    Field(description="A revision, or the id of the last message received. From the beginning when omitted."),
]


class Subscribe(_Action):
    """Subscribes to `investigation:NAMESPACE/NAME`, `investigations:NAMESPACE` or `investigations` (all of them)."""

    action: Literal["subscribe"]
    channel: ChannelName
    after: After | None = None


class CatchUp(_Action):
    """Sends the changes of a subscribed channel again, from `after` on."""

    action: Literal["catchup"]
    channel: ChannelName
    after: After


class Unsubscribe(_Action):
    """Ends a subscription."""

    action: Literal["unsubscribe"]
    channel: ChannelName


class Ping(_Action):
    """Requests a pong."""

    action: Literal["ping"]


_Asked = Annotated[Subscribe | CatchUp | Unsubscribe | Ping, Field(discriminator="action")]


class ClientAction(RootModel[_Asked]):
    """An action of the client over the WebSocket."""


def kind_of(event: TimelineEvent) -> Literal["timelineEvent.created", "timelineEvent.updated", "timelineEvent.closed"]:
    """Returns the message type that the status and times of an event imply."""
    if event.status != "streaming":
        return "timelineEvent.closed"
    return "timelineEvent.created" if event.created_at == event.updated_at else "timelineEvent.updated"


def in_change_order(events: Iterable[TimelineEvent]) -> list[TimelineEvent]:
    """Sorts events by the order in which they changed."""
    return sorted(events, key=lambda event: (event.revision, event.seq))


def with_last(events: Sequence[TimelineEvent]) -> Iterator[tuple[TimelineEvent, bool]]:
    """Yields each event and whether it is the last one of its change.

    Args:
        events: sorted by `in_change_order`.
    """
    for place, event in enumerate(events, 1):
        yield event, place == len(events) or events[place].revision != event.revision


def written(message: View) -> str:
    """Serializes a message as JSON."""
    return message.model_dump_json(by_alias=True)
