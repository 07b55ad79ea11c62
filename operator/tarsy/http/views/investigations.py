"""Investigations as lists show them, and one by itself with its stages and agents.

Decision: both hold what the status of the object holds, or less; what agents said and read is in timeline and trace,
which are permissions of their own.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.route import View
from tarsy.http.views.common import STATE, ConditionView, FailureView, RunRef, Spent
from tarsy.record.conditions import conditions
from tarsy.record.finding import Confidence, Finding
from tarsy.record.run import DesiredState, InvestigationRecord, StageKind, State
from tarsy.store.search import Listed, Page
from tarsy.store.traced import Agent, Given, Stage


class Progress(View):
    """How far a run is."""

    stages_finished: int
    stages_planned: int = Field(description="When none fails; syntheses and the executive summary count too.")
    current_stage: str | None


class FindingBrief(View):
    """What was found, in short; the claims with their evidence are in the timeline."""

    summary: str
    confidence: Confidence
    claims: int
    supported_claims: int = Field(description="Claims with a citation that was found in the record.")

    @classmethod
    def of(cls, finding: Finding | None) -> Self | None:
        """The finding in short, if there is one."""
        if finding is None:
            return None
        return cls(
            summary=finding.summary,
            confidence=finding.confidence,
            claims=len(finding.claims),
            supported_claims=finding.supported_claims,
        )


class InvestigationItem(RunRef):
    """An investigation in a list."""

    alert_type: str
    chain: str
    chain_namespace: str
    author: str | None = Field(description="Who asked for it; null where nobody noted it.")
    state: State = Field(description=STATE)
    desired_state: DesiredState
    attempt: int = Field(description="How many times a worker took it up; more than 1 after a crash.")
    revision: int = Field(description="Grows with every change of the record.")
    accepted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: Progress
    spent: Spent
    model_calls: int
    tool_calls: int
    finding: FindingBrief | None
    executive_summary: str | None
    failure: FailureView | None
    budget_exceeded: FailureView | None = Field(description="The limit of its budget that it reached.")
    evidence_degraded: bool = Field(description="Tool servers were missing, or no tool was called.")
    object_gone: bool = Field(description="The Investigation itself was deleted or has expired; the record is kept.")

    @classmethod
    def of(cls, found: Listed) -> Self:
        """One of a list."""
        exceeded = found.budget_exceeded
        return cls(
            namespace=found.namespace,
            name=found.name,
            uid=found.id,
            alert_type=found.alert_type,
            chain=found.chain,
            chain_namespace=found.chain_namespace,
            author=found.author,
            state=found.state,
            desired_state=found.desired_state,
            attempt=found.attempt,
            revision=found.revision,
            accepted_at=found.accepted_at,
            started_at=found.started_at,
            finished_at=found.finished_at,
            progress=Progress(
                stages_finished=found.stages_finished,
                stages_planned=found.stages_planned,
                current_stage=found.current_stage,
            ),
            spent=Spent.of(found.usage, found.cost_usd, found.cost_complete),
            model_calls=found.model_calls,
            tool_calls=found.tool_calls,
            finding=FindingBrief.of(found.finding),
            executive_summary=found.executive_summary,
            failure=FailureView.of(found.failure),
            budget_exceeded=(
                None if exceeded is None else FailureView(reason=exceeded.limit.value, message=exceeded.message)
            ),
            evidence_degraded=found.evidence_degraded,
            object_gone=found.object_deleted_at is not None,
        )


class InvestigationList(View):
    """A page of investigations."""

    items: tuple[InvestigationItem, ...]
    next: str | None = Field(
        alias="continue", description="Give it as `continue` for the next page; null: this was the last."
    )

    @classmethod
    def of(cls, page: Page, next_: str | None) -> Self:
        """A page with the token of the next."""
        return cls(items=tuple(InvestigationItem.of(one) for one in page.items), next=next_)


class AgentView(View):
    """An agent of a stage."""

    id: UUID
    name: str
    agent: str = Field(description="Name of the Agent object.")
    strategy: str
    provider: str
    model: str
    state: State = Field(description=STATE)
    started_at: datetime
    finished_at: datetime | None
    failure: FailureView | None
    model_calls: int
    tool_calls: int
    spent: Spent

    @classmethod
    def of(cls, found: Agent) -> Self:
        """An agent of the record."""
        return cls(
            id=found.id,
            name=found.display_name,
            agent=found.agent,
            strategy=found.strategy,
            provider=found.provider,
            model=found.model,
            state=found.state,
            started_at=found.started_at,
            finished_at=found.finished_at,
            failure=FailureView.of(found.failure),
            model_calls=found.model_calls,
            tool_calls=found.tool_calls,
            spent=Spent.of(found.usage, found.cost_usd, found.cost_complete),
        )


class StageHead(View):
    """A stage without its agents."""

    id: UUID
    index: int
    name: str
    kind: StageKind
    state: State = Field(description=STATE)
    started_at: datetime
    finished_at: datetime | None
    parallel: str | None = Field(description="Why several agents run side by side; null: there is one.")
    success_policy: str | None
    expected_agents: int
    failure: FailureView | None


class StageView(StageHead):
    """A stage with those of its agents that have begun."""

    agents: tuple[AgentView, ...]

    @classmethod
    def of(cls, found: Stage) -> Self:
        """A stage of the record."""
        return cls(**head(found), agents=tuple(AgentView.of(agent) for agent in found.agents))


class InvestigationView(InvestigationItem):
    """An investigation with its alert, its stages and its conditions."""

    deadline: datetime | None
    plan_hash: str
    interrupted_model_calls: int
    alert: str = Field(description="What the agents were told of the alert; secrets are masked.")
    runbook: str | None
    executive_summary_error: str | None
    evidence_missing: tuple[str, ...] = Field(description="The tool servers that were missing, and why.")
    conditions: tuple[ConditionView, ...]
    stages: tuple[StageView, ...]

    @classmethod
    def whole(cls, item: InvestigationItem, record: InvestigationRecord, given: Given, stages: Sequence[Stage]) -> Self:
        """An investigation, out of what the record has of it."""
        return cls(
            **{name: getattr(item, name) for name in InvestigationItem.model_fields},
            deadline=record.deadline,
            plan_hash=record.plan_hash,
            interrupted_model_calls=record.interrupted_model_calls,
            alert=given.alert_data,
            runbook=given.runbook,
            executive_summary_error=record.outcome.executive_summary_error if record.outcome else None,
            evidence_missing=record.evidence_missing,
            conditions=tuple(ConditionView.of(one) for one in conditions(record)),
            stages=tuple(StageView.of(stage) for stage in stages),
        )


def head(found: Stage) -> dict[str, Any]:
    """The fields of a `StageHead`."""
    return {
        "id": found.id,
        "index": found.index,
        "name": found.name,
        "kind": found.kind,
        "state": found.state,
        "started_at": found.started_at,
        "finished_at": found.finished_at,
        "parallel": found.parallel,
        "success_policy": found.success_policy,
        "expected_agents": found.expected_agents,
        "failure": FailureView.of(found.failure),
    }
