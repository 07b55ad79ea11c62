"""Counts what one attempt of a run does: each step once, when it is on record.

A step of the record that a lost answer makes twice is counted once, because it returns once. Names of providers and
servers are chosen by people, so the labels are their types.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from tarsy.engine.escalation import ESCALATED, KEPT, NO_ROOM, NOT_EVALUATED
from tarsy.engine.skills.agent_skills import LOAD_SKILL
from tarsy.observe import metric_table as table
from tarsy.observe.metrics import Metrics
from tarsy.plan.model import Plan
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.dispatch import DISPATCH_TOOLS
from tarsy.record.history import BudgetExceeded
from tarsy.record.run import ExecutionOutcome, ExecutionStart, ModelCallKind, RunOutcome, StageOutcome, StageStart
from tarsy.record.timeline import Event, EventType
from tarsy.runtime.model_metrics import FinishedCall, count_call
from tarsy.runtime.observed_recorder import RunObserver

_ESCALATIONS = {
    ESCALATED: "escalated",
    KEPT: "unused",
    NO_ROOM: "over_budget",
    NOT_EVALUATED: "not_evaluated",
}
"""Outcomes by the reason of their notice."""


def kind(question: bool) -> str:
    """The value of the label `kind` for a run."""
    return "question" if question else "investigation"


class RunMeter(RunObserver):
    """Counts what one attempt does.

    Args:
        metrics: of the process.
        plan: that the run follows.
        question: whether it answers a question.
    """

    def __init__(self, metrics: Metrics, plan: Plan, *, question: bool = False) -> None:
        self._metrics = metrics
        self._kind = kind(question)
        self._repeats_in_a_row = plan.limits.repeats_in_a_row
        self._providers = {(of.ref.name, of.model): of.type for of in plan.providers}
        self._transports = {server.name: server.transport.type for agent in plan.agents for server in agent.servers}
        self._stages: dict[UUID, str] = {}
        self._strategies: dict[UUID, str] = {}
        self._dispatched: set[UUID] = set()
        self._skill_loads = set[UUID]()
        self._model_calls: dict[UUID, tuple[str, str]] = {}
        self._tool_calls: dict[UUID, tuple[str, bool]] = {}
        self._repeats: dict[UUID, int] = {}
        self._stopped: set[UUID] = set()
        self._over_budget = False
        self._degraded = False

    def stage_began(self, stage: StageStart, *, finished: bool = False) -> None:
        """Notes the kind of a stage."""
        self._stages[stage.id] = stage.kind.value

    def stage_ended(self, outcome: StageOutcome) -> None:
        """Counts a stage."""
        if (purpose := self._stages.pop(outcome.stage, None)) is not None:
            self._metrics.add(table.STAGES, kind=purpose, state=outcome.state.value)
        if (acted := outcome.acted) is not None and not acted.replay:
            self._metrics.add(table.ACTIONS, acted="yes" if acted.acted else "no", model_says=acted.word.value)

    def execution_began(self, execution: ExecutionStart, *, finished: bool = False) -> None:
        """Notes the strategy of an agent, and whether another one dispatched it."""
        self._strategies[execution.id] = execution.strategy
        if execution.parent is not None and not finished:
            self._dispatched.add(execution.id)

    def execution_ended(self, outcome: ExecutionOutcome) -> None:
        """Counts an agent."""
        strategy = self._strategies.pop(outcome.execution, table.OTHER)
        self._metrics.add(table.EXECUTIONS, strategy=strategy, state=outcome.state.value)
        if outcome.execution in self._dispatched:
            self._dispatched.discard(outcome.execution)
            self._metrics.add(table.DISPATCHES, result=outcome.state.value)

    def model_call_began(self, call: ModelCallStart) -> None:
        """Notes the provider of a model call, and counts a stop of the loop guard."""
        provider = self._providers.get((call.provider, call.model), table.OTHER)
        self._model_calls[call.id] = provider, call.kind.value
        repeats = self._repeats.get(call.execution, 0)
        forced = call.kind is ModelCallKind.FORCED_CONCLUSION and call.execution not in self._stopped
        if forced and repeats >= self._repeats_in_a_row:
            self._stopped.add(call.execution)
            self._metrics.add(table.GUARD_STOPS)

    def model_call_ended(self, result: ModelCallResult, events: Sequence[Event]) -> None:
        """Counts a model call with its time, tokens and cost."""
        provider, purpose = self._model_calls.pop(result.id, (table.OTHER, table.OTHER))
        failure = None if result.failure is None else result.failure.reason
        seconds = result.duration_ms / 1000
        count_call(self._metrics, FinishedCall(provider, purpose, seconds, failure, result.usage, result.cost_usd))
        for event in events:
            if event.type is EventType.PROVIDER_FALLBACK:
                self._metrics.add(table.FALLBACKS, code=failure or "EmptyAnswer")

    def tool_call_began(self, call: ToolCallStart) -> None:
        """Counts a tool call that is repeated or refused."""
        self._tool_calls[call.id] = self._transports.get(call.server, table.OTHER), call.made
        if not call.server and call.tool == LOAD_SKILL:
            self._skill_loads.add(call.id)
        repeated = call.repeated_of is not None
        self._repeats[call.execution] = self._repeats.get(call.execution, 0) + 1 if repeated else 0
        if repeated:
            self._metrics.add(table.GUARD_ANSWERS)
        if call.refused is not None and not call.server and call.tool in DISPATCH_TOOLS:
            self._metrics.add(table.DISPATCHES, result="refused")
        elif call.refused is not None:
            self._metrics.add(table.REFUSED_TOOL_CALLS)

    def tool_call_ended(self, result: ToolCallResult) -> None:
        """Counts a tool call that was made, with its time."""
        if result.id in self._skill_loads:
            self._skill_loads.discard(result.id)
            self._metrics.add(table.SKILL_LOADS, outcome="failed" if result.is_error else "completed")
        transport, made = self._tool_calls.pop(result.id, (table.OTHER, True))
        if not made:
            return
        outcome = "interrupted" if result.interrupted else "failed" if result.is_error else "completed"
        if result.replayed is not None and result.replayed.handed_on:
            self._metrics.add(table.HANDED_ON)
            return
        self._metrics.add(table.TOOL_CALLS, transport=transport, outcome=outcome)
        if outcome != "completed":
            self._metrics.add(table.TOOL_ERRORS, transport=transport, outcome=outcome)
        self._metrics.observe(table.TOOL_SECONDS, result.duration_ms / 1000, transport=transport)

    def budget_exceeded(self, exceeded: BudgetExceeded) -> None:
        """Counts a run that reached its budget, once: its agents find that one by one."""
        if not self._over_budget:
            self._over_budget = True
            self._metrics.add(table.BUDGET_STOPS, limit=str(exceeded.limit))

    def evidence_degraded(self, missing: Mapping[str, str]) -> None:
        """Counts a run as degraded, once."""
        if missing and not self._degraded:
            self._degraded = True
            self._metrics.add(table.DEGRADED)

    def events_written(self, events: Sequence[Event]) -> None:
        """Counts what was decided about second attempts of stages."""
        for event in events:
            if (outcome := _ESCALATIONS.get(str(event.metadata.get("reason")))) is not None:
                self._metrics.add(table.ESCALATIONS, outcome=outcome)

    def lease_lost(self) -> None:
        """Counts a step that the record refused."""
        self._metrics.add(table.FENCED)

    def ended(self, outcome: RunOutcome, seconds: float) -> None:
        """Counts the end of the run, `seconds` after its first attempt began."""
        self._metrics.add(table.TERMINAL, kind=self._kind, state=outcome.state.value)
        self._metrics.observe(table.DURATION, seconds, kind=self._kind)
        if self._kind != "investigation":
            return
        finding = outcome.finding
        self._metrics.add(table.FINDINGS, confidence="none" if finding is None else finding.confidence.value)
        for claim in finding.claims if finding is not None else ():
            for citation in claim.citations:
                self._metrics.add(table.CITATIONS, outcome="held" if citation.supported else "failed")
