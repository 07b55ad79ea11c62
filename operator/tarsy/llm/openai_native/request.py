"""Builds the body of a chat completion request.

A model's reasoning goes back to the server it came from, under the name it came under, with the answers that called
tools since the last question: DeepSeek and Kimi refuse or forget their work without it, and everybody else advises
against more. A server or model that did not write it never sees it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from tarsy.llm.protocol import GenerateRequest
from tarsy.llm.stop_reasons import stops
from tarsy.llm.text import encodable
from tarsy.llm.tool_names import encode_tool_name
from tarsy.llm.toolcalls import sendable_arguments
from tarsy.plan.model import ProviderPlan
from tarsy.plan.provider_types.openai import OPENAI_URL
from tarsy.record.messages import Message, Role, ToolDefinition

REASONING_FIELDS = ("reasoning_content", "reasoning")
_STATE = "openai-native"
_NEWER_LIMIT = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9])")


def body(provider: ProviderPlan, request: GenerateRequest) -> bytes:
    """The request as JSON."""
    made: dict[str, Any] = {
        "model": provider.model,
        "messages": messages(provider, request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        made["tools"] = [_tool(tool) for tool in request.tools]
        if not request.may_call:
            made["tool_choice"] = "none"
    if request.stop and stops(provider):
        made["stop"] = list(request.stop)
    if provider.temperature is not None:
        made["temperature"] = provider.temperature
    if provider.thinking is not None and provider.thinking.effort is not None:
        made["reasoning_effort"] = provider.thinking.effort
    if provider.max_output_tokens is not None:
        # OpenAI refuses the older name for its reasoning models, other servers may not know the newer one.
        newer = (provider.base_url or OPENAI_URL) == OPENAI_URL or _NEWER_LIMIT.search(provider.model)
        made["max_completion_tokens" if newer else "max_tokens"] = provider.max_output_tokens
    try:
        return orjson.dumps(made)
    except TypeError:  # a tool's schema may hold what orjson refuses: integers beyond 64 bits, half characters
        return json.dumps(made, ensure_ascii=False).encode(errors="replace")


def messages(provider: ProviderPlan, conversation: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages of a conversation."""
    asked = max((i for i, message in enumerate(conversation) if message.role is Role.USER), default=0)
    return [_message(message, provider if i > asked else None) for i, message in enumerate(conversation)]


def state(provider: ProviderPlan, field: str, reasoning: str) -> dict[str, Any]:
    """Returns the provider state that makes `messages` send the reasoning back.

    Args:
        provider: the model that wrote it.
        field: the field that it came in.
        reasoning: its text.
    """
    return {_STATE: {**_origin(provider), "field": field, "text": reasoning}}


def _message(message: Message, provider: ProviderPlan | None) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role.value, "content": encodable(message.content)}
    if message.role is Role.TOOL:
        made["tool_call_id"] = message.tool_call_id or ""
    if message.tool_calls:
        made["content"] = made["content"] or None
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": encode_tool_name(call.name), "arguments": sendable_arguments(call.arguments)},
            }
            for call in message.tool_calls
        ]
        if provider is not None:
            made |= _reasoning(message.provider_state or {}, provider)
    return made


def _reasoning(kept: Mapping[str, Any], provider: ProviderPlan) -> dict[str, str]:
    match kept.get(_STATE):
        case {"model": model, "server": server, "field": str(field), "text": str(text)}:
            own = {"model": model, "server": server} == _origin(provider) and field in REASONING_FIELDS
            return {field: encodable(text)} if own else {}
        case _:
            return {}


def _origin(provider: ProviderPlan) -> dict[str, str]:
    return {"model": provider.model, "server": provider.base_url or OPENAI_URL}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, **tool.parameters_schema}
    description = encodable(tool.description)
    return {
        "type": "function",
        "function": {"name": encode_tool_name(tool.name), "description": description, "parameters": schema},
    }
