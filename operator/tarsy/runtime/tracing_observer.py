"""Sets the stage and agent of log lines, and makes the spans of a run, as its steps are recorded.

An observer is called in the task that takes the step, so the log's fields and the current span, which tool servers
receive, hold for what that task does next, and for nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from tarsy.engine.changes_stage import SERVER
from tarsy.engine.skills.agent_skills import LOAD_SKILL
from tarsy.evidence.briefing import Source
from tarsy.llm.providers import gen_ai_provider_name
from tarsy.observe.logs import bind
from tarsy.observe.tracing import Attributes, RunTrace, SpanStyle, Tracing
from tarsy.plan.model import Plan
from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.dispatch import DISPATCH_TOOLS
from tarsy.record.finding import Finding
from tarsy.record.ids import call_ref
from tarsy.record.run import ExecutionOutcome, ExecutionStart, RunOutcome, StageOutcome, StageStart, State
from tarsy.record.timeline import Event
from tarsy.runtime.observed_recorder import RunObserver
from tarsy.runtime.span_content import asked_of_model, asked_of_tool, openinference, said_by_model, said_by_tool
from tarsy.store.runs.claims import ClaimedRun

_TOOL_ERROR = "tool_error"
OUTCOME_UNKNOWN = "outcome_unknown"
_OWN_TOOLS = frozenset(
    {*((SERVER, source.value) for source in Source), *(("", tool) for tool in (LOAD_SKILL, *DISPATCH_TOOLS))}
)
"""Tools that no tool server has: the engine answers them."""
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
    if tracing.style.openinference:
        about = {**about, **openinference(about)}
    return tracing.run(claimed.id, claimed.attempt, f"invoke_workflow {claimed.plan.chain.name}", about)


def end_trace(trace: RunTrace | None, outcome: RunOutcome | None) -> None:
    """Ends the trace of an attempt with the run's outcome; None where it is left to another."""
    if trace is None:
        return
    if outcome is None:
        trace.close(error="left")
    else:
        failed = outcome.failure.reason if outcome.failure else outcome.state.value
        if (finding := outcome.finding) is not None and finding.claims:
            trace.note("gen_ai.evaluation.result", evaluated(finding))
        trace.close({"tarsy.state": outcome.state.value}, error=None if outcome.state is State.COMPLETED else failed)


