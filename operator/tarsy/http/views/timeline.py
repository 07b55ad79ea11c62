"""The timeline: what people read of an investigation, and the finding with its evidence.

Decision: an answer says which revision it goes up to; asking again `after` that one gives what changed since, and the
same events travel on WebSocket and server-sent events.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.route import View
from tarsy.http.views.common import STATE, FailureView, RunRef
from tarsy.record.finding import Confidence, Finding
from tarsy.record.run import DesiredState, InvestigationRecord, State
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent


class CitationView(View):
    """What a claim rests on: a quote from the result of a tool call."""

    call_id: str = Field(description="As the model wrote it.")
    quote: str
    supported: bool = Field(description="The call was made, and its recorded result holds the quote.")
    reason: str | None = Field(description="Why it is not supported.")
    interaction: UUID | None = Field(description="The tool call's id in the trace.")
    stage: str | None
    agent: str | None
    tool: str | None


class ClaimView(View):
    """One statement of a finding."""

    text: str
    supported: bool = Field(description="One of its citations holds.")
    citations: tuple[CitationView, ...]


class FindingView(View):
    """What an investigation concluded."""

    summary: str
    confidence: Confidence
    structured: bool = Field(description="False: the model did not give its finding in the form it was asked for.")
    claims: tuple[ClaimView, ...]
    notes: tuple[str, ...] = Field(description="What was changed about what the model wrote, and why.")

    @classmethod
    def of(cls, finding: Finding | None) -> Self | None:
        """The finding, if there is one."""
        if finding is None:
            return None
        claims = tuple(
            ClaimView(
                text=claim.text,
                supported=claim.supported,
                citations=tuple(
                    CitationView.model_validate(citation.model_dump(by_alias=True)) for citation in claim.citations
                ),
            )
            for claim in finding.claims
        )
        return cls(
            summary=finding.summary,
            confidence=finding.confidence,
            structured=finding.structured,
            claims=claims,
            notes=finding.notes,
        )


class EventView(View):
    """A timeline event as it is now; what has the same id replaces it."""

    id: UUID
    seq: int = Field(description="Its place: events are read in this order.")
    revision: int = Field(description="The revision of the investigation at its last change.")
    type: EventType
    status: EventStatus
    content: str
    metadata: dict[str, Any]
    stage: str | None
    agent: str | None
    stage_id: UUID | None
    execution: UUID | None = Field(description="The id of its agent in the trace.")
    model_call: UUID | None
    tool_call: UUID | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, event: TimelineEvent) -> Self:
        """An event of the record."""
        return cls(
            id=event.id,
            seq=event.seq,
            revision=event.revision,
            type=event.type,
            status=event.status,
            content=event.content,
            metadata=event.metadata,
            stage=event.stage_name,
            agent=event.agent_name,
            stage_id=event.stage,
            execution=event.execution,
            model_call=event.model_call,
            tool_call=event.tool_call,
            created_at=event.created_at,
            updated_at=event.updated_at,
        )


class RunHead(RunRef):
    """Where a run is, and, when it has ended, what came of it. Of an answer the name is that of its question."""

    state: State = Field(description=STATE)
    desired_state: DesiredState
    revision: int
    attempt: int
    alert_type: str
    chain: str
    started_at: datetime | None
    finished_at: datetime | None
    finding: FindingView | None
    final_analysis: str | None
    executive_summary: str | None
    failure: FailureView | None

    @classmethod
    def of(cls, record: InvestigationRecord) -> Self:
        """A run of the record."""
        outcome = record.outcome
        return cls(
            namespace=record.namespace,
            name=record.name,
            uid=record.id,
            state=record.state,
            desired_state=record.desired_state,
            revision=record.revision,
            attempt=record.attempt,
            alert_type=record.alert_type,
            chain=record.chain,
            started_at=record.started_at,
            finished_at=record.finished_at,
            finding=FindingView.of(outcome.finding) if outcome else None,
            final_analysis=outcome.final_analysis if outcome else None,
            executive_summary=outcome.executive_summary if outcome else None,
            failure=FailureView.of(outcome.failure) if outcome else None,
        )


class TimelineView(View):
    """What changed in a timeline after a revision."""

    investigation: RunHead
    items: tuple[EventView, ...] = Field(description="In order of seq.")
    revision: int = Field(description="Ask `after` this one for what changes later.")
    more: bool = Field(description="There is more already: ask again now.")

    @classmethod
    def of(cls, record: InvestigationRecord, events: Iterable[TimelineEvent], revision: int, more: bool) -> Self:
        """A page, up to `revision`."""
        items = tuple(EventView.of(event) for event in sorted(events, key=lambda event: event.seq))
        return cls(investigation=RunHead.of(record), items=items, revision=revision, more=more)
