"""Wraps ChatGoogleGenerativeAI on the SDK's client and the HTTP session of `google_native`.

Strategies of the langchain family have it where a provider says `backend: langchain`; the backend google-native keeps
what LangChain drops here: the order of text and calls, the ids of calls, native tools. Schemas go untouched, because
tools are given as the SDK's own. Thinking and thought signatures go back (`provider_state`), as LangChain's blocks.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.genai import errors as sdk_errors
from google.genai import types
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_google_genai import ChatGoogleGenerativeAI

from tarsy.llm import chat
from tarsy.llm.call_errors import FailedCall
from tarsy.llm.chat import ChatResponse
from tarsy.llm.google_native.client import Http, sdk
from tarsy.llm.google_native.conversation import choice_of, declaration, thinking_of
from tarsy.llm.google_native.errors import classify_google_error
from tarsy.llm.google_native.names import spell
from tarsy.llm.google_native.response import FILTERED, UNUSABLE, name_of
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.llm.stop_reasons import stops
from tarsy.llm.text import encodable
from tarsy.llm.toolcalls import sendable_arguments
from tarsy.plan.model import ProviderPlan
from tarsy.record.messages import Message, Role
from tarsy.record.text import clean
from tarsy.record.usage import Usage

_STATE = "google-langchain"
_SIGNATURES = "__gemini_function_call_thought_signatures__"


class GoogleChat:
    """One Gemini on one server.

    Args:
        provider: `base_url` is the API's address; a version at its end is used instead of the usual one.
        http: closed with this.
    """

    def __init__(self, provider: ProviderPlan, http: Http) -> None:
        self._provider = provider
        self._http = http
        self._client = sdk(provider, http)
        self._model = ChatGoogleGenerativeAI(
            model=provider.model,
            **_server(provider),
            temperature=provider.temperature,
            max_output_tokens=provider.max_output_tokens,
            max_retries=1,
        )
        # LangChain made one with the environment's settings and retries; nothing was sent with it.
        self._model.client = self._client

    def answer(self, request: GenerateRequest) -> ChatResponse:
        """Returns the reader of the response to a request."""
        return _GeminisAnswer(request, self._provider.model)

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[AIMessageChunk, None]:
        """Streams LangChain's chunks, none for an empty stream; raises whatever the SDK raises."""
        options: dict[str, Any] = {}
        if request.tools:
            options["tools"] = [types.Tool(function_declarations=[declaration(tool) for tool in request.tools])]
            if not request.may_call:
                options["tool_config"] = choice_of(request)
        if request.stop and stops(self._provider):
            options["stop"] = list(request.stop)
        if (thinking := thinking_of(self._provider)) is not None:
            options["thinking_config"] = thinking
        with self._http.call() as headers:
            options["http_options"] = types.HttpOptions(headers=headers)
            messages = _messages(request, self._provider.model)
            async with aclosing(chat.stream(self._model, messages, **options)) as chunks:
                async for chunk in chunks:
                    yield chunk

    def classify(self, error: Exception, *, subject: str, started: bool) -> ModelError:
        """Turns the error of a call into a ModelError: Google's own error, where LangChain wrapped it.

        Args:
            error: as LangChain or the SDK raised it.
            subject: provider and model, the beginning of the message.
            started: whether anything of the response was received before.
        """
        cause: BaseException | None = None if isinstance(error, ModelError) else error
        while cause is not None and not isinstance(cause, sdk_errors.APIError):
            cause = cause.__cause__
        call = FailedCall(subject, self._http.access.secret, started, self._http.server.makers)
        return classify_google_error(cause or error, call)

    async def aclose(self) -> None:
        """Closes the HTTP session, and what the SDK opened beside it."""
        await self._client.aio.aclose()
        self._client.close()
        await self._http.aclose()


