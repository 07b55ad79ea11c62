"""Defines a run as it is read from the record to be replayed: its input, its agents and their tool calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from tarsy.record.integrity import EvidenceMarks
from tarsy.record.judging.precedent import Precedent
from tarsy.record.messages import Access, ToolDefinition


@dataclass(frozen=True, slots=True)
class RecordedAgent:
    """An agent execution with the tools that it was offered; `stage` and `index` are its place in the run.

    `result` is its conclusion. A stage of kind Changes has the strategy `changes`. `changed` are the tools that servers
    had changed or removed since the run began, by server.
    """

    id: UUID
    stage: int
    index: int
    strategy: str
    began: datetime
    result: str | None
    tools: Sequence[ToolDefinition] = ()
    instructions: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedToolCall:
    """A tool call that its server, or the stage, answered; `told` is the message that the model was sent."""

    id: UUID
    execution: UUID
    message_seq: int
    index: int
    server: str
    tool: str
    arguments: str
    result: str
    is_error: bool
    access: Access
    repeatable: bool
    idempotency_key: str
    started_at: datetime
    told: str | None
    marks: EvidenceMarks | None = None


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A finished run.

    `access` has the recorded effect of tools that were called or refused, by server and tool, and `repeatable` those
    that may be called again; `pins` the digests of
    all tools by server; `missing` the tool servers that were not available, with the reason; `precedents` the earlier
    investigations that its agents were told about.
    """

    id: UUID
    namespace: str
    name: str
    alert_type: str
    chain: str
    chain_namespace: str
    plan_hash: str
    alert_data: str
    runbook: str | None
    began: datetime
    agents: Sequence[RecordedAgent] = ()
    calls: Sequence[RecordedToolCall] = ()
    access: Mapping[tuple[str, str], Access] = field(default_factory=dict)
    repeatable: frozenset[tuple[str, str]] = frozenset()
    pins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    precedents: Sequence[Precedent] = ()


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A tool call of a replay as its model asked for it; `place` is stage, agent, message and index."""

    place: tuple[int, int, int, int]
    tool: str
    arguments: str
    rung: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class AskedCalls:
    """All tool calls of a replay in the order of their places, and the uses of tools of the model's provider."""

    calls: Sequence[AskedCall] = ()
    native: int = 0
