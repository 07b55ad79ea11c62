"""Timeline events: what people read while an investigation runs, and after it.

One event has one life (`streaming`, then closed), never a pair of events for begin and end (seed 004, "Single-Event
Lifecycle Pattern"). `INTERRUPTED` is ours: what a crashed attempt left open is closed as such, never doubled.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

RETRYING, WAITING = "Retrying", "ProviderLimit"
CUT_BY_LENGTH = "CutByLength"
"""Notices with these reasons (in their metadata) tell how a model was asked, and nothing of what is investigated."""


class EventType(StrEnum):
    """What a timeline event tells (seed 004, section "TimelineEvent"; `error` and `notice` are run-level too)."""

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
    """Where an event is in its life."""

    STREAMING = "streaming"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Event:
    """A timeline event as the engine writes it: created, or replaced by one with the same id."""

    id: UUID
    type: EventType
    status: EventStatus
    content: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    stage: UUID | None = None
    execution: UUID | None = None
    model_call: UUID | None = None
    tool_call: UUID | None = None


@dataclass(frozen=True, slots=True)
class TimelineEvent(Event):
    """A timeline event as readers get it.

    `seq` orders events by creation within the investigation; `revision` is the investigation's revision at the
    event's last change, so "what changed since N" is one comparison.
    """

    seq: int = 0
    revision: int = 0
    created_at: datetime = datetime.min
    updated_at: datetime = datetime.min
    stage_name: str | None = None
    agent_name: str | None = None
