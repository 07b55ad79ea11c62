"""Models of investigations: the item of a list, and the details with stages and agents.

Decision: neither contains more than the status of the object. Output and input of agents are in the timeline and the
trace, which require permissions of their own.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.acted import ActedView
from tarsy.http.views.common import (
    NEWER_WORD,
    NEXT_PAGE,
    SHOWN_CONFIDENCE,
    STATE,
    ConditionView,
    FailureView,
    OtherRunView,
    RunRef,
    Spent,
)
from tarsy.plan.model import Plan, PlannedBudget
from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.incident_outcome import IncidentOutcome
from tarsy.record.judging.shown_confidence import HighVerdicts, shown_confidence
from tarsy.record.reading.conditions import conditions
from tarsy.record.reading.flaws import Flaw
from tarsy.record.reading.listing import MOST_COUNTED, InvestigationCount, InvestigationListItem, InvestigationPage
from tarsy.record.reading.trace import AgentDetail, RunInput, StageDetail
from tarsy.record.run import DesiredState, InvestigationRecord, StageKind, State


class Progress(View):
    """Progress of a run."""

    stages_finished: int
    stages_planned: int = Field(
        description="Stages that run if none fails, syntheses and the executive summary included."
    )
    current_stage: str | None


class FindingBrief(View):
    """Summary of a finding. The timeline contains the claims and their evidence."""

    summary: str
    confidence: Confidence
    shown_confidence: str | None = Field(default=None, description=SHOWN_CONFIDENCE)
    claims: int
    supported_claims: int = Field(description="Claims with at least one citation that was found in the record.")

    @classmethod
    def of(cls, finding: Finding | None, high: HighVerdicts | None) -> Self | None:
        """Converts a finding; None without one. `high` are the verdicts on findings of its Chain like it."""
        if finding is None:
            return None
        return cls(
            summary=finding.summary,
            confidence=finding.confidence,
            shown_confidence=shown_confidence(finding.confidence, high),
            claims=len(finding.claims),
            supported_claims=finding.supported_claims,
        )


class InvestigationItem(RunRef):
    """An investigation in a list."""

    alert_type: str
    chain: str
    chain_namespace: str
    author: str | None = Field(description="User who requested it. Null if unknown.")
    state: State = Field(description=STATE)
    desired_state: DesiredState
    attempt: int = Field(description="Number of times that a worker claimed it. More than 1 after a crash.")
    revision: int = Field(description="Increases with every change of the record.")
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
    budget_exceeded: FailureView | None = Field(description="The budget limit that the run reached.")
    evidence_degraded: bool = Field(description="Whether MCP servers were missing or no tool was called.")
    object_gone: bool = Field(
        description="Whether the Investigation object was deleted or has expired. The record is kept."
    )
    flaws: tuple[Flaw, ...] = Field(default=(), description="What lowers the worth of the finding.")
    severity: str | None = Field(default=None, description="Severity of the alert. Null if it has none.")
    alert_key: str | None = Field(
        default=None,
        description="Equal for alerts that are alike: of one namespace and type, with equal labels, or equal text.",
    )
    outcome: IncidentOutcome | None = Field(
        default=None,
        description="Outcome of the alert after the finding. Null while that is not known, and for alerts that no "
        "sender resolves.",
    )
    excerpt: str | None = Field(default=None, description="Text around what was searched for. Null without a search.")

    @classmethod
    def of(cls, found: InvestigationListItem) -> Self:
        """Converts an item of a list."""
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
            finding=FindingBrief.of(found.finding, found.high_verdicts),
            executive_summary=found.executive_summary,
            failure=FailureView.of(found.failure),
            budget_exceeded=(
                None if exceeded is None else FailureView(reason=str(exceeded.limit), message=exceeded.message)
            ),
            evidence_degraded=found.evidence_degraded,
            object_gone=found.object_deleted_at is not None,
            flaws=tuple(found.flaws),
            severity=found.severity,
            alert_key=found.alert_key,
            outcome=found.outcome,
            excerpt=found.excerpt,
        )


class InvestigationList(View):
    """A page of investigations."""

    items: tuple[InvestigationItem, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)
    count: int | None = Field(
        default=None,
        description=f"Investigations of all pages, at most {MOST_COUNTED}; on the first page of a list that is not "
        "searched with searchIn=timeline.",
    )
    flaws: dict[Flaw, int] | None = Field(
        default=None, description="How many of the counted investigations have a flaw, by flaw; where count is set."
    )

    @classmethod
    def of(cls, page: InvestigationPage, next_: str | None, count: InvestigationCount | None = None) -> Self:
        """Converts a page.

        Args:
            page: the investigations.
            next_: token of the next page; None on the last one.
            count: of all pages, where it was counted.
        """
        return cls(
            items=tuple(InvestigationItem.of(one) for one in page.items),
            next=next_,
            count=count.total if count else None,
            flaws=dict(count.flaws) if count else None,
        )


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
    iterations: int = Field(default=0, description="Turns that its loop has taken.")
    max_iterations: int | None = Field(
        default=None, description="Turns after which it must conclude. Null in a trace, and if its plan is unknown."
    )
    parent: UUID | None = Field(default=None, description="Id of the agent that dispatched this one; null: none did.")

    @classmethod
    def of(cls, found: AgentDetail, max_iterations: int | None = None) -> Self:
        """Converts a recorded agent.

        Args:
            found: the agent.
            max_iterations: of its plan; None: not known.
        """
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
            iterations=found.iterations,
            max_iterations=max_iterations,
            parent=found.parent,
        )


class StageHead(View):
    """A stage without its agents."""

    id: UUID
    index: int
    name: str
    kind: Annotated[StageKind | str, NEWER_WORD]
    state: State = Field(description=STATE)
    started_at: datetime
    finished_at: datetime | None
    parallel: str | None = Field(description="Reason why several agents run in parallel. Null with one agent.")
    success_policy: str | None
    expected_agents: int
    failure: FailureView | None
    acted: ActedView | None = Field(default=None, description="Of a stage of kind action. Null otherwise.")


class StageView(StageHead):
    """A stage with its started agents."""

    agents: tuple[AgentView, ...]

    @classmethod
    def of(cls, found: StageDetail, plan: Plan | None = None) -> Self:
        """Converts a recorded stage.

        Args:
            found: the stage.
            plan: of the run; None: not known.
        """
        limits = iteration_limits(plan, found.name)
        return cls(
            **head(found), agents=tuple(AgentView.of(agent, limits.get(agent.display_name)) for agent in found.agents)
        )


class BudgetView(View):
    """Limits of a whole run. Null: no limit."""

    tokens: int | None
    cost_usd: float | None = Field(alias="costUSD", description="US dollars.")
    tool_calls: int | None
    minutes: float | None

    @classmethod
    def of(cls, plan: Plan | None) -> Self | None:
        """Returns the budget in a plan; None without a limit."""
        if plan is None or plan.budget == PlannedBudget():
            return None
        return cls(**plan.budget.model_dump())


class InvestigationView(InvestigationItem):
    """An investigation with its alert, its stages and its conditions."""

    replay: bool = Field(description="Whether it is a replay.")
    replay_of: str | None = Field(
        description="Name of the investigation that it replays. Null before its end, and if that is not on record."
    )
    retry_of: OtherRunView | None = Field(default=None, description="Investigation that it reruns. Null: none.")
    retried_by: OtherRunView | None = Field(
        default=None, description="Latest investigation that reruns it. Null: none does."
    )
    deadline: datetime | None
    plan_hash: str
    interrupted_model_calls: int
    alert: str = Field(description="Alert text that the agents received, with secrets masked.")
    runbook: str | None
    executive_summary_error: str | None
    budget: BudgetView | None = Field(default=None, description="Limits of the run. Null without any.")
    evidence_missing: tuple[str, ...] = Field(description="MCP servers that were missing, each with the reason.")
    conditions: tuple[ConditionView, ...]
    stages: tuple[StageView, ...]

    @classmethod
    def whole(
        cls,
        item: InvestigationItem,
        record: InvestigationRecord,
        given: RunInput,
        stages: Sequence[StageDetail],
        replay_of: str | None,
        plan: Plan | None,
    ) -> Self:
        """Combines the parts of a recorded investigation.

        Args:
            item: the fields of the list.
            record: the run.
            given: alert and runbook, as the agents received them.
            stages: the started stages with their agents.
            replay_of: name of the investigation that it replays.
            plan: the frozen plan of the run; None: this version cannot read it.
        """
        finding = record.outcome.finding if record.outcome else None
        return cls(
            replay=record.replay,
            replay_of=replay_of,
            retry_of=OtherRunView.of(record.retry_of),
            retried_by=OtherRunView.of(record.retried_by),
            **{name: getattr(item, name) for name in InvestigationItem.model_fields if name != "finding"},
            finding=FindingBrief.of(finding, record.high_verdicts),
            deadline=record.deadline,
            plan_hash=record.plan_hash,
            interrupted_model_calls=record.interrupted_model_calls,
            alert=given.alert_data,
            runbook=given.runbook,
            executive_summary_error=record.outcome.executive_summary_error if record.outcome else None,
            evidence_missing=record.evidence_missing,
            conditions=tuple(ConditionView.of(one) for one in conditions(record)),
            budget=BudgetView.of(plan),
            stages=tuple(StageView.of(stage, plan) for stage in stages),
        )


def iteration_limits(plan: Plan | None, stage: str) -> dict[str, int]:
    """Returns the maximum iterations of the agents of a stage, by name; of agents that do not loop, none.

    Args:
        plan: of the run; None: not known.
        stage: name of the stage.
    """
    planned = [one for one in plan.stages if one.name == stage] if plan is not None else []
    return {agent.name: agent.max_iterations for one in planned for agent in one.members}


def head(found: StageDetail) -> dict[str, Any]:
    """Returns the fields of a `StageHead`."""
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
        "acted": ActedView.of(found.acted),
    }
