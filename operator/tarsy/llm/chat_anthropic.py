"""Wraps ChatAnthropic: nothing from the environment, no retries, our HTTP client.

What Claude wants of a conversation and LangChain does not see to is seen to here: one system text in front, a user's
turn first, no empty turns, tools declared as long as the conversation shows calls. Thinking goes back with its
signatures (`claude_state`), and a turn of tool calls that has none, because another model began it, is finished
without thinking where Claude would refuse it. Chunks are read as Claude's own blocks, not as LangChain's translation
of them, since those are what must go back.
"""

import json
from collections.abc import AsyncGenerator
from typing import Any

import anthropic
import httpx2
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from tarsy.llm import chat
from tarsy.llm.cache_marks import marked_messages, marked_tools
from tarsy.llm.chat import ChatResponse
from tarsy.llm.claude_state import Blocks, replay_blocks
from tarsy.llm.langchain import ChatModelSettings
from tarsy.llm.protocol import GenerateRequest
from tarsy.llm.stop_reasons import stops
from tarsy.llm.text import encodable
from tarsy.llm.tool_names import encode_tool_name
from tarsy.llm.toolcalls import sendable_arguments
from tarsy.plan import claude
from tarsy.plan.model import ProviderPlan
from tarsy.plan.provider_types.anthropic import ANTHROPIC_URL
from tarsy.record.messages import Message, Role, ToolDefinition

_API_VERSION = "2026-10-21"
MOST_TOKENS = 16_384  # of an answer, for models that LangChain does not know; Claude must be told some number
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class AnthropicChat(chat.HttpChat):
    """One Claude on one server with one key.

    A `/v1` at the end of `base_url` is left out, since the SDK appends it. Without a key no Authorization header is
    sent.
    """

    def __init__(self, settings: ChatModelSettings) -> None:
        provider, key = settings.provider, settings.key

        def authorize(headers: httpx2.Headers) -> None:
            headers["anthropic-version"] = _API_VERSION
            headers["x-stainless-raw-response"] = "raw"  # the SDK looks here what LangChain asked it for
            if key is not None:
                headers["authorization"] = f"Bearer {key}"
                if provider.base_url:  # gateways may know the older way only
                    headers["x-api-key"] = key

        super().__init__(settings, authorize)
        base_url = settings.server.url.rstrip("/").removesuffix("/v1")
        self._thinking = _thinking(provider)
        self._model = ChatAnthropic(
            model=provider.model,
            api_key=key or "none",
            base_url=base_url,
            temperature=provider.temperature,
            max_tokens=_most_tokens(provider),
            max_retries=0,
            timeout=settings.read_seconds,
            stop=None,
        )
        # LangChain makes its client from this cached property; ours is there first.
        self._model.__dict__["_async_client"] = anthropic.AsyncAnthropic(
            api_key=key or "none",
            webhook_key="",
            base_url=base_url,
            timeout=httpx2.Timeout(settings.read_seconds, connect=settings.connect_seconds),
            max_retries=0,
            open_telemetry=False,
            http_client=self._http,
        )

    def answer(self, request: GenerateRequest) -> ChatResponse:
        """Returns the reader of the response to a request."""
        return _ClaudesAnswer(request, self._provider.model)

    def stream(self, request: GenerateRequest) -> AsyncGenerator[AIMessageChunk, None]:
        """Streams LangChain's chunks, none for an empty stream; raises whatever the SDKs raise."""
        wanted = self._provider.thinking
        options: dict[str, Any] = {"thinking": self._thinking} if self._thinking else {}
        if wanted and wanted.effort and wanted.effort != "none":
            options["reasoning_effort"] = wanted.effort
        if options.get("thinking", {}).get("type") == "enabled" and _begun_by_another(request, self._provider.model):
            options["thinking"] = {"type": "disabled"}
        if request.stop and stops(self._provider):
            options["stop"] = list(request.stop)
        marks = self._provider.cache_marks and bool(request.tools)
        if request.tools:
            tools = [_tool(tool) for tool in request.tools]
            options["tools"] = marked_tools(tools) if marks else tools
            if not request.may_call:
                options["tool_choice"] = {"type": "none"}
        elif called := dict.fromkeys(call.name for message in request.messages for call in message.tool_calls):
            options["tools"] = [_tool(ToolDefinition(name, "Must no longer be called.")) for name in called]
            options["tool_choice"] = {"type": "none"}
        messages = _messages(request, self._provider.model)
        return chat.stream(self._model, marked_messages(messages) if marks else messages, **options)


