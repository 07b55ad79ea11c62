"""ChatOpenAI as this project wants it: nothing from the environment, no retries, one HTTP client that is ours.

Loaded at first use (`llm.langchain`), because the SDKs take a second to import. The SDKs read a dozen environment
variables, some of them even when an argument is given (`OPENAI_CUSTOM_HEADERS`, `OPENAI_ORG_ID`), so the last word is
a request hook: only headers of a short list leave the process, and the key is set there. The transport is given
explicitly, which makes httpx2 ignore proxy variables but honour `SSL_CERT_FILE`; redirects are not followed, since a
key must not travel to where nobody sent it.

What ChatOpenAI drops is dropped knowingly here too: `reasoning_content` of compatible servers. The Responses API is
never used.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

import httpx2
import openai
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_openai import ChatOpenAI
from langsmith.run_helpers import tracing_context

from tarsy.llm.names import encode
from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.llm.text import encodable
from tarsy.plan.model import ProviderPlan
from tarsy.record.messages import Message, Role, ToolDefinition
from tarsy.record.usage import Usage

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_HEADERS = frozenset(
    ("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent", "authorization")
)
_NOT_A_STREAM = ("text/html", "application/json", "application/xhtml+xml")


class OpenAIChat:
    """One model on one server with one key.

    Args:
        provider: `base_url` is taken as given: the SDK appends `/chat/completions`, so it usually ends in `/v1`.
        key: None for servers that need none; then no Authorization header is sent.
        connect_seconds: for the connection and the TLS handshake.
        read_seconds: the longest silence; a last resort behind the engine's own limits.
    """

    def __init__(self, provider: ProviderPlan, key: str | None, *, connect_seconds: float, read_seconds: float) -> None:
        self._key = key
        self._http = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30.0)
            ),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(read_seconds, connect=connect_seconds),
            event_hooks={"request": [self._only_ours], "response": [_must_be_a_stream]},
        )
        server = openai.AsyncOpenAI(
            api_key=key or "none",
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=provider.base_url or DEFAULT_BASE_URL,
            timeout=httpx2.Timeout(read_seconds, connect=connect_seconds),
            max_retries=0,
            http_client=self._http,
        )
        # An own server knows the older name only; OpenAI refuses it for its reasoning models.
        limit = {} if provider.max_output_tokens is None else {"max_tokens": provider.max_output_tokens}
        self._model = ChatOpenAI(
            model=provider.model,
            api_key=key or "none",
            base_url=provider.base_url or DEFAULT_BASE_URL,
            temperature=provider.temperature,
            max_tokens=None if provider.base_url else provider.max_output_tokens,
            extra_body=limit if limit and provider.base_url else None,
            stream_usage=True,
            max_retries=0,
            use_responses_api=False,
            output_version="v0",
            openai_proxy=None,
            stream_chunk_timeout=None,
            client=server,
            async_client=server.chat.completions,
            root_async_client=server,
        )

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition]
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """Streams LangChain's chunks, none for an empty stream; raises whatever the SDKs raise."""
        options: dict[str, Any] = {"tools": [_tool(tool) for tool in tools]} if tools else {}
        stream = self._model.astream([_message(message) for message in messages], **options)
        async with aclosing(cast("AsyncGenerator[AIMessageChunk, None]", stream)) as chunks:
            try:
                # LangChain decides about tracing once, before the first chunk.
                with tracing_context(enabled=False):
                    first = await anext(chunks)
            except ValueError as error:
                if str(error) == "No generation chunks were returned":
                    return
                raise
            yield first
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        """Closes the HTTP client."""
        await self._http.aclose()

    async def _only_ours(self, request: httpx2.Request) -> None:
        for name in {name.lower() for name in request.headers} - _HEADERS:
            del request.headers[name]
        request.headers["content-type"] = "application/json"
        if self._key is None:
            request.headers.pop("authorization", None)
        else:
            request.headers["authorization"] = f"Bearer {self._key}"


async def _must_be_a_stream(response: httpx2.Response) -> None:
    """A web page or a whole completion instead of a stream: said so, where the SDK would see an empty answer."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.is_success and kind in _NOT_A_STREAM:
        raise ModelError(
            ModelErrorCode.INVALID_REQUEST,
            f"the server answered {response.status_code} with {kind} instead of text/event-stream (check that "
            "spec.baseURL is the API's address, `/v1` included, and that the server can stream)",
            retryable=False,
        )


def text_of(chunk: AIMessageChunk) -> tuple[str, str]:
    """Text and reasoning of a chunk; `content_blocks` is costly and only needed where content is not plain text."""
    if isinstance(chunk.content, str):
        return chunk.content, ""
    blocks: list[Any] = list(chunk.content_blocks)
    text = "".join(block.get("text", "") for block in blocks if block["type"] == "text")
    return text, "".join(block.get("reasoning", "") for block in blocks if block["type"] == "reasoning")


def usage_of(chunk: AIMessageChunk) -> Usage | None:
    """The usage a chunk reports; the details carry the service tier in front of their names."""
    if (reported := chunk.usage_metadata) is None:
        return None
    return Usage(
        input_tokens=reported["input_tokens"],
        output_tokens=reported["output_tokens"],
        thinking_tokens=_detail(reported.get("output_token_details"), "reasoning"),
        cached_tokens=_detail(reported.get("input_token_details"), "cache_read"),
    )


def _detail(details: Any, name: str) -> int:
    return sum(count for key, count in (details or {}).items() if key == name or key.endswith(f"_{name}"))


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, **tool.parameters_schema}
    return {
        "type": "function",
        "function": {"name": encode(tool.name), "description": tool.description, "parameters": schema},
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
                invalid_tool_call(name=encode(call.name), args=_arguments(call.arguments), id=call.id)
                for call in message.tool_calls
            ]
            return AIMessage(content, invalid_tool_calls=calls)


def _arguments(text: str) -> str:
    """The arguments as the model wrote them, if they are a JSON object.

    Servers with chat templates parse them and refuse the conversation otherwise, so anything else is wrapped: the
    model still sees what it wrote.
    """
    text = encodable(text)
    try:
        parsed = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        parsed = None
    if parsed == {}:
        return "{}"
    return text if isinstance(parsed, dict) else json.dumps({"malformed_arguments": text}, ensure_ascii=False)
