"""Builds the body of a chat completion request.

Each message is encoded once a conversation: a body is the blocks of its earlier messages as they were sent before, and
what is new. Blocks are large, because each is written by itself, and never copied again.

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
BLOCK_BYTES = 256 << 10
_NEWER_LIMIT = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9])")


class _Encoded:
    """The messages of a conversation as JSON: in large blocks, and after the last block one by one."""

    def __init__(self) -> None:
        self._blocks: list[tuple[int, bytes]] = []
        self._rest: list[bytes] = []
        self._size = 0

    def keep(self, count: int) -> int:
        """Keeps at most the first `count` messages, and returns how many it has: a block is kept as a whole."""
        while self._blocks and self._blocks[-1][0] > count:
            self._blocks.pop()
            self._rest = []
        del self._rest[max(0, count - self._before) :]
        self._size = sum(map(len, self._rest))
        return self._before + len(self._rest)

    def add(self, message: bytes) -> None:
        """Adds the next message."""
        self._rest.append(b"," + message if self._blocks or self._rest else message)
        self._size += len(message)
        if self._size >= BLOCK_BYTES:
            self._blocks.append((self._before + len(self._rest), b"".join(self._rest)))
            self._rest, self._size = [], 0

    @property
    def pieces(self) -> list[bytes]:
        """The messages, with commas between them."""
        return [*(block for _, block in self._blocks), b"".join(self._rest)]

    @property
    def _before(self) -> int:
        return self._blocks[-1][0] if self._blocks else 0


def body(provider: ProviderPlan, request: GenerateRequest) -> list[bytes]:
    """The request as JSON, in pieces."""
    maker = (_STATE, *_origin(provider).values())
    reasons = _reasons(request.messages)
    sent, held = request.forms.of(maker, request.messages, _Encoded, reasons)
    for place in range(sent.keep(held), len(request.messages)):
        sent.add(_json(_message(request.messages[place], provider if reasons[place] else None)))
    tools = b""
    if request.tools:
        tools = request.forms.part("tools", request.tools, lambda: _json([_tool(tool) for tool in request.tools]))
        tools = b',"tools":' + tools
    settings = _json(_settings(provider, request))[1:]
    end = b'],"stream":true,"stream_options":{"include_usage":true}' + tools + (b"," if len(settings) > 1 else b"")
    return [b'{"model":' + _json(provider.model) + b',"messages":[', *sent.pieces, end + settings]


def _settings(provider: ProviderPlan, request: GenerateRequest) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if request.tools and not request.may_call:
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
    return made


def _reasons(conversation: Sequence[Message]) -> list[bool]:
    """Decides for each message whether its reasoning is sent back."""
    asked = next((i for i in range(len(conversation) - 1, -1, -1) if conversation[i].role is Role.USER), 0)
    return [i > asked and message.provider_state is not None for i, message in enumerate(conversation)]


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # a tool's schema may hold what orjson refuses: integers beyond 64 bits, half characters
        return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def state(provider: ProviderPlan, field: str, reasoning: str) -> dict[str, Any]:
    """Returns the provider state that makes `body` send the reasoning back.

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