class _ClaudesAnswer(ChatResponse):
    """Claude's, with what it wants back."""

    def __init__(self, request: GenerateRequest, model: str) -> None:
        super().__init__(request)
        self._model = model
        self._blocks = Blocks()

    def words(self, piece: AIMessageChunk) -> tuple[str, str]:
        if isinstance(piece.content, str):
            return piece.content, ""
        text = thinking = ""
        for block in piece.content:
            if isinstance(block, dict):
                self._blocks.add(block)
                text += block.get("text") or "" if block.get("type") == "text" else ""
                thinking += block.get("thinking") or "" if block.get("type") == "thinking" else ""
        return text, thinking

    def reason(self, piece: AIMessageChunk) -> str:
        told = piece.response_metadata.get("stop_reason") or ""
        return _FINISH.get(told, told)

    def provider_state(self) -> dict[str, Any] | None:
        return self._blocks.state(self._model, [call.id for call in self.calls.calls()])


def _thinking(provider: ProviderPlan) -> dict[str, Any] | None:
    wanted = provider.thinking
    if wanted and (wanted.effort == "none" or wanted.budget == 0):
        return {"type": "disabled"}
    if claude.thinks_adaptively(provider.model) or (wanted and wanted.budget == -1):
        return {"type": "adaptive", "display": "summarized"}  # its default is to think unseen
    if wanted and wanted.budget is not None:
        return {"type": "enabled", "budget_tokens": wanted.budget}
    return None


def _most_tokens(provider: ProviderPlan) -> int:
    if provider.max_output_tokens is not None:
        return provider.max_output_tokens
    known = ChatAnthropic(model=provider.model, api_key="none", base_url=ANTHROPIC_URL, timeout=None, stop=None)
    most = max(known.max_tokens or 0, MOST_TOKENS)
    budget = provider.thinking.budget if provider.thinking else None
    return max(most, budget + MOST_TOKENS) if budget else most


def _begun_by_another(request: GenerateRequest, model: str) -> bool:
    """Whether the turn that is to be finished called tools without thinking that this model could see."""
    for message in reversed(request.messages):
        if message.role is Role.USER:
            return False
        if message.role is Role.ASSISTANT and message.tool_calls:
            return replay_blocks(message, model) is None
    return False


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, **tool.parameters_schema}
    return {"name": encode_tool_name(tool.name), "description": encodable(tool.description), "input_schema": schema}


def _messages(request: GenerateRequest, model: str) -> list[BaseMessage]:
    conversation = request.messages
    system = [encodable(message.content) for message in conversation if message.role is Role.SYSTEM]
    turns = request.forms.each(
        ("langchain-anthropic", model), conversation, lambda at: _message(conversation[at], model)
    )
    made = [turn for turn in turns if turn is not None]
    if not made or isinstance(made[0], AIMessage):
        made.insert(0, HumanMessage("Go on."))
    text = "\n\n".join(part for part in system if part.strip())
    return [SystemMessage(text), *made] if text else made


def _message(message: Message, model: str) -> BaseMessage | None:
    content = encodable(message.content)
    match message.role:
        case Role.SYSTEM:
            return None
        case Role.TOOL:
            return ToolMessage(content, tool_call_id=message.tool_call_id or "")
        case Role.ASSISTANT:
            calls = [
                tool_call(
                    name=encode_tool_name(call.name), args=json.loads(sendable_arguments(call.arguments)), id=call.id
                )
                for call in message.tool_calls
            ]
            if (blocks := replay_blocks(message, model)) is not None:
                return AIMessage(
                    [block | {"name": "", "input": {}} if "id" in block else block for block in blocks],
                    tool_calls=calls,
                )
            content = content if content.strip() else ""
            return AIMessage(content, tool_calls=calls) if content or calls else None
        case _:
            return HumanMessage(content if content.strip() else "(nothing)")
