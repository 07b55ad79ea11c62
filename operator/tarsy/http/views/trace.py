"""The trace: each call of a model and of a tool, in brief with its times, and one by one with all that was said.

Decision: messages are served as they were sent but for one thing: what a provider signed for itself
(`provider_state`) is nobody else's, and has no place in these models.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.route import View
from tarsy.http.views.common import FailureView, RunRef, Spent, dollars
from tarsy.http.views.investigations import AgentView, StageHead, head
from tarsy.record.messages import Access, Message, Role, ToolCall, ToolDefinition
from tarsy.record.run import InteractionState, InvestigationRecord, ModelCallKind
from tarsy.store.traced import ModelCall, ModelCallDetail, Of, Stage, ToolCallDetail, ToolCallRow


class CallView(View):
    """A call with its times."""

    id: UUID
    state: InteractionState
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None = Field(description="Milliseconds, as who made the call measured them.")


class ModelCallView(CallView):
    """A model call in brief."""

    number: int = Field(description="Its place among the model calls of its agent, from 0.")
    kind: ModelCallKind
    provider: str
    model: str
    strategy: str
    spent: Spent | None = Field(description="Null: the provider did not say.")
    failure: FailureView | None

    @classmethod
    def of(cls, found: ModelCall) -> Self:
        """A call of the record."""
        return cls(**_model_call(found))


class ToolCallView(CallView):
    """A tool call in brief."""

    server: str
    tool: str
    ref: str = Field(description="What models know it by, and cite.")
    attempt: int = Field(description="Which try of it, from 0: it is made again after a crash, where that is safe.")
    made: bool = Field(description="False: it was answered without its server.")
    repeated_of: UUID | None = Field(description="The call whose answer was given again.")
    refused: str | None = Field(description="Why it was not made, in one CamelCase word.")
    access: Access

    @classmethod
    def of(cls, found: ToolCallRow) -> Self:
        """A call of the record."""
        return cls(**_tool_call(found))


class AgentTrace(AgentView):
    """An agent with its calls, in the order in which they were begun."""

    llm: tuple[ModelCallView, ...]
    mcp: tuple[ToolCallView, ...]


class StageTrace(StageHead):
    """A stage with its agents."""

    agents: tuple[AgentTrace, ...]


class TraceView(View):
    """All stages and agents, and as many of their calls as a page holds."""

    investigation: RunRef
    started_at: datetime | None
    finished_at: datetime | None
    stages: tuple[StageTrace, ...]
    next: str | None = Field(
        alias="continue", description="Give it as `continue` for further calls; null: these were all."
    )

    @classmethod
    def of(
        cls,
        record: InvestigationRecord,
        stages: Sequence[Stage],
        calls: Iterable[ModelCall | ToolCallRow],
        next_: str | None,
    ) -> Self:
        """A page of the trace."""
        models: defaultdict[UUID, list[ModelCallView]] = defaultdict(list)
        tools: defaultdict[UUID, list[ToolCallView]] = defaultdict(list)
        for call in calls:
            if isinstance(call, ModelCall):
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


class ToolUse(View):
    """A tool call as a model wrote it."""

    id: str
    name: str
    arguments: str

    @classmethod
    def of(cls, call: ToolCall) -> Self:
        """A tool call of a message."""
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
        """A message, without what its provider signed."""
        return cls(
            role=message.role,
            content=message.content,
            tool_calls=tuple(ToolUse.of(call) for call in message.tool_calls),
            tool_call_id=message.tool_call_id,
            tool_name=message.tool_name,
        )


class ToolView(View):
    """A tool as it was offered to a model."""

    name: str
    description: str
    parameters: dict[str, Any] = Field(description="A JSON schema.")

    @classmethod
    def of(cls, tool: ToolDefinition) -> Self:
        """A tool of the record."""
        return cls(name=tool.name, description=tool.description, parameters=tool.parameters_schema)


class Owner(View):
    """Whose call it was."""

    stage: str
    agent: str
    execution: UUID
    chat_message: str | None = Field(description="The question that it was made for; null: for the investigation.")

    @classmethod
    def of(cls, found: Of, execution: UUID) -> Self:
        """The owner of a call."""
        return cls(stage=found.stage, agent=found.agent, execution=execution, chat_message=found.answer)


class ModelCallDetails(ModelCallView):
    """A model call with its conversation, exactly as it was sent, and its answer."""

    owner: Owner
    messages: tuple[MessageView, ...]
    tools: tuple[ToolView, ...]
    answer: MessageView | None = Field(description="Null: there was none, or it was lost.")
    thinking: str | None
    metadata: dict[str, Any] = Field(
        description="How it ended, retries, waits, code that was run, pages that were read."
    )
    estimated_tokens: int = Field(description="What a budget counts while the usage is not known.")
    estimated_cost_usd: float = Field(alias="estimatedCostUSD")

    @classmethod
    def detailed(cls, found: ModelCallDetail, sent: Sequence[Message]) -> Self:
        """A call of the record with what it was sent."""
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
    """A tool call with what it was given and what it returned."""

    owner: Owner
    call_id: str = Field(description="As the model named it.")
    arguments: str = Field(description="As the model wrote them.")
    result: str | None = Field(description="As stored, masked; null: there is none yet, or it was lost.")
    idempotency_key: str = Field(description="The same for every try of this call.")
    repeatable: bool = Field(description="It may be made again when a crash left it unknown whether it was made.")
    tries: tuple[UUID, ...] = Field(description="The ids of all its tries, in order.")

    @classmethod
    def detailed(cls, found: ToolCallDetail) -> Self:
        """A call of the record."""
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


def _call(found: ModelCall | ToolCallRow) -> dict[str, Any]:
    return {
        "id": found.id,
        "state": found.state,
        "started_at": found.started_at,
        "finished_at": found.finished_at,
        "duration_ms": found.duration_ms,
    }


def _model_call(found: ModelCall) -> dict[str, Any]:
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


def _tool_call(found: ToolCallRow) -> dict[str, Any]:
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
    }
