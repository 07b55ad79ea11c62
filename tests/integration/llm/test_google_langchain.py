"""What is Gemini's own when spoken to through LangChain: thinking, signatures, usage, reasons. The SDK is real."""

import warnings
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest

from extras import needs
from integration.llm.asking import GET, QUESTION, SCHEMA, collect, failure, results, turn
from integration.llm.conftest import KEY, making
from integration.llm.google import SIGNATURES, asked
from tarsy.llm.langchain import LangChainProvider
from tarsy.llm.protocol import (
    Chunk,
    EndChunk,
    GenerateRequest,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.llm.providers.google import GOOGLE_CHAT
from tarsy.plan.model import ProviderPlan
from tarsy.record.messages import ToolCall
from tarsy.record.usage import Usage
from wire import gemini
from wire.server import StandIn

pytestmark = needs("langchain_google_genai")
Code = ModelErrorCode
Make = Callable[..., LangChainProvider]


@pytest.fixture
async def make(server: StandIn, plan: Callable[..., ProviderPlan]) -> AsyncIterator[Make]:
    fields = {"type": "google", "model": "gemini-3-pro", "base_url": server.url}
    async with making(partial(LangChainProvider, chat=GOOGLE_CHAT), plan, **fields) as build:
        yield build


async def signed(server: StandIn, client: LangChainProvider) -> list[Chunk]:
    """An answer that thinks and calls twice; the first call and the text's end are signed."""
    server.answers = [
        gemini.stream(
            gemini.piece(gemini.thought("Two pods.")),
            gemini.piece(gemini.text("I ")),
            gemini.piece(gemini.text("look.", SIGNATURES[0])),
            gemini.piece(gemini.call("kubernetes__get", {"a": "é"}, id="one", signature=SIGNATURES[1])),
            gemini.piece(gemini.call("kubernetes__get", {"a": None}, id="two")),
            gemini.last(),
        )
    ]
    return await collect(client)


async def test_everything_gemini_says_becomes_its_chunk(server: StandIn, make: Make) -> None:
    assert (await signed(server, make()))[:-1] == [
        ThinkingChunk("Two pods."),
        TextChunk("I "),
        TextChunk("look."),
        ToolCallChunk(ToolCall("one", "kubernetes.get", '{"a":"é"}')),
        ToolCallChunk(ToolCall("two", "kubernetes.get", '{"a":null}')),
        UsageChunk(Usage(input_tokens=20, output_tokens=9, thinking_tokens=4, cached_tokens=7)),
    ]


@pytest.mark.parametrize("content", ["I look.", "short"])
async def test_the_next_process_sends_signatures_back_where_they_belong(
    server: StandIn, make: Make, content: str
) -> None:
    message = turn(await signed(server, make()), content=content)
    sent = await asked(server, make(), GenerateRequest([*QUESTION, message, *results(message)], [GET]))
    _, model, tools = sent["contents"]
    calls = [part for part in model["parts"] if "functionCall" in part]
    assert [part["functionCall"]["args"] for part in calls] == [{"a": "é"}, {"a": None}]
    text = "".join(part["text"] for part in model["parts"] if "text" in part and not part.get("thought"))
    assert text == content
    assert gemini.signatures(sent) == (SIGNATURES if content == "I look." else SIGNATURES[1:])
    outputs = [part["functionResponse"]["response"] for part in tools["parts"]]
    assert outputs == [{"output": "found one"}, {"output": "found two"}]


async def test_another_models_signatures_are_not_sent(server: StandIn, make: Make) -> None:
    message = turn(await signed(server, make()))
    sent = await asked(server, make("gemini-2.5-pro"), GenerateRequest([*QUESTION, message, *results(message)], [GET]))
    assert gemini.signatures(sent) == []
    assert [part["text"] for part in sent["contents"][1]["parts"] if "text" in part] == ["I look."]


async def test_schemas_go_untouched_and_thinking_is_the_models_own(server: StandIn, make: Make) -> None:
    sent = await asked(server, make(temperature=0.5, max_output_tokens=99))
    (tools,) = sent["tools"]
    assert tools["functionDeclarations"][0]["parameters_json_schema"] == SCHEMA
    config = sent["generationConfig"]
    assert (config["temperature"], config["maxOutputTokens"]) == (0.5, 99)
    assert config["thinkingConfig"] == {"include_thoughts": True, "thinking_level": "HIGH"}
    sent = await asked(server, make("gemini-2.5-flash", thinking={"budget": 0}), GenerateRequest(QUESTION))
    assert sent["generationConfig"]["thinkingConfig"] == {"include_thoughts": False, "thinking_budget": 0}
    assert "tools" not in sent


async def test_usage_that_grows_with_the_stream_is_not_counted_twice(server: StandIn, make: Make) -> None:
    pieces = [
        gemini.piece(gemini.text("a"), usage={"promptTokenCount": 10, "candidatesTokenCount": 1}),
        gemini.piece(gemini.text("b"), usage={"promptTokenCount": 10, "candidatesTokenCount": 5}),
        gemini.piece(finish="MAX_TOKENS", usage={"promptTokenCount": 10, "candidatesTokenCount": 8}),
    ]
    server.answers = [gemini.stream(*pieces)]
    *_, usage, end = await collect(make())
    assert usage == UsageChunk(Usage(input_tokens=10, output_tokens=8))
    assert isinstance(end, EndChunk) and end.finish_reason == "length"


@pytest.mark.parametrize(
    ("pieces", "code", "retryable"),
    [
        ([gemini.last(gemini.text("a"), finish="SAFETY")], Code.CONTENT_FILTER, False),
        ([gemini.blocked("PROHIBITED_CONTENT")], Code.CONTENT_FILTER, False),
        ([gemini.last(gemini.text("a"), finish="MALFORMED_FUNCTION_CALL")], Code.SERVER, True),
    ],
)
async def test_an_answer_that_was_stopped_is_an_error(
    server: StandIn, make: Make, pieces: list[dict[str, Any]], code: Code, retryable: bool
) -> None:
    server.answers = [gemini.stream(*pieces)]
    error = await failure(make())
    assert (error.code, error.retryable) == (code, retryable)


async def test_a_wrong_key_and_a_context_too_long_are_told_apart(server: StandIn, make: Make) -> None:
    client = make()
    for words, details, code in (
        ("API key not valid.", [gemini.reason("API_KEY_INVALID")], Code.CREDENTIALS),
        ("The input token count (9) exceeds the maximum number of tokens allowed (8).", [], Code.CONTEXT_TOO_LONG),
    ):
        server.answers = [gemini.fail(400, words, {}, *details)]
        error = await failure(client)
        assert (error.code, error.retryable) == (code, False)


async def test_nothing_of_the_environment_is_used(server: StandIn, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "of-the-environment")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await asked(server, make())
    assert server.headers[-1]["x-goog-api-key"] == KEY
    assert server.paths[-1].startswith("/v1beta/models/gemini-3-pro:streamGenerateContent")
