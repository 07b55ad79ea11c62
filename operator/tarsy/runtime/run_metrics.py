"""What one attempt of a run counts: each step once, when it is on record.

Decision: the steps are counted where the engine's recorder is bound to the store, so the engine knows nothing of
metrics, and what is counted is what the record holds. A step of the record that a lost answer makes twice is counted
once, because it returns once. Names of providers and servers are people's words: what is told are their types.
"""

from collections.abc import Sequence
from uuid import UUID

from tarsy.observe import metric_table as table
from tarsy.observe.metrics import Metrics
from tarsy.plan.model import AgentPlan, Plan, ProviderPlan
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.history import BudgetExceeded
from tarsy.record.run import ExecutionOutcome, ExecutionStart, ModelCallKind, RunOutcome, StageOutcome, StageStart
from tarsy.record.timeline import Event, EventType


def kind(question: bool) -> str:
    """The value of the label `kind` for a run."""
    return "question" if question else "investigation"


class RunMeter:
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
        agents = _agents(plan)
        self._providers = {(of.ref.name, of.model): of.type for agent in agents for of in _providers(agent)}
        self._transports = {server.name: server.transport.type for agent in agents for server in agent.servers}
        self._stages: dict[UUID, str] = {}
        self._strategies: dict[UUID, str] = {}
        self._model_calls: dict[UUID, tuple[str, str]] = {}
        self._tool_calls: dict[UUID, tuple[str, bool]] = {}
        self._repeats: dict[UUID, int] = {}
        self._stopped: set[UUID] = set()
        self._over_budget = False
        self._degraded = False

    def stage_began(self, stage: StageStart) -> None:
        """A stage is on record as begun."""
        self._stages[stage.id] = stage.kind.value

    def stage_ended(self, outcome: StageOutcome) -> None:
        """A stage is on record as ended."""
        if (purpose := self._stages.pop(outcome.stage, None)) is not None:
            self._metrics.add(table.STAGES, kind=purpose, state=outcome.state.value)

    def execution_began(self, execution: ExecutionStart) -> None:
        """An agent is on record as begun."""
        self._strategies[execution.id] = execution.strategy

    def execution_ended(self, outcome: ExecutionOutcome) -> None:
        """An agent is on record as ended."""
        strategy = self._strategies.pop(outcome.execution, table.OTHER)
        self._metrics.add(table.EXECUTIONS, strategy=strategy, state=outcome.state.value)

    def model_call_began(self, call: ModelCallStart) -> None:
        """A model call is about to be made."""
        provider = self._providers.get((call.provider, call.model), table.OTHER)
        self._model_calls[call.id] = provider, call.kind.value
        repeats = self._repeats.get(call.execution, 0)
        forced = call.kind is ModelCallKind.FORCED_CONCLUSION and call.execution not in self._stopped
        if forced and repeats >= self._repeats_in_a_row:
            self._stopped.add(call.execution)
            self._metrics.add(table.GUARD_STOPS)

    def model_call_ended(self, result: ModelCallResult, events: Sequence[Event]) -> None:
        """A model call came back."""
        add = self._metrics.add
        provider, purpose = self._model_calls.pop(result.id, (table.OTHER, table.OTHER))
        outcome = "completed" if result.failure is None else "failed"
        add(table.MODEL_CALLS, provider_type=provider, kind=purpose, outcome=outcome)
        self._metrics.observe(table.MODEL_SECONDS, result.duration_ms / 1000, provider_type=provider)
        code = result.failure.reason if result.failure is not None else "EmptyAnswer"
        if result.failure is not None:
            add(table.MODEL_ERRORS, provider_type=provider, code=code)
        if (usage := result.usage) is not None:
            for tokens, of in (
                (usage.input_tokens, "input"),
                (usage.output_tokens, "output"),
                (usage.thinking_tokens, "thinking"),
                (usage.cached_tokens, "cached"),
            ):
                add(table.MODEL_TOKENS, tokens, provider_type=provider, kind=of)
        if result.cost_usd is None:
            add(table.UNPRICED, provider_type=provider)
        else:
            add(table.MODEL_COST, float(result.cost_usd), provider_type=provider)
        for event in events:
            if event.type is EventType.PROVIDER_FALLBACK:
                add(table.FALLBACKS, code=code)

    def tool_call_began(self, call: ToolCallStart) -> None:
        """A tool call is on record as begun, or as one that is not made."""
        self._tool_calls[call.id] = self._transports.get(call.server, table.OTHER), call.made
        repeated = call.repeated_of is not None
        self._repeats[call.execution] = self._repeats.get(call.execution, 0) + 1 if repeated else 0
        if repeated:
            self._metrics.add(table.GUARD_ANSWERS)
        if call.refused is not None:
            self._metrics.add(table.REFUSED_TOOL_CALLS)

    def tool_call_ended(self, result: ToolCallResult) -> None:
        """A tool call's result is on record."""
        transport, made = self._tool_calls.pop(result.id, (table.OTHER, True))
        if not made:
            return
        outcome = "interrupted" if result.interrupted else "failed" if result.is_error else "completed"
        self._metrics.add(table.TOOL_CALLS, transport=transport, outcome=outcome)
        if outcome != "completed":
            self._metrics.add(table.TOOL_ERRORS, transport=transport, outcome=outcome)
        self._metrics.observe(table.TOOL_SECONDS, result.duration_ms / 1000, transport=transport)

    def budget_exceeded(self, exceeded: BudgetExceeded) -> None:
        """A limit of the budget is reached; its agents find that one by one."""
        if not self._over_budget:
            self._over_budget = True
            self._metrics.add(table.BUDGET_STOPS, limit=exceeded.limit.value)

    def degraded(self) -> None:
        """A tool server is missing."""
        if not self._degraded:
            self._degraded = True
            self._metrics.add(table.DEGRADED)

    def fenced(self) -> None:
        """The record refused a write."""
        self._metrics.add(table.FENCED)

    def ended(self, outcome: RunOutcome, seconds: float) -> None:
        """The run has ended, so many seconds after its first attempt began."""
        self._metrics.add(table.TERMINAL, kind=self._kind, state=outcome.state.value)
        self._metrics.observe(table.DURATION, seconds, kind=self._kind)
        if self._kind != "investigation":
            return
        finding = outcome.finding
        self._metrics.add(table.FINDINGS, confidence="none" if finding is None else finding.confidence.value)
        for claim in finding.claims if finding is not None else ():
            for citation in claim.citations:
                self._metrics.add(table.CITATIONS, outcome="held" if citation.supported else "failed")


def _providers(agent: AgentPlan) -> list[ProviderPlan]:
    """All providers that an agent may ask."""
    own = [agent.provider, *([agent.summarizer] if agent.summarizer is not None else [])]
    return own + [entry.provider for entry in agent.fallback]


def _agents(plan: Plan) -> list[AgentPlan]:
    agents = [agent for stage in plan.stages for agent in (*stage.agents, stage.synthesis) if agent is not None]
    return agents + ([plan.executive_summary] if plan.executive_summary is not None else [])
