"""Follows an investigation over server-sent events, and reconnects when a connection ends.

Decision: past events are read page by page, later ones are streamed from that revision on, so that none is missed or
repeated, however often a connection ends (the Kubernetes API cuts each after a minute). When the server reports that it
dropped events, the pages are read again.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Protocol
from uuid import UUID

from pydantic import ValidationError

from tarsy.client.api import TarsyClient, read_as, run_path
from tarsy.client.errors import ApiUseError, BrokenOff
from tarsy.client.plain_text import plain
from tarsy.client.refusals import READ_TIMELINE
from tarsy.http.live.messages import (
    DeltaMessage,
    ErrorMessage,
    OverflowMessage,
    RunMessage,
    StageChange,
    StageMessage,
    TimelineMessage,
)
from tarsy.http.views.timeline import EventView, RunHead, TimelineView
from tarsy.outbound.server_sent_events import EventTooLarge, ServerSent, parse_events
from tarsy.record.timeline import EventStatus

_PAGE = "500"
AWAY_SECONDS = 120.0
RECONNECT_SECONDS = 1.0
_PASSING = ("ServiceUnavailable", "TooManyRequests", "Timeout")
_Told = TimelineMessage | DeltaMessage | StageMessage | RunMessage | OverflowMessage
_KINDS: dict[str, type[_Told | ErrorMessage]] = {
    "timelineEvent.created": TimelineMessage,
    "timelineEvent.updated": TimelineMessage,
    "timelineEvent.closed": TimelineMessage,
    "delta": DeltaMessage,
    "stage.changed": StageMessage,
    "investigation.changed": RunMessage,
    "overflow": OverflowMessage,
    "error": ErrorMessage,
}
"""Messages that are understood, by the type of the server-sent event; others are ignored."""


class Teller(Protocol):
    """Shows the events of one run, each once, in the order in which they close."""

    def closed(self, event: EventView, *, truncated: bool) -> None:
        """Shows a closed event; its text may be truncated."""
        ...

    def begun(self, event: EventView) -> None:
        """Shows an open event, at its start and at its changes; it will be closed."""
        ...

    def words(self, event: UUID, offset: int, text: str) -> None:
        """Shows streamed text of an open event, from the character `offset` on."""
        ...

    def run(self, head: RunHead) -> None:
        """Shows the state of the run."""
        ...

    def stage(self, stage: StageChange) -> None:
        """Shows the state of a stage."""
        ...

    def away(self, why: str) -> None:
        """Shows that the API is unavailable for a moment."""
        ...


async def pages(
    client: TarsyClient, namespace: str, name: str, question: str | None = None, after: int = 0
) -> AsyncIterator[TimelineView]:
    """Yields the pages of the timeline of an investigation, or of the answer to a question about it.

    Args:
        client: the API.
        namespace: of the investigation.
        name: of the investigation.
        question: the ChatMessage; None: the investigation itself.
        after: the revision to start after.

    Raises:
        ApiUseError: the run is not on record (status 404), or may not be read.
    """
    asked = {"chatMessage": question} if question else {}
    more = True
    while more:
        query = {"after": str(after), "limit": _PAGE, **asked}
        page = await read_as(client, TimelineView, run_path(namespace, name, "timeline"), READ_TIMELINE, query)
        yield page
        more = page.more and page.revision > after
        after = page.revision


async def follow_investigation(
    client: TarsyClient, namespace: str, name: str, teller: Teller, question: str | None = None
) -> RunHead:
    """Follows a run to its end: an investigation, or the answer to a question about it, which may not have begun.

    Args:
        client: the API.
        namespace: of the investigation.
        name: of the investigation.
        teller: shows the run.
        question: the ChatMessage; None: the investigation itself.

    Raises:
        ApiUseError: the run is not on record, may not be read, or the API is unavailable for two minutes.
    """
    return await _Follow(client, namespace, name, teller, question).to_the_end()


class _Follow:
    def __init__(self, client: TarsyClient, namespace: str, name: str, teller: Teller, question: str | None) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._teller = teller
        self._question = question
        self._told: set[UUID] = set()
        self._revision = 0
        self._head: RunHead | None = None

    async def to_the_end(self) -> RunHead:
        after = await self._investigation_revision() if self._question else None
        await self._catch_up()
        if self._head is not None and self._head.state.finished:
            return self._head
        stream = _messages(
            self._client, self._namespace, self._name, str(self._revision if after is None else after), self._teller
        )
        async with aclosing(stream) as messages:
            async for message in messages:
                head = await self._tell(message)
                if head is not None and head.state.finished:
                    await self._catch_up()  # it may be told before the last of its events
                    return self._head or head
        raise ApiUseError("the server ended the stream")  # the stream above only ends by an error

    async def _investigation_revision(self) -> int:
        path = run_path(self._namespace, self._name, "timeline")
        page = await read_as(self._client, TimelineView, path, READ_TIMELINE, {"limit": "1"})
        return page.investigation.revision

    async def _catch_up(self) -> None:
        try:
            async for page in pages(self._client, self._namespace, self._name, self._question, self._revision):
                self._head, self._revision = page.investigation, page.revision
                for event in page.items:
                    self._event(event)
                self._teller.run(page.investigation)
        except ApiUseError as error:
            if self._question is None or error.status != 404:  # the answer to a question may not have begun
                raise

    async def _tell(self, message: _Told) -> RunHead | None:
        """Shows one message; returns the state of the run if it contains it."""
        match message:
            case OverflowMessage():
                await self._catch_up()
                return self._head
            case TimelineMessage() if self._meant(message):
                self._revision = max(self._revision, message.event.revision)
                self._event(message.event, truncated=message.event.truncated)
            case DeltaMessage() if self._meant(message) and message.event not in self._told:
                self._teller.words(message.event, message.offset, message.text)
            case StageMessage() if self._meant(message):
                self._teller.stage(message.stage)
            case RunMessage() if self._meant(message):
                self._teller.run(message.run)
                return message.run
            case _:
                pass
        return None

    def _meant(self, message: TimelineMessage | DeltaMessage | StageMessage | RunMessage) -> bool:
        return (message.question.name if message.question else None) == self._question

    def _event(self, event: EventView, *, truncated: bool = False) -> None:
        if event.id in self._told:
            return
        if event.status is EventStatus.STREAMING:
            self._teller.begun(event)
        else:
            self._told.add(event.id)
            self._teller.closed(event, truncated=truncated)


async def _messages(
    client: TarsyClient, namespace: str, name: str, after: str, teller: Teller
) -> AsyncGenerator[_Told]:
    """Yields the messages about an investigation and its questions, from a cursor on, without end."""
    clock = asyncio.get_running_loop().time
    heard = clock()
    while True:
        began = clock()
        try:
            query = {"follow": "true", "after": after}
            async with client.streaming(run_path(namespace, name, "events"), READ_TIMELINE, query) as pieces:
                heard = clock()
                async for sent in parse_events(pieces):
                    heard = clock()
                    if (message := _read(sent)) is not None:
                        yield message
                    after = sent.id or after
        except BrokenOff as error:
            if clock() > heard + AWAY_SECONDS:
                raise
            teller.away(str(error))
            await asyncio.sleep(RECONNECT_SECONDS)
        except EventTooLarge as error:
            raise ApiUseError(str(error)) from None
        if clock() < began + RECONNECT_SECONDS:  # an end that comes at once is not answered at once
            await asyncio.sleep(RECONNECT_SECONDS)


def _read(sent: ServerSent) -> _Told | None:
    """Parses a message; None for one that this version does not know.

    Raises:
        BrokenOff: the server ends the connection, and may accept another.
        ApiUseError: the run cannot be followed further, or the message is not understood.
    """
    kind = _KINDS.get(sent.type)
    if kind is None:
        return None
    try:
        message = kind.model_validate_json(sent.data)
    except ValidationError:
        raise ApiUseError(
            "a message of the server is not understood: the server and this command are of different versions"
        ) from None
    if isinstance(message, ErrorMessage):
        sentence = f"{plain(message.message)} ({plain(message.reason)})"
        raise BrokenOff(sentence) if message.reason in _PASSING else ApiUseError(sentence)
    return message
