"""Models of the timeline: the events that people read, and the finding with its evidence.

Decision: a response names the revision up to which it is complete. A request with `after` set to that revision returns
later changes. WebSocket and server-sent events carry the same events.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.acted import ActedView
from tarsy.http.views.common import NEWER_WORD, SHOWN_CONFIDENCE, STATE, FailureView, OtherRunView, RunRef
from tarsy.record.finding import Claim, Confidence, Finding
from tarsy.record.integrity import Integrity
from tarsy.record.judging.incident_outcome import IncidentOutcome
from tarsy.record.judging.replay import ReplayReport
from tarsy.record.judging.shown_confidence import HighVerdicts, shown_confidence
from tarsy.record.run import DesiredState, InvestigationRecord, State
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent


class CitationView(View):
    """Evidence of a claim: a quote from the result of a tool call."""

    call_id: str = Field(description="Id of the tool call, as the model wrote it.")
    quote: str
    supported: bool = Field(description="Whether the call exists and its recorded result contains the quote.")
    reason: str | None = Field(description="Reason why it is not supported.")
    interaction: UUID | None = Field(description="Id of the tool call in the trace.")
    stage: str | None
    agent: str | None
    tool: str | None
    integrity: Integrity | None = Field(
        default=None,
        description="Who can write the quoted text. K: only the control plane. A: workloads as well. X: anyone "
        "outside the cluster. Null: not supported, or checked by an older version.",
    )
    replaced: bool = Field(
        default=False, description="Whether the latest result of the same call no longer contains the quote."
    )


class ClaimView(View):
    """One statement of a finding."""

    text: str
    supported: bool = Field(description="Whether at least one of its citations is supported.")
    ungrounded: tuple[str, ...] = Field(
        default=(),
        description="Names and numbers of a supported claim that occur in none of its quotes, in the alert, or in the "
        "arguments of the cited calls. Such a claim does not raise confidence.",
    )
    contradicted: bool = Field(
        default=False, description="Whether the latest results of all its calls no longer contain what it quotes."
    )
    citations: tuple[CitationView, ...]

    @classmethod
    def of(cls, claim: Claim) -> Self:
        """Converts a checked claim."""
        return cls(
            text=claim.text,
            supported=claim.supported,
            ungrounded=claim.ungrounded,
            contradicted=claim.contradicted,
            citations=tuple(CitationView.model_validate(one.model_dump(by_alias=True)) for one in claim.citations),
        )


class ManagedObjectView(View):
    """An object that is applied from Git or from a chart."""

    object: str = Field(description="Kind, namespace and name.")
    managed_by: str = Field(description="Tool that applies it, with the label or annotation that shows this.")


class ChangeForGitView(View):
    """The change of a call that was refused because GitOps manages its objects, for a person to make in Git."""

    tool: str
    objects: tuple[ManagedObjectView, ...]
    patch: str = Field(description="A diff, or the arguments of the call where there is none. Secrets are masked.")


class FindingView(View):
    """The conclusion of an investigation."""

    summary: str
    confidence: Confidence
    shown_confidence: str | None = Field(default=None, description=SHOWN_CONFIDENCE)
    structured: bool = Field(description="False if the model did not return the finding in the requested format.")
    claims: tuple[ClaimView, ...]
    notes: tuple[str, ...] = Field(description="Changes to the output of the model, each with the reason.")
    changes_for_git: tuple[ChangeForGitView, ...] = Field(
        default=(),
        description="Changes that were refused because GitOps manages the objects. They come from the record, not from "
        "the model.",
    )

    @classmethod
    def of(cls, finding: Finding | None, high: HighVerdicts | None = None) -> Self | None:
        """Converts a finding; None without one. `high` are the verdicts on findings of its Chain like it."""
        if finding is None:
            return None
        return cls(
            summary=finding.summary,
            confidence=finding.confidence,
            shown_confidence=shown_confidence(finding.confidence, high),
            structured=finding.structured,
            claims=tuple(map(ClaimView.of, finding.claims)),
            notes=finding.notes,
            changes_for_git=tuple(
                ChangeForGitView.model_validate(change.model_dump(by_alias=True)) for change in finding.changes_for_git
            ),
        )


class EventView(View):
    """A timeline event in its current state. A later version with the same id replaces it."""

    id: UUID
    seq: int = Field(description="Position in the timeline. Sort events by it.")
    revision: int = Field(description="Revision of the investigation at the last change of the event.")
    type: Annotated[EventType | str, NEWER_WORD]
    status: Annotated[EventStatus | str, NEWER_WORD]
    content: str
    metadata: dict[str, Any]
    stage: str | None
    agent: str | None
    parent: str | None = Field(default=None, description="Agent that dispatched this one, if it is a sub-agent.")
    stage_id: UUID | None
    execution: UUID | None = Field(description="Id of its agent in the trace.")
    model_call: UUID | None
    tool_call: UUID | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, event: TimelineEvent) -> Self:
        """Converts a recorded event."""
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
            parent=event.parent_name,
            stage_id=event.stage,
            execution=event.execution,
            model_call=event.model_call,
            tool_call=event.tool_call,
            created_at=event.created_at,
            updated_at=event.updated_at,
        )


class ReplayView(View):
    """How closely a replay followed its record."""

    coverage: float = Field(description="Share of tool calls that the record answered, from 0 to 1.")
    rungs: dict[str, int] = Field(description="Number of tool calls by the origin of their answers.")
    unused_calls: int = Field(description="Number of recorded calls that answered nothing.")
    divergence: str | None = Field(description="First tool call that differs from the recorded ones. Null: none does.")

    @classmethod
    def of(cls, report: ReplayReport | None) -> Self | None:
        """Converts the report of a replay; None outside of replays."""
        if report is None:
            return None
        return cls(
            coverage=report.coverage,
            rungs=report.rungs,
            unused_calls=report.unused,
            divergence=report.divergence.sentence if report.divergence else None,
        )


class RunHead(RunRef):
    """State of a run and, after its end, its outcome. The run of an answer has the name of its question."""

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
    replay: ReplayView | None = Field(default=None, description="Of a replay that has ended. Null otherwise.")
    retry_of: OtherRunView | None = Field(default=None, description="Investigation that it reruns. Null: none.")
    retried_by: OtherRunView | None = Field(
        default=None, description="Latest investigation that reruns it. Null: none does."
    )
    actions: tuple[ActedView, ...] = Field(
        default=(), description="What its stages of kind action did, in order. The finding does not depend on it."
    )
    outcome: IncidentOutcome | None = Field(
        default=None, description="Outcome of the alert after the finding. Null while that is not known."
    )

    @classmethod
    def of(cls, record: InvestigationRecord) -> Self:
        """Converts a recorded run."""
        outcome = record.outcome
        return cls(
            namespace=record.namespace,
            name=record.name,
            uid=record.id,
            state=record.state,
            outcome=record.incident_outcome,
            desired_state=record.desired_state,
            revision=record.revision,
            attempt=record.attempt,
            alert_type=record.alert_type,
            chain=record.chain,
            started_at=record.started_at,
            finished_at=record.finished_at,
            finding=FindingView.of(outcome.finding, record.high_verdicts) if outcome else None,
            final_analysis=outcome.final_analysis if outcome else None,
            executive_summary=outcome.executive_summary if outcome else None,
            failure=FailureView.of(outcome.failure) if outcome else None,
            replay=ReplayView.of(outcome.replay) if outcome else None,
            retry_of=OtherRunView.of(record.retry_of),
            retried_by=OtherRunView.of(record.retried_by),
            actions=tuple(view for stage in record.stages if (view := ActedView.of(stage.acted)) is not None),
        )


class TimelineView(View):
    """Changes of a timeline after a revision."""

    investigation: RunHead
    items: tuple[EventView, ...] = Field(description="Events, sorted by seq.")
    revision: int = Field(description="Pass it as `after` to get later changes.")
    more: bool = Field(description="Whether more changes are available now.")

    @classmethod
    def of(cls, record: InvestigationRecord, events: Iterable[TimelineEvent], revision: int, more: bool) -> Self:
        """Builds a page.

        Args:
            record: the run.
            events: its events, in any order.
            revision: the revision up to which the page is complete.
            more: whether more changes are available now.
        """
        items = tuple(EventView.of(event) for event in sorted(events, key=lambda event: event.seq))
        return cls(investigation=RunHead.of(record), items=items, revision=revision, more=more)
