"""Makes the attributes of spans that are asked for: what models and tools said, and the names of OpenInference.

Texts are those of the record, with secrets masked, and clipped. A model call has the messages that it adds: what was
said before, and the results of tools, are in the spans of their own calls.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from tarsy.record.boundaries import ModelCallResult, ModelCallStart, ToolCallResult, ToolCallStart
from tarsy.record.messages import Message

MOST_CONTENT = 32_768
"""Characters of one attribute; the text of a message is cut so that the JSON around it stays whole."""

_MARK = "…"


def asked_of_model(call: ModelCallStart) -> dict[str, Any]:
    """Returns the messages that a model call adds, as `gen_ai.input.messages`."""
    messages = call.new_messages or call.request
    return {"gen_ai.input.messages": messages_text(messages)} if messages else {}


def said_by_model(result: ModelCallResult) -> dict[str, Any]:
    """Returns the answer of a model, as `gen_ai.output.messages`."""
    return {} if result.message is None else {"gen_ai.output.messages": messages_text((result.message,))}


def asked_of_tool(call: ToolCallStart) -> dict[str, Any]:
    """Returns the arguments of a tool call."""
    return {"gen_ai.tool.call.arguments": _cut(call.call.arguments, MOST_CONTENT)}


def said_by_tool(result: ToolCallResult) -> dict[str, Any]:
    """Returns the result of a tool call."""
    return {"gen_ai.tool.call.result": _cut(result.result, MOST_CONTENT)}


_KINDS = {"invoke_workflow": "CHAIN", "invoke_agent": "AGENT", "chat": "LLM", "execute_tool": "TOOL"}
_NAMES = {
    "gen_ai.conversation.id": "session.id",
    "gen_ai.agent.name": "agent.name",
    "gen_ai.provider.name": "llm.provider",
    "gen_ai.tool.name": "tool.name",
    "gen_ai.usage.input_tokens": "llm.token_count.prompt",
    "gen_ai.usage.output_tokens": "llm.token_count.completion",
    "gen_ai.usage.cache_read.input_tokens": "llm.token_count.prompt_details.cache_read",
    "gen_ai.usage.reasoning.output_tokens": "llm.token_count.completion_details.reasoning",
    "gen_ai.input.messages": "input.value",
    "gen_ai.tool.call.arguments": "input.value",
    "gen_ai.output.messages": "output.value",
    "gen_ai.tool.call.result": "output.value",
}
_JSON = {"gen_ai.input.messages": "input.mime_type", "gen_ai.output.messages": "output.mime_type"}


def openinference(found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what attributes of the GenAI conventions are called in OpenInference.

    Args:
        found: attributes of one span, those of its begin or of its end.
    """
    named = {_NAMES[name]: value for name, value in found.items() if name in _NAMES}
    named |= {_JSON[name]: "application/json" for name in found if name in _JSON}
    if (kind := _KINDS.get(str(found.get("gen_ai.operation.name")))) is not None:
        named["openinference.span.kind"] = kind
    if kind == "LLM" and "gen_ai.request.model" in found:
        named["llm.model_name"] = found["gen_ai.request.model"]
    counts = [found.get("gen_ai.usage.input_tokens"), found.get("gen_ai.usage.output_tokens")]
    if all(isinstance(count, int) for count in counts):
        named["llm.token_count.total"] = sum(int(count) for count in counts if count is not None)
    return named


def messages_text(messages: Sequence[Message]) -> str:
    """Returns messages in the form of the conventions, each with a share of the room."""
    room = MOST_CONTENT // max(1, sum(1 + len(message.tool_calls) for message in messages))
    return orjson.dumps([_message(message, room) for message in messages]).decode()


def _message(message: Message, room: int) -> dict[str, Any]:
    return {"role": message.role.value, "parts": list(_parts(message, room))}


def _parts(message: Message, room: int) -> Iterable[dict[str, Any]]:
    text = _cut(message.content, room)
    if message.tool_call_id is not None:
        yield {"type": "tool_call_response", "id": message.tool_call_id, "response": text}
    elif text:
        yield {"type": "text", "content": text}
    for call in message.tool_calls:
        yield {"type": "tool_call", "id": call.id, "name": call.name, "arguments": _cut(call.arguments, room)}


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(0, room - 1)] + _MARK
