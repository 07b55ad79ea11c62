"""Defines the four boundaries of a run: the data written before and after each model call and each tool call.

Decision: a boundary is all that one fenced transaction writes, including the state of the agent's loop, so that an
attempt can resume from any of them. `tarsy.record.run` has the types that a resumed attempt reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from tarsy.record.integrity import EvidenceMarks
from tarsy.record.judging.replay import ReplayedFrom
from tarsy.record.messages import Access, Message, ToolCall, ToolDefinition
from tarsy.record.run import Failure, LoopState, ModelCallKind
from tarsy.record.usage import Usage


@dataclass(frozen=True, slots=True)
class ModelCallStart:
    """Boundary (a): written before the request leaves.

    `new_messages` are appended to the conversation first, `first_seq` being the sequence of the first of them;
    the request consists of all messages below `message_count`. From this call on, what `superseded` holds is sent
    instead of the message at that sequence. The estimates count for the budget until the usage is known. A call with a
    `request` of its own is sent that instead (a summary); `loop` None leaves the execution's state as it is. The worst
    case is what quotas reserve: input and the longest output. Its cost is None where no rates are known.
    """

    id: UUID
    execution: UUID
    number: int
    kind: ModelCallKind
    provider: str
    model: str
    strategy: str
    first_seq: int
    new_messages: tuple[Message, ...]
    message_count: int
    tools: tuple[ToolDefinition, ...]
    loop: LoopState | None
    superseded: Mapping[int, str] = field(default_factory=dict)
    request: tuple[Message, ...] = ()
    estimated_tokens: int = 0
    estimated_cost_usd: Decimal = Decimal(0)
    worst_tokens: int = 0
    worst_cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class ModelCallResult:
    """Boundary (b): the answer, its usage, and the loop's state after it.

    With `failure`, `message` is a user message that reports the lost answer to the model, so that every attempt sends
    it with the next call; None when the model is not called again. A summary has no message: its text becomes the
    answer of its tool call. A call that was cut because the run is to conclude is `interrupted` and has a failure with
    the reason.
    """

    id: UUID
    execution: UUID
    loop: LoopState
    message_seq: int | None = None
    message: Message | None = None
    thinking: str = ""
    usage: Usage | None = None
    failure: Failure | None = None
    duration_ms: int = 0
    response_metadata: dict[str, Any] = field(default_factory=dict)
    cost_usd: Decimal | None = None
    estimated_tokens: int = 0
    estimated_cost_usd: Decimal = Decimal(0)
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """Boundary (c): written before the request is sent to the tool server.

    `made` is False for a call that is answered without its server: a repetition, which gets the answer of the call
    `repeated_of`; a call beyond the budget; or one that is `refused` (the reason of a `Refusal`). `approval` is the one
    that permits the call, and is consumed with this step; a call whose approval does not hold any more is not sent.
    """

    id: UUID
    execution: UUID
    message_seq: int
    index: int
    attempt: int
    call: ToolCall
    server: str
    tool: str
    idempotency_key: str
    made: bool = True
    repeatable: bool = False
    repeated_of: UUID | None = None
    access: Access = Access.UNKNOWN
    refused: str | None = None
    approval: UUID | None = None


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """Boundary (d): the result as stored, the tool message exactly as the model will see it, the loop's state.

    `marks` are the integrity classes of the result; None: workloads can write all of it.
    """

    id: UUID
    execution: UUID
    message_seq: int
    message: Message
    result: str
    is_error: bool
    duration_ms: int
    loop: LoopState
    interrupted: bool = False
    replayed: ReplayedFrom | None = None
    marks: EvidenceMarks | None = None


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools that an agent is offered, and the instructions that their servers give for their use, by server."""

    execution: UUID
    tools: Sequence[ToolDefinition] = ()
    instructions: Mapping[str, str] = field(default_factory=dict)
