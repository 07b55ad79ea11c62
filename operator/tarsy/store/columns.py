"""Converts types of the record to column values; `tarsy.store.rows` converts rows back."""

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson

from tarsy.record.integrity import EvidenceMarks
from tarsy.record.judging.replay import ReplayedFrom
from tarsy.record.messages import Message, ToolDefinition
from tarsy.record.run import Failure
from tarsy.record.text import clean
from tarsy.record.timeline import Event


def event_columns(written: Sequence[Event]) -> dict[str, list[Any]]:
    """Returns timeline events as parameters of a step: arrays of one length, one a column."""
    last = list({event.id: event for event in written}.values())  # one statement may not touch a row twice
    return {
        "event_ids": [event.id for event in last],
        "event_types": [event.type.value for event in last],
        "event_statuses": [event.status.value for event in last],
        "event_contents": [clean(event.content) for event in last],
        "event_metadata": [event.metadata for event in last],
        "event_stages": [event.stage for event in last],
        "event_executions": [event.execution for event in last],
        "event_model_calls": [event.model_call for event in last],
        "event_tool_calls": [event.tool_call for event in last],
    }


def failure_columns(found: Failure | None) -> dict[str, str | None]:
    """Returns a failure as the parameters `failure_reason` and `failure_message`."""
    return {
        "failure_reason": None if found is None else found.reason,
        "failure_message": None if found is None else clean(found.message),
    }


def tool_calls(message: Message) -> list[dict[str, str]] | None:
    """Returns the tool calls of a message as JSON."""
    if not message.tool_calls:
        return None
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]


def request(messages: Sequence[Message]) -> list[dict[str, str]] | None:
    """Returns the messages of a request of its own as JSON; they contain only roles and texts."""
    return [{"role": message.role.value, "content": clean(message.content)} for message in messages] or None


def tool_set(tools: Sequence[ToolDefinition]) -> tuple[list[dict[str, Any]], str]:
    """Returns tool definitions as JSON, and its SHA-256 as hex."""
    definitions = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters_schema} for tool in tools
    ]
    return definitions, hashlib.sha256(orjson.dumps(definitions, option=orjson.OPT_SORT_KEYS)).hexdigest()


def integrity_column(marks: EvidenceMarks | None) -> dict[str, Any] | None:
    """Returns the integrity classes of a result as JSON."""
    return None if marks is None else marks.as_json()


def replay_columns(source: ReplayedFrom | None) -> dict[str, str | int | None]:
    """Returns the columns that tell how a replay found the answer to a call."""
    return {
        "rung": None if source is None else source.rung.value,
        "cassette_line": None if source is None else source.line,
    }
