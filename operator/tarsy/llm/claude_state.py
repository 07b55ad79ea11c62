"""Stores Claude's own blocks of a response, in their order, and sends them back.

Thinking is signed and must come back as it was, in front of the tool calls it led to; text and calls only keep their
places here and are taken from the message, which may have been shortened or masked since. Signatures mean something
to the model that made them only; another model gets the plain message.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tarsy.llm.text import encodable
from tarsy.record.messages import Message
from tarsy.record.text import clean

_KEY = "anthropic"


class Blocks:
    """Collects the blocks of one answer from the pieces of its stream."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}

    def add(self, piece: Mapping[str, Any]) -> None:
        """Adds the next piece."""
        index = piece.get("index")
        kind = piece.get("type")
        if not isinstance(index, int) or kind not in ("thinking", "redacted_thinking", "text", "tool_use"):
            return
        block = self._blocks.setdefault(index, {"type": kind})
        for field in {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",), "text": ("text",)}.get(
            kind, ()
        ):
            block[field] = block.get(field, "") + (piece.get(field) or "")

    def state(self, model: str, calls: Sequence[str]) -> dict[str, Any] | None:
        """The provider state of the answer; None without thinking. `calls` are the ids of its calls, in their order."""
        identifiers = iter(calls)
        blocks: list[dict[str, Any]] = []
        for _, block in sorted(self._blocks.items()):
            if block["type"] == "tool_use":
                blocks.append({"type": "tool_use", "id": next(identifiers, "")})
            else:
                blocks.append({name: encodable(value) for name, value in block.items()})
        if not any("thinking" in block["type"] for block in blocks):
            return None
        return {_KEY: {"model": model, "blocks": blocks}}


def replay_blocks(message: Message, model: str) -> list[dict[str, Any]] | None:
    """An assistant message as blocks, its calls by their ids; None when its state is another model's, or none."""
    match (message.provider_state or {}).get(_KEY):
        case {"model": wrote, "blocks": [*kept]} if wrote == model and all(isinstance(block, dict) for block in kept):
            pass
        case _:
            return None
    taken = {call.id for call in message.tool_calls}
    if not taken <= {block.get("id") for block in kept}:
        return None
    blocks = [block for block in kept if block.get("type") != "tool_use" or block.get("id") in taken]
    said = "".join(str(block.get("text", "")) for block in blocks)
    if clean(said) != message.content:
        blocks = [block for block in blocks if block.get("type") != "text"]
        if message.content.strip():
            calls = (at for at, block in enumerate(blocks) if block.get("type") == "tool_use")
            blocks.insert(next(calls, len(blocks)), {"type": "text", "text": encodable(message.content)})
    shown = [block for block in blocks if block.get("type") == "tool_use" or str(block.get("text", "")).strip()]
    return blocks if shown else None
