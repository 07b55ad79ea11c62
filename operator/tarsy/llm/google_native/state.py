"""Stores Gemini's own parts of a response, in their order, and sends them back.

A thought signature belongs to one part at one place, so parts are kept as they came, not the text and calls that were
made of them; neighbours without a signature are joined, which changes nothing. It is JSON (bytes as URL-safe base64),
stored with the message, so any process can make the next call. Signatures mean something to the model that made them
only; another model gets the plain message.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.genai import types

from tarsy.record.messages import Message
from tarsy.record.text import clean

_KEY = "google"


class Parts:
    """Collects the parts of one answer."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []

    def add(self, part: types.Part) -> int:
        """Adds the next part, and returns its approximate size in characters."""
        made = _cleaned(part.model_dump(mode="json", exclude_none=True))
        last = self._parts[-1] if self._parts else None
        if last is not None and _joinable(last) and _joinable(made) and last.get("thought") == made.get("thought"):
            last["text"] += made["text"]
        elif made:
            self._parts.append(made)
        return len(made["text"]) if _joinable(made) else len(str(made))

    def state(self, model: str, calls: Sequence[str]) -> dict[str, Any] | None:
        """The provider state of the answer; `calls` are the ids its function calls got, in their order."""
        return {_KEY: {"model": model, "parts": self._parts, "calls": list(calls)}} if self._parts else None


@dataclass(frozen=True, slots=True)
class GeminiTurn:
    """An assistant message as it is sent: its parts, and for each tool call the id and the name Gemini knows it by."""

    parts: list[types.Part]
    calls: Mapping[str, tuple[str | None, str]]


def replay_parts(message: Message, model: str) -> GeminiTurn | None:
    """An assistant message as the model itself wrote it; None when its state is another model's, or none.

    The message counts: text that was shortened since, and calls that were not taken, are not sent again.
    """
    state = (message.provider_state or {}).get(_KEY)
    if not isinstance(state, dict) or state.get("model") != model:
        return None
    taken = {call.id for call in message.tool_calls}
    parts: list[types.Part] = []
    calls: dict[str, tuple[str | None, str]] = {}
    try:
        identifiers = iter(state["calls"])
        for part in types.Content.model_validate_json(json.dumps({"parts": state["parts"]})).parts or ():
            if part.function_call is None:
                parts.append(part)
            elif (identifier := next(identifiers)) in taken:
                calls[identifier] = (part.function_call.id, part.function_call.name or "")
                parts.append(part)
    except (ValueError, KeyError, TypeError, StopIteration):
        return None
    if calls.keys() != taken:
        return None
    if "".join(part.text or "" for part in parts if not part.thought) != message.content:
        parts = [part for part in parts if part.text is None]
        parts[:0] = [types.Part(text=message.content)] if message.content else []
    return GeminiTurn(parts, calls)


def _joinable(part: dict[str, Any]) -> bool:
    return "text" in part and part.keys() <= {"text", "thought"}


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(key): _cleaned(item) for key, item in value.items()}
        case list():
            return [_cleaned(item) for item in value]
        case _:
            return value
