"""Models of the trace: summaries of model calls and tool calls with their times, and the details of one call.

Decision: messages are returned exactly as they were sent, except for `provider_state`, which a provider signed for its
own use.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import NEWER_WORD, NEXT_PAGE, FailureView, RunRef, Spent, dollars
from tarsy.http.views.investigations import AgentView, StageHead, head
from tarsy.http.views.timeline import ClaimView
from tarsy.record.dispatch import VerdictValue
from tarsy.record.judging.replay import Rung
from tarsy.record.messages import Access, Message, Role, ToolCall, ToolDefinition
from tarsy.record.reading.trace import (
    AgentDetail,
    CallOwner,
    ModelCallDetail,
    ModelCallTrace,
    StageDetail,
    ToolCallDetail,
    ToolCallTrace,
)
from tarsy.record.run import InteractionState, InvestigationRecord, ModelCallKind


class CallView(View):
    """A call and its times."""

    id: UUID
    state: Annotated[InteractionState | str, NEWER_WORD]
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None = Field(description="Duration in milliseconds, measured by the worker.")


class ModelCallView(CallView):
    """Summary of a model call."""

    number: int = Field(description="Number of the call within its agent, from 0.")
    kind: Annotated[ModelCallKind | str, NEWER_WORD]
    provider: str
    model: str
    strategy: str
    spent: Spent | None = Field(description="Usage of the call. Null if the provider did not report it.")
    failure: FailureView | None

    @classmethod
    def of(cls, found: ModelCallTrace) -> Self:
        """Converts a recorded call."""
        return cls(**_model_call(found))


class ToolCallView(CallView):
    """Summary of a tool call."""

    server: str
    tool: str
    ref: str = Field(description="Reference by which models cite the call.")
    attempt: int = Field(description="Number of the attempt, from 0. A call is repeated after a crash if that is safe.")
    made: bool = Field(description="False if the result was produced without calling the server.")
    repeated_of: UUID | None = Field(description="Earlier call whose result was reused.")
    refused: str | None = Field(description="Reason why it was not made, as one CamelCase word.")
    access: Annotated[Access | str, NEWER_WORD]
    rung: Annotated[Rung | str, NEWER_WORD] | None = Field(
        default=None,
        description="Origin of an answer from a record, in a replay or a second attempt of a stage. Null otherwise.",
    )
    cassette_line: int | None = Field(default=None, description="In a replay, the line of the record that answered.")

    @classmethod
    def of(cls, found: ToolCallTrace) -> Self:
        """Converts a recorded call."""
        return cls(**_tool_call(found))


class HypothesisVerdictView(View):
    """The verdict of a sub-agent on its hypothesis, as the record bears it out."""

    verdict: VerdictValue
    stated: str | None = Field(description="Verdict that its model gave.")
    reason: str | None = Field(description="Reason why that one does not stand, or why there is none.")
    claims: tuple[ClaimView, ...]


class DispatchView(View):
    """The task of a sub-agent, and what became of its hypothesis."""

    call_id: str | None = Field(description="Id of the tool call that dispatched it.")
    task: str
    hypothesis: str | None
    verdict: HypothesisVerdictView | None

    @classmethod
    def of(cls, found: AgentDetail) -> Self | None:
        """Converts a recorded agent; None for one of the plan."""
        if found.parent is None:
            return None
        verdict = found.verdict
        return cls(
            call_id=found.dispatched_by,
            task=found.task or "",
            hypothesis=found.hypothesis,
            verdict=None
            if verdict is None
            else HypothesisVerdictView(
                verdict=verdict.verdict,
                stated=verdict.stated,
                reason=verdict.reason,
                claims=tuple(map(ClaimView.of, verdict.claims)),
            ),
        )


class AgentTrace(AgentView):
    """An agent with its calls, sorted by start time."""

    dispatch: DispatchView | None = Field(default=None, description="Of a sub-agent.")
    llm: tuple[ModelCallView, ...]
    mcp: tuple[ToolCallView, ...]


class StageTrace(StageHead):
    """A stage with its agents."""

    agents: tuple[AgentTrace, ...]


class TraceView(View):
    """All stages and agents, with one page of their calls."""

    investigation: RunRef
    started_at: datetime | None
    finished_at: datetime | None
    stages: tuple[StageTrace, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)

    @classmethod
    def of(
        cls,
        record: InvestigationRecord,
        stages: Sequence[StageDetail],
        calls: Iterable[ModelCallTrace | ToolCallTrace],
        next_: str | None,
    ) -> Self:
        """Builds a page.

        Args:
            record: the run.
            stages: all of its stages with their agents.
            calls: the calls of the page.
            next_: token of the next page; None on the last one.
        """
        models: defaultdict[UUID, list[ModelCallView]] = defaultdict(list)
        tools: defaultdict[UUID, list[ToolCallView]] = defaultdict(list)
        for call in calls:
            if isinstance(call, ModelCallTrace):
                models[call.execution].append(ModelCallView.of(call))
            else:
                tools[call.execution].append(ToolCallView.of(call))
        return cls(
            investigation=RunRef(namespace=record.namespace, name=record.name, uid=record.id),
            started_at=record.started_at,
            finished_at=record.finished_at,
            stages=tuple(
                StageTrace(
                    **head(stage),
                    agents=tuple(
                        AgentTrace(
                            **dict(AgentView.of(agent)),
                            dispatch=DispatchView.of(agent),
                            llm=tuple(models[agent.id]),
                            mcp=tuple(tools[agent.id]),
                        )
                        for agent in stage.agents
                    ),
                )
                for stage in stages
            ),
            next=next_,
        )


class CassetteView(View):
    """The recorded tool calls of a run."""

    cassette: str = Field(description="A gzip file in the format tarsy.dev/cassette/v1, in base64.")
    calls: int = Field(description="Number of recorded calls.")


class ToolUse(View):
    """A tool call as a model wrote it."""

    id: str
    name: str
    arguments: str

    @classmethod
    def of(cls, call: ToolCall) -> Self:
        """Converts a tool call of a message."""
        return cls(id=call.id, name=call.name, arguments=call.arguments)


class MessageView(View):
    """One message of a conversation."""

    role: Role
    content: str
    tool_calls: tuple[ToolUse, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None

    @classmethod
    def of(cls, message: Message) -> Self:
        """Converts a message, without the signed state of its provider."""
        return cls(
            role=message.role,
            content=message.content,
            tool_calls=tuple(ToolUse.of(call) for call in message.tool_calls),
            tool_call_id=message.tool_call_id,
            tool_name=message.tool_name,
        )


class ToolView(View):
    """A tool definition that was sent to a model."""

    name: str
    description: str
    parameters: dict[str, Any] = Field(description="JSON Schema of the arguments.")

    @classmethod
    def of(cls, tool: ToolDefinition) -> Self:
        """Converts a recorded tool definition."""
        return cls(name=tool.name, description=tool.description, parameters=tool.parameters_schema)


class Owner(View):
    """Stage and agent that made a call."""

    stage: str
    agent: str
    execution: UUID
    chat_message: str | None = Field(
        description="Question that the call belongs to. Null for the investigation itself."
    )

    @classmethod
    def of(cls, found: CallOwner, execution: UUID) -> Self:
        """Converts the owner of a call."""
        return cls(stage=found.stage, agent=found.agent, execution=execution, chat_message=found.answer)


class ModelCallDetails(ModelCallView):
    """A model call with the exact messages sent and the response."""

    owner: Owner
    messages: tuple[MessageView, ...]
    tools: tuple[ToolView, ...]
    answer: MessageView | None = Field(description="Response of the model. Null if there was none or it was lost.")
    thinking: str | None
    metadata: dict[str, Any] = Field(description="Finish reason, retries, waits, executed code, fetched pages.")
    estimated_tokens: int = Field(description="Tokens that count against the budget while the usage is unknown.")
    estimated_cost_usd: float = Field(
        alias="estimatedCostUSD", description="US dollars that count against the budget while the cost is unknown."
    )

    @classmethod
    def detailed(cls, found: ModelCallDetail, sent: Sequence[Message]) -> Self:
        """Converts a recorded call and the messages sent."""
        calls = tuple(ToolUse.of(call) for call in found.tool_calls)
        answer = None
        if found.answer is not None:
            answer = MessageView(role=Role.ASSISTANT, content=found.answer, tool_calls=calls)
        return cls(
            **_model_call(found.call),
            owner=Owner.of(found.of, found.call.execution),
            messages=tuple(MessageView.of(message) for message in sent),
            tools=tuple(ToolView.of(tool) for tool in found.tools),
            answer=answer,
            thinking=found.thinking or None,
            metadata=found.metadata,
            estimated_tokens=found.estimated_tokens,
            estimated_cost_usd=dollars(found.estimated_cost_usd) or 0.0,
        )


class ToolCallDetails(ToolCallView):
    """A tool call with its arguments and its result."""

    owner: Owner
    call_id: str = Field(description="Id of the call, as the model wrote it.")
    arguments: str = Field(description="Arguments, as the model wrote them.")
    result: str | None = Field(
        description="Stored result with secrets masked. Null if there is none yet or it was lost."
    )
    idempotency_key: str = Field(description="Key that all attempts of this call share.")
    repeatable: bool = Field(description="Whether the call is repeated if a crash left its outcome unknown.")
    tries: tuple[UUID, ...] = Field(description="Ids of all attempts, in order.")

    @classmethod
    def detailed(cls, found: ToolCallDetail) -> Self:
        """Converts a recorded call."""
        return cls(
            **_tool_call(found.call),
            owner=Owner.of(found.of, found.call.execution),
            call_id=found.call_id,
            arguments=found.arguments,
            result=found.result,
            idempotency_key=found.idempotency_key,
            repeatable=found.repeatable,
            tries=tuple(found.tries),
        )


def _call(found: ModelCallTrace | ToolCallTrace) -> dict[str, Any]:
    return {
        "id": found.id,
        "state": found.state,
        "started_at": found.started_at,
        "finished_at": found.finished_at,
        "duration_ms": found.duration_ms,
    }


def _model_call(found: ModelCallTrace) -> dict[str, Any]:
    return {
        **_call(found),
        "number": found.number,
        "kind": found.kind,
        "provider": found.provider,
        "model": found.model,
        "strategy": found.strategy,
        "spent": Spent.of(found.usage, found.cost_usd, found.cost_usd is not None) if found.usage else None,
        "failure": FailureView.of(found.failure),
    }


def _tool_call(found: ToolCallTrace) -> dict[str, Any]:
    return {
        **_call(found),
        "server": found.server,
        "tool": found.tool,
        "ref": found.ref,
        "attempt": found.attempt,
        "made": found.made,
        "repeated_of": found.repeated_of,
        "refused": found.refused,
        "access": found.access,
        "rung": found.rung,
        "cassette_line": found.cassette_line,
    }
