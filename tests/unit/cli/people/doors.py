"""A door that tells what a test has put behind it, and views of a run to put there."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tarsy.client.api import CreatedObject
from tarsy.client.errors import ApiUseError
from tarsy.client.refusals import Right
from tarsy.http.live.messages import QuestionRef, RunMessage, TimelineMessage, ToldEvent
from tarsy.http.models import View
from tarsy.http.views.common import RunRef
from tarsy.http.views.timeline import EventView, FindingView, RunHead, TimelineView
from tarsy.record.run import DesiredState, State
from tarsy.record.timeline import EventStatus, EventType

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
RUN = UUID(int=1)


class FakeDoor:
    """See `Door`. `answers` are pages by path, the last of them for ever; `streams` are told one a connection."""

    namespace = "shop"

    def __init__(
        self,
        answers: Mapping[str, list[View | Exception]],
        streams: list[list[bytes | Exception]],
        questions: tuple[str, ...] = (),
    ) -> None:
        self.answers = {path: list(pages) for path, pages in answers.items()}
        self.asked_questions = questions
        self.streams = list(streams)
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def read(self, path: str, right: Right, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        part = path.removeprefix("/namespaces/shop/investigations/run/")
        self.asked.append((part, dict(query or {})))
        question = (query or {}).get("chatMessage")
        pages = self.answers.get(f"{part}?{question}" if question else part)
        if not pages:
            raise ApiUseError(f"there is no {part}", 404)
        answer = pages.pop(0) if len(pages) > 1 else pages[0]
        if isinstance(answer, Exception):
            raise answer
        return answer.model_dump(mode="json", by_alias=True)

    @contextlib.asynccontextmanager
    async def streaming(
        self, path: str, right: Right, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append((path.rpartition("/")[2], dict(query or {})))
        told = self.streams.pop(0)

        async def pieces() -> AsyncIterator[bytes]:
            for one in told:
                if isinstance(one, Exception):
                    raise one
                yield one

        yield pieces()

    async def submit(self, namespace: str, alert: Mapping[str, Any]) -> Any:
        raise NotImplementedError

    async def ask(self, namespace: str, investigation: str, question: str) -> Any:
        raise NotImplementedError

    async def replay(self, namespace: str, investigation: str, replay: Mapping[str, Any]) -> CreatedObject:
        self.asked.append((f"replay {namespace}/{investigation}", dict(replay)))
        return CreatedObject("run-replay-x", "uid")

    async def retry(self, namespace: str, investigation: str, chain: str | None, provider: str | None) -> CreatedObject:
        self.asked.append((f"retry {namespace}/{investigation}", {"chain": chain, "provider": provider}))
        return CreatedObject("run-retry-x", "uid")

    async def want(self, namespace: str, investigation: str, desired: str) -> list[str]:
        raise NotImplementedError

    async def until(
        self,
        kind: str,
        namespace: str,
        name: str,
        settled: Callable[[Mapping[str, Any]], Any],
        about: str | None = None,
    ) -> Any:
        raise NotImplementedError

    async def questions(self, namespace: str, investigation: str) -> list[str]:
        return list(self.asked_questions)

    async def names(self, kind: str, namespace: str) -> list[str]:
        return []


def head(state: State = State.RUNNING, revision: int = 0, finding: FindingView | None = None) -> RunHead:
    """Where the run is."""
    return RunHead(
        namespace="shop",
        name="run",
        uid=RUN,
        state=state,
        desired_state=DesiredState.RUNNING,
        revision=revision,
        attempt=1,
        alert_type="DiskFull",
        chain="k8s",
        started_at=NOW,
        finished_at=NOW if state.finished else None,
        finding=finding,
        final_analysis=None,
        executive_summary=None,
        failure=None,
    )


def event(
    number: int,
    text: str = "",
    status: EventStatus = EventStatus.COMPLETED,
    kind: EventType = EventType.LLM_RESPONSE,
    **metadata: Any,
) -> EventView:
    """The event that is `number` in order, and in revision."""
    return EventView(
        id=UUID(int=100 + number),
        seq=number,
        revision=number,
        type=kind,
        status=status,
        content=text or f"event {number}",
        metadata=metadata,
        stage="look",
        agent="triage",
        stage_id=None,
        execution=None,
        model_call=None,
        tool_call=None,
        created_at=NOW,
        updated_at=NOW,
    )


def page(*events: EventView, state: State = State.RUNNING, more: bool = False) -> TimelineView:
    """A page of the timeline."""
    revision = max((one.revision for one in events), default=0)
    return TimelineView(investigation=head(state, revision), items=events, revision=revision, more=more)


def told(what: EventView | RunHead, identity: str = "", question: str | None = None) -> bytes:
    """A server-sent event that tells of an event, or where the run is."""
    asked = QuestionRef(name=question, uid=UUID(int=9), place=1) if question else None
    about = {"channel": "c", "investigation": RunRef(namespace="shop", name="run", uid=RUN), "question": asked}
    message: View
    if isinstance(what, RunHead):
        message = RunMessage(run=what, **about)
    else:
        kind = "timelineEvent.created" if what.status is EventStatus.STREAMING else "timelineEvent.closed"
        message = TimelineMessage(type=kind, id=identity or None, event=ToldEvent(**dict(what)), **about)
    return sent(message.type, message.model_dump_json(by_alias=True), identity)


def sent(kind: str, data: str, identity: str = "") -> bytes:
    """A server-sent event."""
    return f"{f'id: {identity}' if identity else ':'}\nevent: {kind}\ndata: {data}\n\n".encode()
