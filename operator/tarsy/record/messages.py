"""Defines messages, tool definitions and tool calls: a conversation exactly as a model receives it.

The same types travel from the engine to the provider and into Postgres, so what is stored is what was sent.
`provider_state` carries what a provider needs back verbatim on the next call (thought signatures): opaque JSON
that only the provider that wrote it reads.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tarsy.record.approvals.git_change import ChangeForGit
from tarsy.record.integrity import EvidenceMarks
from tarsy.record.judging.replay import ReplayedFrom


class Role(StrEnum):
    """Author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Access(StrEnum):
    """Effect of a tool on the system that it works on, as far as it is known."""

    READ_ONLY = "read-only"
    CHANGES = "changes"
    DESTRUCTIVE = "destructive"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Refusal to call a tool that its server offers: a CamelCase `reason`, and a sentence for the model.

    `change` is what it would have changed, where that belongs into Git.
    """

    reason: str
    sentence: str
    change: ChangeForGit | None = None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool as it is offered to a model: `name` is `server.tool`, `parameters_schema` a JSON schema."""

    name: str
    description: str
    parameters_schema: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an assistant message: `arguments` is the text the model wrote (JSON, or nearly)."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    `tool_calls` only on assistant messages; `tool_call_id` and `tool_name` only on tool messages.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    provider_state: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """Answer of a tool as the model receives it; an error is an answer too. `replayed` only in a replay.

    `marks` are the integrity classes of the content; None: workloads can write all of it. `to_simulate`: the call is
    not recorded, and a model may make an answer up. `ours`: TARSy wrote all of it, and no server. `skills` are the
    names of skills whose texts it contains, which are instructions.
    """

    content: str
    is_error: bool = False
    replayed: ReplayedFrom | None = None
    marks: EvidenceMarks | None = None
    to_simulate: bool = False
    ours: bool = False
    skills: tuple[str, ...] = ()
