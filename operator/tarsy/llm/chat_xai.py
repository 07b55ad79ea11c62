"""Wraps ChatXAI, which speaks OpenAI's chat completions and keeps Grok's reasoning."""

from langchain_core.messages import AIMessageChunk
from langchain_xai import ChatXAI

from tarsy.llm.chat import ChatResponse
from tarsy.llm.chat_openai import OpenAIChat
from tarsy.llm.langchain import ChatModelSettings
from tarsy.llm.protocol import GenerateRequest


class XAIChat(OpenAIChat):
    """One Grok on one server with one key."""

    def __init__(self, settings: ChatModelSettings) -> None:
        super().__init__(settings, ChatXAI, older_limit=True)

    def answer(self, request: GenerateRequest) -> ChatResponse:
        """Returns the reader of the response to a request."""
        return _XAIResponse(request)


class _XAIResponse(ChatResponse):
    """Grok's response, with its reasoning."""

    def words(self, piece: AIMessageChunk) -> tuple[str, str]:
        text, thinking = super().words(piece)
        return text, thinking or piece.additional_kwargs.get("reasoning_content") or ""
