"""Wraps ChatOpenAI: nothing from the environment, no retries, our HTTP client.

ChatOpenAI drops `reasoning_content` of compatible servers; the backend openai-native keeps it. The Responses API is
never used.
"""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx2
import openai
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI

from tarsy.llm import chat
from tarsy.llm.chat import ChatResponse
from tarsy.llm.langchain import ChatModelSettings
from tarsy.llm.protocol import GenerateRequest
from tarsy.llm.stop_reasons import stops
from tarsy.llm.text import encodable
from tarsy.llm.tool_names import encode_tool_name
from tarsy.llm.toolcalls import sendable_arguments
from tarsy.record.messages import Message, Role, ToolDefinition


class OpenAIChat(chat.HttpChat):
    """One model on one server with one key.

    `base_url` is taken as given: the SDK appends `/chat/completions`, so it usually ends in `/v1`. Without a key no
    Authorization header is sent.

    Args:
        settings: the provider, its server and the limits.
        make: LangChain's class, with the arguments of ChatOpenAI.
        older_limit: whether the vendor's own server knows `max_tokens`, not `max_completion_tokens`.
    """

    def __init__(
        self,
        settings: ChatModelSettings,
        make: Callable[..., BaseChatOpenAI] = ChatOpenAI,
        *,
        older_limit: bool = False,
    ) -> None:
        provider, key, server = settings.provider, settings.key, settings.server

        def authorize(headers: httpx2.Headers) -> None:
            if key is not None:
                headers["authorization"] = f"Bearer {key}"

        super().__init__(settings, authorize)
        client = openai.AsyncOpenAI(
            api_key=key or "none",
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=server.url,
            timeout=httpx2.Timeout(settings.read_seconds, connect=settings.connect_seconds),
            max_retries=0,
            http_client=self._http,
        )
        shared: dict[str, Any] = {
            "model": provider.model,
            "api_key": key or "none",
            "base_url": server.url,
            "temperature": provider.temperature,
            "reasoning_effort": provider.thinking.effort if provider.thinking else None,
            "stream_usage": True,
            "max_retries": 0,
            "use_responses_api": False,
            "output_version": "v0",
            "openai_proxy": None,
            "stream_chunk_timeout": None,
            "client": client,
            "async_client": client.chat.completions,
            "root_async_client": client,
        }
        # An own server knows the older name only; OpenAI refuses it for its reasoning models.
        older = older_limit or provider.base_url is not None
        limit = {} if provider.max_output_tokens is None else {"max_tokens": provider.max_output_tokens}
        shared["extra_body"] = limit if limit and older else None
        shared["max_tokens"] = None if older else provider.max_output_tokens
        self._model = make(**shared)

    def answer(self, request: GenerateRequest) -> ChatResponse:
        """Returns the reader of the response to a request."""
        return ChatResponse(request)

    def stream(self, request: GenerateRequest) -> AsyncGenerator[AIMessageChunk, None]:
        """Streams LangChain's chunks, none for an empty stream; raises whatever the SDKs raise."""
        options: dict[str, Any] = {"tools": [_tool(tool) for tool in request.tools]} if request.tools else {}
        if request.tools and not request.may_call:
            options["tool_choice"] = "none"
        if request.stop and stops(self._provider):
            options["stop"] = list(request.stop)
        messages = request.messages
        made = request.forms.each("langchain-openai", messages, lambda place: _message(messages[place]))
        return chat.stream(self._model, made, **options)


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, **tool.parameters_schema}
    return {
        "type": "function",
        "function": {"name": encode_tool_name(tool.name), "description": tool.description, "parameters": schema},
    }


def _message(message: Message) -> BaseMessage:
    content = encodable(message.content)
    match message.role:
        case Role.SYSTEM:
            return SystemMessage(content)
        case Role.USER:
            return HumanMessage(content)
        case Role.TOOL:
            return ToolMessage(content, tool_call_id=message.tool_call_id or "")
        case Role.ASSISTANT:
            # "Invalid" is what LangChain calls arguments that are text; those it sends as they are and in order.
            calls = [
                invalid_tool_call(name=encode_tool_name(call.name), args=sendable_arguments(call.arguments), id=call.id)
                for call in message.tool_calls
            ]
            return AIMessage(content, invalid_tool_calls=calls)
