"""The shape of OpenAI's chat completions, as recorded from its stream and from servers that are compatible with it."""

import asyncio
from typing import Any

from tarsy.llm.tool_names import encode_tool_name
from wire import server
from wire.server import Answerer, Said, event


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One chunk of a chat completion."""
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def usage(**fields: Any) -> dict[str, Any]:
    """The chunk that reports usage: no choices."""
    return {**delta(), "choices": [], "usage": fields}


def piece(index: int | None, id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, Any]:
    """Some of a tool call, for `delta(tool_calls=[...])`."""
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def stream(
    *parts: dict[str, Any] | bytes | asyncio.Event, done: bool = True, cut: bool = False, hang: bool = False
) -> Answerer:
    """Answers 200 with these events (bytes as they are); then `[DONE]`, or a cut connection, or silence."""
    packets = [event(part) if isinstance(part, dict) else part for part in parts]
    if done and not cut and not hang:
        packets.append(event("[DONE]"))
    return server.stream(*packets, cut=cut, hang=hang)


def text(*words: str) -> Answerer:
    """A proper answer in these pieces."""
    return stream(delta(role="assistant", content=""), *(delta(content=word) for word in words), delta("stop"))


def fail(
    status: int, body: Any = None, headers: dict[str, str] | None = None, content_type: str = "application/json"
) -> Answerer:
    """Answers with an error, in OpenAI's shape unless the body is given as text."""
    content = body if isinstance(body, str) else {"error": body or {"message": "no", "type": "t"}}
    return server.fail(status, content, headers, content_type)


def said(answer: Said) -> Answerer:
    """An answer as a server streams it that shows its model's reasoning; arguments come in two pieces."""
    parts = [delta(role="assistant", content="")]
    parts += [delta(reasoning_content=thought) for thought in answer.thinking]
    parts += [delta(content=word) for word in answer.text]
    for index, call in enumerate(answer.calls):
        middle = len(call.arguments) // 2
        parts.append(delta(tool_calls=[piece(index, call.id, encode_tool_name(call.name), call.arguments[:middle])]))
        parts.append(delta(tool_calls=[piece(index, arguments=call.arguments[middle:])]))
    parts.append(delta("tool_calls" if answer.calls else "stop"))
    if answer.usage is not None:
        told = answer.usage
        parts.append(
            usage(
                prompt_tokens=told.input_tokens,
                completion_tokens=told.output_tokens,
                total_tokens=told.total_tokens,
                prompt_tokens_details={"cached_tokens": told.cached_tokens},
                completion_tokens_details={"reasoning_tokens": told.thinking_tokens},
            )
        )
    return stream(*parts)
