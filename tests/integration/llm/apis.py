"""The providers that keep the contract: how each is made, and how a server of its API says the same things."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tarsy.plan.model import Backend
from wire import anthropic, gemini, openai
from wire.server import Answerer, Said


@dataclass(frozen=True, slots=True)
class Api:
    """One provider on the wire.

    Args:
        type: of the LLMProvider.
        backend: the client.
        said: a whole answer.
        half: an answer that begins with the text `half` and goes on as told by the arguments of `wire.server.stream`:
            parts, `cut`, `hang`.
        fail: an error of this status in the API's shape, with these words and headers.
        garbage: an event that is none of the API's.
        broken: an error in the middle of a stream, with these words.
        thinks: whether its client hands thinking on.
        package: what its client needs beyond the operator itself, where it is an extra.
        fields: of its plan, beyond those of all.
    """

    type: str
    backend: Backend
    said: Callable[[Said], Answerer]
    half: Callable[..., Answerer]
    fail: Callable[[int, str, Mapping[str, str]], Answerer]
    garbage: bytes
    broken: Callable[[str], bytes]
    thinks: bool = True
    package: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.backend}/{self.type}"


def _half(*parts: bytes | asyncio.Event, **how: Any) -> Answerer:
    return openai.stream(openai.delta(content="half"), *parts, done=False, **how)


def _openai(backend: Backend, thinks: bool) -> Api:
    return Api(
        "openai",
        backend,
        said=openai.said,
        half=_half,
        fail=lambda status, words, headers: openai.fail(status, {"message": words}, dict(headers)),
        garbage=b'data: {"id": "broken", "choices": [{"index": 0, "del\n\n',
        broken=lambda words: openai.event({"error": {"message": words}}),
        thinks=thinks,
    )


_GEMINI = Api(
    "google",
    Backend.GOOGLE_NATIVE,
    said=gemini.said,
    half=gemini.half,
    fail=gemini.fail,
    garbage=b'data: {"candidates": [{"content": {"par\n\n',
    broken=lambda words: gemini.event(gemini.error(500, words, "INTERNAL")),
    package="google.genai",
)

_VERTEX = replace(_GEMINI, type="vertexai", fields={"vertexai": {"project": "shop", "location": "europe-west1"}})

_GEMINI_LANGCHAIN = replace(_GEMINI, backend=Backend.LANGCHAIN, package="langchain_google_genai")
_VERTEX_LANGCHAIN = replace(_VERTEX, backend=Backend.LANGCHAIN, package="langchain_google_genai")


def _grok_said(answer: Said) -> Answerer:
    """As OpenAI's, but what it answers is counted without what it thinks."""
    if (told := answer.usage) is not None:
        spoken = told.model_copy(update={"output_tokens": told.output_tokens - told.thinking_tokens})
        answer = replace(answer, usage=spoken)
    return openai.said(answer)


_GROK = replace(_openai(Backend.LANGCHAIN, thinks=True), type="xai", said=_grok_said, package="langchain_xai")

_CLAUDE = Api(
    "anthropic",
    Backend.LANGCHAIN,
    said=anthropic.said,
    half=anthropic.half,
    fail=anthropic.fail,
    garbage=b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "del\n\n',
    broken=lambda words: anthropic.event(anthropic.error("api_error", words)),
    package="langchain_anthropic",
)

APIS = (
    _openai(Backend.OPENAI_NATIVE, thinks=True),
    _openai(Backend.LANGCHAIN, thinks=False),
    _GEMINI,
    _GEMINI_LANGCHAIN,
    _VERTEX,
    _VERTEX_LANGCHAIN,
    _CLAUDE,
    _GROK,
)
