"""A run's recorder that tells the log and the traces which step is under way.

Decision: the engine knows of neither. Every step begins and ends at its recorder, in the task that takes the step, so
what is set there for the current task (the log's stage and agent, the span that tool servers are told of) holds for
what that task does next, and for nothing else.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from tarsy.engine.ports import Recorder
from tarsy.observe.logs import bind
from tarsy.observe.tracing import Attributes, RunTrace, Tracing
from tarsy.plan.model import AgentPlan, Plan, ProviderPlan
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.finding import Evidence
from tarsy.record.history import BudgetExceeded, RunHistory
from tarsy.record.run import (
    ExecutionOutcome,
    ExecutionRecord,
    ExecutionStart,
    RunOutcome,
    StageOutcome,
    StageRecord,
    StageStart,
    State,
)
from tarsy.record.timeline import Event, TimelineEvent
from tarsy.store.claims import ClaimedRun

PROVIDERS = {
    "openai": "openai",
    "google": "gcp.gemini",
    "vertexai": "gcp.vertex_ai",
    "anthropic": "anthropic",
    "xai": "x_ai",
}
"""What the GenAI conventions call the types of LLMProviders."""

_TOOL_ERROR = "tool_error"
OUTCOME_UNKNOWN = "outcome_unknown"
OTHER_TOOL = "_OTHER"
"""The name of a tool that its model made up: what a model writes is not for traces."""


def begin_trace(tracing: Tracing | None, claimed: ClaimedRun) -> RunTrace | None:
    """The trace of a claimed run, where there are traces; the answer to a question has one of its own."""
    if tracing is None:
        return None
    about: Attributes = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": claimed.plan.chain.name,
        "gen_ai.conversation.id": str(claimed.parent or claimed.id),
        "tarsy.investigation.uid": str(claimed.parent or claimed.id),
        "tarsy.namespace": claimed.namespace,
        "tarsy.name": claimed.name,
        "tarsy.attempt": claimed.attempt,
    }
    return tracing.run(claimed.id, claimed.attempt, f"invoke_workflow {claimed.plan.chain.name}", about)


def end_trace(trace: RunTrace | None, outcome: RunOutcome | None) -> None:
    """Ends the trace of an attempt with the run's outcome; None where it is left to another."""
    if trace is None:
        return
    if outcome is None:
        trace.close(error="left")
    else:
        failed = outcome.failure.reason if outcome.failure else outcome.state.value
        trace.close({"tarsy.state": outcome.state.value}, error=None if outcome.state is State.COMPLETED else failed)


