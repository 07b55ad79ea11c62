"""The shape of Anthropic's messages, as recorded from their streams.

Named events; an answer is a row of blocks, each with a start, deltas and a stop; usage is cumulative, and whole in the
last `message_delta`; errors are objects wrapped in an object of type `error`, in a stream an event of that name.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from tarsy.llm.tool_names import encode_tool_name
from tarsy.record.messages import ToolCall
from tarsy.record.usage import Usage
from wire import server
from wire.server import Answerer, Said

BEGIN = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "stand-in",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}


def event(data: dict[str, Any]) -> bytes:
    """One event, named as its type."""
    return server.event(data, data["type"])


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any], end: bool = True) -> list[bytes]:
    """One block: its start, its deltas, its stop."""
    events = [{"type": "content_block_start", "index": index, "content_block": start}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    if end:
        events.append({"type": "content_block_stop", "index": index})
    return [event(made) for made in events]


def text(index: int, *words: str, end: bool = True) -> list[bytes]:
    """A block of text, in these pieces."""
    return block(
        index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": word} for word in words), end=end
    )


def thinking(index: int, *words: str, signature: str = "") -> list[bytes]:
    """A block of thinking, in these pieces and with its signature."""
    deltas = [{"type": "thinking_delta", "thinking": word} for word in words]
    signed = [{"type": "signature_delta", "signature": signature}] if signature else []
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas, *signed)


def redacted(index: int, data: str) -> list[bytes]:
    """A block of thinking that only Claude can read."""
    return block(index, {"type": "redacted_thinking", "data": data})


def call(index: int, made: ToolCall) -> list[bytes]:
    """A tool call, its arguments in two pieces after an empty one."""
    middle = len(made.arguments) // 2
    parts = ("", made.arguments[:middle], made.arguments[middle:])
    start = {"type": "tool_use", "id": made.id, "name": encode_tool_name(made.name), "input": {}}
    return block(index, start, *({"type": "input_json_delta", "partial_json": part} for part in parts))


def end(reason: str = "end_turn", usage: Usage | None = None) -> list[bytes]:
    """How an answer ends; a gateway may leave usage out."""
    counts = usage and {
        "input_tokens": usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.thinking_tokens},
    }
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        event({"type": "message_delta", "delta": delta, **({"usage": counts} if counts else {})}),
        event({"type": "message_stop"}),
    ]


def stream(*parts: bytes | asyncio.Event | list[bytes], cut: bool = False, hang: bool = False) -> Answerer:
    """Answers 200 with a beginning and these parts; then the end, a cut, or silence. It pings in between."""
    packets: list[bytes | asyncio.Event] = [event(BEGIN), event({"type": "ping"})]
    for part in parts:
        packets += part if isinstance(part, list) else [part]
    return server.stream(*packets, cut=cut, hang=hang)


def said(answer: Said) -> Answerer:
    """A whole answer."""
    parts: list[list[bytes]] = []
    if answer.thinking:
        parts.append(thinking(0, *answer.thinking, signature="c2lnbmVk"))
    if answer.text:
        parts.append(text(len(parts), *answer.text))
    for made in answer.calls:
        parts.append(call(len(parts), made))
    return stream(*parts, end("tool_use" if answer.calls else "end_turn", answer.usage))


def half(*parts: bytes | asyncio.Event, **how: Any) -> Answerer:
    """An answer that begins with the text `half`."""
    return stream(text(0, "half", end=False), *parts, **how)


def error(kind: str, words: str) -> dict[str, Any]:
    """An error object."""
    return {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}


def fail(status: int, words: str, headers: Mapping[str, str]) -> Answerer:
    """Answers with an error."""
    return server.fail(status, error("stand_in_error", words), dict(headers))


def thoughts(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of thinking in a request, in their order."""
    turns = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
    return [block for turn in turns for block in turn if "thinking" in block["type"]]