class TracingObserver(RunObserver):
    """Sets the stage and agent of log lines, and makes the spans of a run.

    Args:
        plan: of the run.
        trace: of this attempt; None where tracing is off.
    """

    def __init__(self, plan: Plan, trace: RunTrace | None) -> None:
        self._trace = trace
        self._style = trace.style if trace else SpanStyle()
        self._version = plan.digest if trace else ""
        self._chain = f"{plan.chain.namespace}/{plan.chain.name}"
        self._piped = _child_processes(plan) if trace else frozenset[str]()
        self._providers = {p.ref.name: gen_ai_provider_name(p.type) for p in plan.providers} if trace else {}
        self._tools: set[tuple[str, str]] = set()

    def stage_began(self, stage: StageStart, *, finished: bool = False) -> None:
        """Begins the span of a stage."""
        bind(stage=stage.name)
        if self._trace and not finished:
            about: dict[str, Any] = {
                "tarsy.stage.name": stage.name,
                "tarsy.stage.index": stage.index,
                "tarsy.stage.kind": stage.kind,
            }
            self._trace.begin(stage.id, f"stage {stage.name}", about)

    def stage_ended(self, outcome: StageOutcome) -> None:
        """Ends the span of a stage."""
        if self._trace:
            self._trace.end(outcome.stage, error=_failed(outcome))

    def execution_began(self, execution: ExecutionStart, *, finished: bool = False) -> None:
        """Begins the span of an agent."""
        bind(agent=execution.display_name)
        if self._trace and not finished:
            about = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": execution.agent,
                "gen_ai.agent.id": f"{self._chain}/{execution.agent}",
                "gen_ai.agent.version": self._version,
                "tarsy.execution": str(execution.id),
                "tarsy.strategy": execution.strategy,
            }
            if execution.model:
                about["gen_ai.provider.name"] = self._provider(execution.provider)
                about["gen_ai.request.model"] = execution.model
            name = f"invoke_agent {execution.display_name}"
            self._trace.begin(execution.id, name, self._styled(about), of=execution.stage)

    def execution_ended(self, outcome: ExecutionOutcome) -> None:
        """Ends the span of an agent."""
        if self._trace:
            self._trace.end(outcome.execution, error=_failed(outcome))

    def model_call_began(self, call: ModelCallStart) -> None:
        """Begins the span of a model call."""
        if self._trace:
            about: dict[str, Any] = {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": self._provider(call.provider),
                "gen_ai.request.model": call.model,
                "gen_ai.request.stream": True,
                "tarsy.call": str(call.id),
                "tarsy.call.kind": call.kind.value,
            }
            if self._style.content:
                about |= asked_of_model(call)
            self._trace.begin(call.id, f"chat {call.model}", self._styled(about), of=call.execution, outside=True)

    def model_call_ended(self, result: ModelCallResult, events: Sequence[Event]) -> None:
        """Ends the span of a model call."""
        if self._trace:
            about = _answer(result)
            if self._style.content:
                about |= said_by_model(result)
            self._trace.end(result.id, self._styled(about), error=result.failure.reason if result.failure else None)

    def tool_call_began(self, call: ToolCallStart) -> None:
        """Begins the span of a tool call, and makes it the current one of this task."""
        if self._trace:
            served = (call.server, call.tool) in self._tools
            known = served or (call.server, call.tool) in _OWN_TOOLS
            tool = call.tool if known else OTHER_TOOL
            about: dict[str, Any] = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": call_ref(call.idempotency_key),
                "tarsy.call": str(call.id),
                "tarsy.tool.made": call.made,
            }
            if known and call.server:
                about["tarsy.tool.server"] = call.server
            if served and call.made:
                about["mcp.method.name"] = "tools/call"
                about["network.transport"] = "pipe" if call.server in self._piped else "tcp"
            if known and self._style.content:
                about |= asked_of_tool(call)
            if call.refused is not None:
                about["tarsy.tool.refused"] = call.refused
            name = f"execute_tool {tool}"
            self._trace.begin(call.id, name, self._styled(about), of=call.execution, outside=served and call.made)
            self._trace.enter(call.id)

    def tool_call_answered(self, call: UUID) -> None:
        """Ends the span of a tool call: its server has answered."""
        if self._trace:
            self._trace.end(call)

    def tool_call_ended(self, result: ToolCallResult) -> None:
        """Ends the span of a tool call."""
        if self._trace:
            failed = _TOOL_ERROR if result.is_error else None
            about = said_by_tool(result) if self._style.content else {}
            error = OUTCOME_UNKNOWN if result.interrupted else failed
            self._trace.end(result.id, self._styled(about), error=error)

    def tools_found(self, found: Mapping[str, Mapping[str, str]]) -> None:
        """Notes the names of tools that exist: a trace contains no others."""
        self._tools |= {(server, tool) for server, tools in found.items() for tool in tools}

    def _provider(self, name: str) -> str:
        return self._providers.get(name, "_OTHER")

    def _styled(self, about: dict[str, Any]) -> dict[str, Any]:
        return {**about, **openinference(about)} if self._style.openinference else about


def evaluated(finding: Finding) -> dict[str, Any]:
    """Returns the check of a finding's citations, as the conventions name the result of an evaluation."""
    claims, supported = len(finding.claims), finding.supported_claims
    return {
        "gen_ai.evaluation.name": "citations",
        "gen_ai.evaluation.score.value": supported / claims,
        "gen_ai.evaluation.score.label": finding.confidence.value,
        "gen_ai.evaluation.explanation": f"{supported} of {claims} claims are supported by results of tools",
    }


def _child_processes(plan: Plan) -> frozenset[str]:
    """Returns the names of the tool servers of a plan that are child processes."""
    servers = [server for stage in plan.stages for agent in stage.members for server in agent.servers]
    return frozenset(server.name for server in servers if server.transport.type == "stdio")


def _answer(result: ModelCallResult) -> dict[str, Any]:
    """The attributes of a model's answer."""
    about: dict[str, Any] = {}
    if (reason := result.response_metadata.get("finish_reason")) is not None:
        about["gen_ai.response.finish_reasons"] = [str(reason)[:64]]
    for name, attribute in (("response_id", "gen_ai.response.id"), ("response_model", "gen_ai.response.model")):
        if (told := result.response_metadata.get(name)) is not None:
            about[attribute] = str(told)
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