class ObservedRecorder:
    """Implements `engine.ports.Recorder` by another one.

    Args:
        recorder: writes the record.
        plan: of the run.
        trace: of this attempt; None where there are no traces.
    """

    def __init__(self, recorder: Recorder, plan: Plan, trace: RunTrace | None) -> None:
        self._recorder = recorder
        self._trace = trace
        self._providers = {p.ref.name: PROVIDERS.get(p.type, p.type) for p in _providers(plan)} if trace else {}
        self._tools: set[tuple[str, str]] = set()

    async def begin_stage(self, stage: StageStart) -> StageRecord:
        """Creates the stage, or returns what an earlier attempt left."""
        record = await self._recorder.begin_stage(stage)
        bind(stage=stage.name)
        if self._trace and not record.state.finished:
            about: dict[str, Any] = {
                "tarsy.stage.name": stage.name,
                "tarsy.stage.index": stage.index,
                "tarsy.stage.kind": stage.kind,
            }
            self._trace.begin(stage.id, f"stage {stage.name}", about)
        return record

    async def finish_stage(self, outcome: StageOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the stage."""
        await self._recorder.finish_stage(outcome, events)
        if self._trace:
            self._trace.end(outcome.stage, error=_failed(outcome))

    async def begin_execution(self, execution: ExecutionStart) -> ExecutionRecord:
        """Creates the execution, or returns what an earlier attempt left."""
        record = await self._recorder.begin_execution(execution)
        bind(agent=execution.display_name)
        if self._trace and not record.state.finished:
            about = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": execution.agent,
                "gen_ai.provider.name": self._provider(execution.provider),
                "gen_ai.request.model": execution.model,
                "tarsy.execution": str(execution.id),
                "tarsy.strategy": execution.strategy,
            }
            self._trace.begin(execution.id, f"invoke_agent {execution.display_name}", about, of=execution.stage)
        return record

    async def finish_execution(self, outcome: ExecutionOutcome, events: Sequence[Event] = ()) -> None:
        """Closes the execution."""
        await self._recorder.finish_execution(outcome, events)
        if self._trace:
            self._trace.end(outcome.execution, error=_failed(outcome))

    async def model_call_started(self, call: ModelCallStart, events: Sequence[Event] = ()) -> None:
        """Boundary (a)."""
        await self._recorder.model_call_started(call, events)
        if self._trace:
            about: dict[str, Any] = {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": self._provider(call.provider),
                "gen_ai.request.model": call.model,
                "gen_ai.request.stream": True,
                "tarsy.call": str(call.id),
                "tarsy.call.kind": call.kind.value,
            }
            self._trace.begin(call.id, f"chat {call.model}", about, of=call.execution, outside=True)

    async def model_call_finished(self, result: ModelCallResult, events: Sequence[Event] = ()) -> None:
        """Boundary (b)."""
        await self._recorder.model_call_finished(result, events)
        if self._trace:
            self._trace.end(result.id, _said(result), error=result.failure.reason if result.failure else None)

    async def tool_call_started(self, call: ToolCallStart, events: Sequence[Event] = ()) -> None:
        """Boundary (c); what this task asks from here on, it asks in the name of the call."""
        await self._recorder.tool_call_started(call, events)
        if self._trace:
            known = (call.server, call.tool) in self._tools
            tool = call.tool if known else OTHER_TOOL
            about: dict[str, Any] = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
                "gen_ai.tool.type": "function",
                "tarsy.call": str(call.id),
                "tarsy.tool.made": call.made,
            }
            if known:
                about["tarsy.tool.server"] = call.server
            if call.refused is not None:
                about["tarsy.tool.refused"] = call.refused
            self._trace.begin(call.id, f"execute_tool {tool}", about, of=call.execution, outside=call.made)
            self._trace.enter(call.id)

    async def tool_call_answered(self, call: UUID, result: str, duration_ms: int, events: Sequence[Event] = ()) -> None:
        """The result of a call that stays open until its model is told of it."""
        await self._recorder.tool_call_answered(call, result, duration_ms, events)
        if self._trace:
            self._trace.end(call)

    async def tool_call_finished(self, result: ToolCallResult, events: Sequence[Event] = ()) -> None:
        """Boundary (d)."""
        await self._recorder.tool_call_finished(result, events)
        if self._trace:
            failed = _TOOL_ERROR if result.is_error else None
            self._trace.end(result.id, error=OUTCOME_UNKNOWN if result.interrupted else failed)

    async def write_events(self, events: Sequence[Event]) -> None:
        """Creates or replaces timeline events outside of a step."""
        await self._recorder.write_events(events)

    async def stage_timeline(self, stage: UUID) -> Mapping[UUID, Sequence[TimelineEvent]]:
        """The events of a stage by execution, in order."""
        return await self._recorder.stage_timeline(stage)

    async def history(self) -> RunHistory:
        """What the run used and called so far."""
        return await self._recorder.history()

    async def budget_exceeded(self, exceeded: BudgetExceeded, events: Sequence[Event] = ()) -> None:
        """Notes the limit that the run reached."""
        await self._recorder.budget_exceeded(exceeded, events)

    async def evidence(self, call_ids: Collection[str]) -> Mapping[str, Evidence]:
        """Those of `call_ids` that are closed tool calls of this run."""
        return await self._recorder.evidence(call_ids)

    async def pin_tools(self, found: Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str]]:
        """What the run first saw of these servers; of other tools a trace does not tell the names."""
        self._tools |= {(server, tool) for server, tools in found.items() for tool in tools}
        return await self._recorder.pin_tools(found)

    async def degrade_evidence(self, missing: Mapping[str, str]) -> None:
        """Notes tool servers that were missing."""
        await self._recorder.degrade_evidence(missing)

    def _provider(self, name: str) -> str:
        return self._providers.get(name, "_OTHER")


def _said(result: ModelCallResult) -> dict[str, Any]:
    """What a model's answer was like."""
    about: dict[str, Any] = {}
    if (reason := result.response_metadata.get("finish_reason")) is not None:
        about["gen_ai.response.finish_reasons"] = [str(reason)[:64]]
    if result.usage is not None and result.usage.complete:
        about |= {
            "gen_ai.usage.input_tokens": result.usage.input_tokens,
            "gen_ai.usage.output_tokens": result.usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": result.usage.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": result.usage.thinking_tokens,
        }
    if result.cost_usd is not None:
        about["tarsy.cost_usd"] = float(result.cost_usd)
    return about


def _failed(outcome: StageOutcome | ExecutionOutcome) -> str | None:
    if outcome.state is State.COMPLETED:
        return None
    return outcome.failure.reason if outcome.failure else outcome.state.value


def _agents(plan: Plan) -> list[AgentPlan]:
    own = [agent for stage in plan.stages for agent in stage.agents]
    others = [stage.synthesis for stage in plan.stages] + [plan.executive_summary]
    return own + [agent for agent in others if agent is not None]


def _providers(plan: Plan) -> list[ProviderPlan]:
    return [
        provider
        for agent in _agents(plan)
        for provider in (agent.provider, *(f.provider for f in agent.fallback), agent.summarizer)
        if provider is not None
    ]