class _GeminisAnswer(ChatResponse):
    """Gemini's, with what it wants back."""

    def __init__(self, request: GenerateRequest, model: str) -> None:
        super().__init__(request, spell)
        self._model = model
        self._blocks: list[dict[str, Any]] = []
        self._signatures: dict[str, str] = {}

    def words(self, piece: AIMessageChunk) -> tuple[str, str]:
        text = thinking = ""
        content: list[Any] = [piece.content] if isinstance(piece.content, str) else piece.content
        for block in map(_block, content):
            match block["type"]:
                case "text":
                    words = block.get("text") or ""
                    text += words
                    self._keep("text", words, (block.get("extras") or {}).get("signature"))
                case "thinking":
                    words = block.get("thinking") or ""
                    thinking += words
                    self._keep("thinking", words, block.get("signature"))
        self._signatures |= piece.additional_kwargs.get(_SIGNATURES) or {}
        return text, thinking

    def arguments(self, text: str) -> str:
        """Gemini writes no text but an object, which LangChain writes down with everything escaped."""
        return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) if text else text

    def count(self, told: Usage) -> Usage:
        """Adds the usage of a chunk: LangChain reports each chunk's own."""
        return told if self.usage is None else self.usage + told

    def reason(self, piece: AIMessageChunk) -> str:
        told = piece.response_metadata.get("finish_reason") or ""
        match told:
            case "":
                blocked = (piece.response_metadata.get("prompt_feedback") or {}).get("block_reason")
                return "content_filter" if blocked else ""
            case "STOP":
                return "tool_calls" if self.calls.count else "stop"
            case "MAX_TOKENS":
                return "length"
            case reason if reason in FILTERED or reason.startswith("IMAGE_"):
                return "content_filter"
            case reason:
                why = UNUSABLE.get(reason, "the server stopped the answer")
                raise ModelError(ModelErrorCode.SERVER, f"{why} ({name_of(reason)})", retryable=True, started=True)

    def provider_state(self) -> dict[str, Any] | None:
        calls = {call.id: self._signatures[call.id] for call in self.calls.calls() if call.id in self._signatures}
        if not calls and not any(block["type"] == "thinking" or "extras" in block for block in self._blocks):
            return None
        return {_STATE: {"model": self._model, "blocks": self._blocks, "calls": calls}}

    def _keep(self, kind: str, words: str, signature: str | None) -> None:
        """Takes a block; neighbours of a kind without a signature are one."""
        block = {"type": kind, kind: encodable(words)}
        last = self._blocks[-1] if self._blocks else None
        if signature and kind == "thinking":
            self._blocks.append(block | {"signature": signature})
        elif signature:
            self._blocks.append(block | {"extras": {"signature": signature}})
        elif last is not None and last.keys() == block.keys():
            last[kind] += block[kind]
        elif words:
            self._blocks.append(block)


def _server(provider: ProviderPlan) -> dict[str, Any]:
    """The server arguments of LangChain, which builds a client that is not used: the credentials are placeholders."""
    if (vertex := provider.vertexai) is None:
        return {"vertexai": False, "api_key": "none"}
    credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]
    return {"vertexai": True, "project": vertex.project, "location": vertex.location, "credentials": credentials}


def _block(found: Any) -> dict[str, Any]:
    return {"type": "text", "text": found} if isinstance(found, str) else {"type": "", **found}


def _messages(request: GenerateRequest, model: str) -> list[BaseMessage]:
    conversation = request.messages
    made = request.forms.each(("langchain-google", model), conversation, lambda at: _message(conversation[at], model))
    text = "\n\n".join(encodable(m.content) for m in conversation if m.role is Role.SYSTEM and m.content)
    turns = [turn for turn in made if turn is not None]
    return [SystemMessage(text), *turns] if text else turns


def _message(message: Message, model: str) -> BaseMessage | None:
    content = encodable(message.content)
    match message.role:
        case Role.SYSTEM:
            return None
        case Role.TOOL:
            return ToolMessage(content, tool_call_id=message.tool_call_id or "")
        case Role.ASSISTANT:
            calls = [
                tool_call(name=spell(call.name), args=json.loads(sendable_arguments(call.arguments)), id=call.id)
                for call in message.tool_calls
            ]
            match (message.provider_state or {}).get(_STATE):
                case {"model": wrote, "blocks": [*blocks], "calls": {**signatures}} if wrote == model:
                    return AIMessage(
                        _shown(blocks, message.content),
                        tool_calls=calls,
                        additional_kwargs={_SIGNATURES: signatures},
                        response_metadata={"model_provider": "google_genai"},
                    )
            return AIMessage(content, tool_calls=calls)
        case _:
            return HumanMessage(content or " ")


def _shown(blocks: Sequence[dict[str, Any]], content: str) -> list[str | dict[str, Any]]:
    """The blocks, with the text as it is now: it may have been shortened or masked since."""
    if clean("".join(block.get("text", "") for block in blocks)) == content:
        return list(blocks)
    kept: list[str | dict[str, Any]] = [block for block in blocks if block.get("type") != "text"]
    return [*kept, {"type": "text", "text": encodable(content)}] if content else kept
