"""The four boundaries of a run: what is written before and after a call of a model or of a tool (DESIGN section 5).

Decision: each is all that one fenced transaction writes, the state of the agent's loop included, so that an attempt
which goes on from any of them needs nothing else. What an attempt finds of them is in `tarsy.record.run`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from tarsy.record.messages import Access, Message, ToolCall, ToolDefinition
from tarsy.record.run import Failure, LoopState, ModelCallKind
from tarsy.record.usage import Usage


@dataclass(frozen=True, slots=True)
class ModelCallStart:
    """Boundary (a): written before the request leaves.

    `new_messages` are appended to the conversation first, `first_seq` being the sequence of the first of them;
    the request consists of all messages below `message_count`. From this call on, what `superseded` holds is sent
    instead of the message at that sequence. The estimates count for the budget until the usage is known. A call with a
    `request` of its own is sent that instead (a summary); `loop` None leaves the execution's state as it is.
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


@dataclass(frozen=True, slots=True)
class ModelCallResult:
    """Boundary (b): the answer, its usage, and the loop's state after it.

    With `failure`, `message` is what the model is told about its lost answer (a user message, so that no attempt asks
    again without it); None when it is not asked again. A summary has none: its tool's answer is told with it. A call
    that was cut because the run is to conclude is `interrupted`, and has a failure that says so.
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
    """Boundary (c): written before the tool server hears of it.

    `made` is False for a call that is answered without its server: a repetition, whose answer is that of the call
    `repeated_of`, one that the budget has no room for, or one that is `refused` (the reason of a `Refusal`).
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


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """Boundary (d): the result as stored, the tool message exactly as the model will see it, the loop's state."""

    id: UUID
    execution: UUID
    message_seq: int
    message: Message
    result: str
    is_error: bool
    duration_ms: int
    loop: LoopState
    interrupted: bool = False
