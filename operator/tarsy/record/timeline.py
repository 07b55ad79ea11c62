"""Defines timeline events, which people read while an investigation runs and after it.

An event has one life cycle (`streaming`, then closed); begin and end are not separate events. An event that a crashed
attempt left open is closed as `INTERRUPTED`.

Writers use only the types of `EventType`. Readers also get types that a newer replica wrote, in a rolling upgrade or
after a rollback: such a type is passed on as text.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

RETRYING, WAITING = "Retrying", "ProviderLimit"
APPROVAL_NOTICE = "Approval"
CUT_BY_LENGTH = "CutByLength"
"""Reasons, in the metadata of notices, that concern the request to a model and not the subject of the investigation."""

VERDICT = "Verdict"
"""Reason of the notice with the verdict of a sub-agent on its hypothesis."""

NOTICE_TOOLS = 20
"""Tools that a notice about changed tools lists of each kind of change."""


class EventType(StrEnum):
    """Type of a timeline event; `error` and `notice` also occur outside of an agent."""

    LLM_THINKING = "llm_thinking"
    LLM_RESPONSE = "llm_response"
    LLM_TOOL_CALL = "llm_tool_call"
    MCP_TOOL_SUMMARY = "mcp_tool_summary"
    CODE_EXECUTION = "code_execution"
    GOOGLE_SEARCH_RESULT = "google_search_result"
    URL_CONTEXT_RESULT = "url_context_result"
    ERROR = "error"
    NOTICE = "notice"
    PROVIDER_FALLBACK = "provider_fallback"
    FINAL_ANALYSIS = "final_analysis"
    EXECUTIVE_SUMMARY = "executive_summary"
    USER_QUESTION = "user_question"


class EventStatus(StrEnum):
    """State of an event in its life cycle."""

    STREAMING = "streaming"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class _EventFields:
    """Fields that written events and read events have in common."""

    id: UUID
    type: EventType | str
    status: EventStatus | str
    content: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    stage: UUID | None = None
    execution: UUID | None = None
    model_call: UUID | None = None
    tool_call: UUID | None = None


@dataclass(frozen=True, slots=True)
class Event(_EventFields):
    """A timeline event as the engine writes it: created, or replaced by one with the same id."""

    type: EventType
    status: EventStatus


@dataclass(frozen=True, slots=True)
class TimelineEvent(_EventFields):
    """A timeline event as readers get it; its type and status may be ones that this version does not know.

    `seq` orders events by creation within the investigation. `revision` is the investigation's revision at the event's
    last change, so a reader finds all later changes with one comparison. `parent_name` is the agent that dispatched the
    agent of the event.
    """

    seq: int = 0
    revision: int = 0
    created_at: datetime = datetime.min
    updated_at: datetime = datetime.min
    stage_name: str | None = None
    agent_name: str | None = None
    parent_name: str | None = None
