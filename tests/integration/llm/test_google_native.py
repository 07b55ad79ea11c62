"""What is Gemini's own, on the wire: native tools, thinking, its errors. The SDK is the real one."""

from typing import Any

import pytest

from extras import needs
from integration.llm.asking import GET, QUESTION, SCHEMA, collect, failure
from integration.llm.conftest import KEY
from integration.llm.google import Make, asked
from tarsy.llm.protocol import (
    CodeExecutionChunk,
    EndChunk,
    GenerateRequest,
    GroundingChunk,
    GroundingKind,
    GroundingSource,
    ModelErrorCode,
    NoticeChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.record.messages import ToolDefinition
from tarsy.record.usage import Usage
from wire import gemini
from wire.server import StandIn, fail

pytestmark = needs("google.genai")
Code = ModelErrorCode


async def test_everything_gemini_does_becomes_its_chunk_in_order(server: StandIn, gemini_client: Make) -> None:
    pages = {"https://a.example/": "A", "https://b.example/": "B"}
    server.answers = [
        gemini.stream(
            gemini.piece(gemini.thought("Let me see.")),
            gemini.piece(*gemini.code("print(6*7)", "42\n")),
            gemini.piece(gemini.text("It is ")),
            gemini.piece(gemini.text("42."), **gemini.searched(["disk full"], pages)),
            gemini.last(**gemini.searched(["disk full", "node"], pages), **gemini.read_pages("https://c.example/")),
        )
    ]
    assert (await collect(gemini_client()))[:-1] == [
        ThinkingChunk("Let me see."),
        CodeExecutionChunk("print(6*7)", "42\n", "python"),
        TextChunk("It is "),
        TextChunk("42."),
        GroundingChunk(
            GroundingKind.SEARCH,
            ("disk full", "node"),
            (GroundingSource("A", "https://a.example/"), GroundingSource("B", "https://b.example/")),
        ),
        GroundingChunk(GroundingKind.URL_CONTEXT, (), (GroundingSource("", "https://c.example/"),)),
        UsageChunk(Usage(input_tokens=20, output_tokens=9, thinking_tokens=4, cached_tokens=7)),
    ]


async def test_code_that_printed_nothing_is_told_all_the_same(server: StandIn, gemini_client: Make) -> None:
    source, _ = gemini.code("import os", "")
    server.answers = [gemini.stream(gemini.last(source))]
    assert (await collect(gemini_client()))[0] == CodeExecutionChunk("import os", "", "python")


async def test_what_gemini_read_with_its_own_tools_is_input(server: StandIn, gemini_client: Make) -> None:
    used = {"promptTokenCount": 10, "toolUsePromptTokenCount": 30, "candidatesTokenCount": 2}
    server.answers = [gemini.stream(gemini.piece(gemini.text("ok"), finish="MAX_TOKENS", usage=used))]
    _, usage, end = await collect(gemini_client())
    assert usage == UsageChunk(Usage(input_tokens=40, output_tokens=2))
    assert isinstance(end, EndChunk) and end.finish_reason == "length"


async def test_schemas_go_untouched_under_names_gemini_takes(server: StandIn, gemini_client: Make) -> None:
    tools = [GET, ToolDefinition("1st.tool", "Digit first."), ToolDefinition("s." + "long" * 30, "Long.")]
    sent = await asked(server, gemini_client(), GenerateRequest(QUESTION, tools))
    (declared,) = (tool["functionDeclarations"] for tool in sent["tools"])
    assert declared[0]["parameters_json_schema"] == SCHEMA
    assert [one["name"] for one in declared[:2]] == ["kubernetes__get", "_1st__tool"]
    assert len(declared[2]["name"]) <= 64
    server.answers = [gemini.stream(gemini.last(*(gemini.call(one["name"], {}) for one in declared)))]
    chunks = await collect(gemini_client(), GenerateRequest(QUESTION, tools))
    assert [chunk.call.name for chunk in chunks if isinstance(chunk, ToolCallChunk)] == [tool.name for tool in tools]
    assert "systemInstruction" in sent and "toolConfig" not in sent


@pytest.mark.parametrize(
    ("model", "thinking", "sent"),
    [
        ("gemini-2.5-pro", None, {"include_thoughts": True, "thinking_budget": 32_768}),
        ("gemini-2.5-flash", None, {"include_thoughts": True, "thinking_budget": 24_576}),
        ("gemini-2.5-flash-lite", None, {"include_thoughts": True, "thinking_budget": 24_576}),
        ("gemini-3-pro-preview", None, {"include_thoughts": True, "thinking_level": "HIGH"}),
        ("gemini-flash-latest", None, {"include_thoughts": True, "thinking_level": "HIGH"}),
        ("gemini-2.0-flash", None, None),
        ("gemini-2.5-flash-image", None, None),
        ("gemma-3-27b-it", None, None),
        ("gemini-2.5-flash", {"budget": 0}, {"include_thoughts": False, "thinking_budget": 0}),
        ("gemini-2.5-pro", {"budget": 512}, {"include_thoughts": True, "thinking_budget": 512}),
        ("gemini-3.1-flash", {"level": "low"}, {"include_thoughts": True, "thinking_level": "LOW"}),
    ],
)
async def test_thinking_is_the_models_own_unless_the_provider_says_so(
    server: StandIn, gemini_client: Make, model: str, thinking: Any, sent: Any
) -> None:
    config = (await asked(server, gemini_client(model, thinking=thinking))).get("generationConfig") or {}
    assert config.get("thinkingConfig") == sent


async def test_native_tools_go_beside_function_tools_where_the_model_can_else_people_are_told(
    server: StandIn, gemini_client: Make
) -> None:
    native = ("google_search", "code_execution", "url_context")
    both = GenerateRequest(QUESTION, [GET], native_tools=native)
    alone = GenerateRequest(QUESTION, native_tools=native)
    theirs = [{"googleSearch": {}}, {"codeExecution": {}}, {"urlContext": {}}]
    assert (await asked(server, gemini_client("gemini-2.5-pro"), alone))["tools"] == theirs
    new = await asked(server, gemini_client(), both)
    assert new["tools"][:3] == theirs and "functionDeclarations" in new["tools"][3]
    assert new["toolConfig"] == {"includeServerSideToolInvocations": True}
    told = await collect(gemini_client("gemini-2.5-pro"), both)
    old = server.requests[-1]
    assert [list(tool) for tool in old["tools"]] == [["functionDeclarations"]] and "toolConfig" not in old
    text = "Model gemini-2.5-pro cannot combine native tools with the tools of MCP servers: its native tools are off."
    assert told[0] == NoticeChunk("NativeToolsOff", text)
    assert not any(isinstance(chunk, NoticeChunk) for chunk in await collect(gemini_client(), both))


BAD_KEY = gemini.reason("API_KEY_INVALID")
REFUSALS = [
    (400, f"API key not valid, {KEY}.", (BAD_KEY,), Code.CREDENTIALS, False, None),
    (400, "API key expired.", (), Code.CREDENTIALS, False, None),
    (
        400,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        (),
        Code.CONTEXT_TOO_LONG,
        False,
        None,
    ),
    (429, "slow down", (gemini.retry_in("17.5s"), gemini.quota("PerMinute-Free")), Code.RATE_LIMIT, True, 17.5),
    (429, "no more today", (gemini.retry_in("17s"), gemini.quota("RequestsPerDay")), Code.RATE_LIMIT, False, None),
    (503, "overloaded", (), Code.SERVER, True, None),
    (504, "deadline", (), Code.TIMEOUT, True, None),
]


@pytest.mark.parametrize(("status", "words", "details", "code", "retryable", "wait"), REFUSALS)
async def test_googles_refusals_are_read_by_their_reasons(
    server: StandIn, gemini_client: Make, status: int, words: str, details: Any, code: Code, retryable: bool, wait: Any
) -> None:
    server.answers = [gemini.fail(status, words, {}, *details)]
    error = await failure(gemini_client())
    assert (error.code, error.retryable, error.retry_after, error.started) == (code, retryable, wait, False)
    assert error.words == words.replace(KEY, "[key]") and error.words not in error.message
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("pieces", "code", "retryable", "started"),
    [
        ([gemini.blocked("PROHIBITED_CONTENT")], Code.CONTENT_FILTER, False, False),
        ([gemini.piece(gemini.text("How")), gemini.last(finish="SAFETY")], Code.CONTENT_FILTER, False, True),
        ([gemini.last(finish="RECITATION")], Code.CONTENT_FILTER, False, False),
        ([gemini.last(finish="MALFORMED_FUNCTION_CALL")], Code.SERVER, True, False),
        ([gemini.last(finish="SOMETHING_NEW")], Code.SERVER, True, False),
        ([gemini.last()], Code.EMPTY, True, False),
        ([], Code.EMPTY, True, False),
        ([b": keepalive\n\n"], Code.SERVER, True, False),
        ([gemini.event(gemini.error(429, "slow down"))], Code.RATE_LIMIT, True, False),
        ([gemini.piece(gemini.text("a")), gemini.event(gemini.error(503, "busy"))], Code.SERVER, True, True),
    ],
)
async def test_answers_that_are_none_are_classified(
    server: StandIn, gemini_client: Make, pieces: Any, code: Code, retryable: bool, started: bool
) -> None:
    server.answers = [gemini.stream(*pieces)]
    error = await failure(gemini_client())
    assert (error.code, error.retryable, error.started) == (code, retryable, started)


@pytest.mark.parametrize("calls", [256, 258])
async def test_an_answer_has_an_end_to_its_calls(server: StandIn, gemini_client: Make, calls: int) -> None:
    server.answers = [gemini.stream(gemini.last(*(gemini.call("kubernetes__get", {}) for _ in range(calls))))]
    if calls <= 256:
        assert sum(isinstance(chunk, ToolCallChunk) for chunk in await collect(gemini_client())) == calls
    else:
        error = await failure(gemini_client())
        assert (error.code, error.retryable) == (Code.SERVER, False) and "256" in error.message


async def test_a_web_page_is_no_stream(server: StandIn, gemini_client: Make) -> None:
    server.answers = [fail(200, "<html>", content_type="text/html")]
    error = await failure(gemini_client())
    assert (error.code, error.retryable) == (Code.INVALID_REQUEST, False) and "text/html" in error.message


async def test_neither_key_nor_address_comes_from_the_environment(
    server: StandIn, gemini_client: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "AIza-of-somebody-else")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    await asked(server, gemini_client(key=None))
    assert "x-goog-api-key" not in server.headers[-1]
    await asked(server, gemini_client())
    assert server.headers[-1]["x-goog-api-key"] == KEY and not [n for n in server.headers[-1] if "tarsy" in n]


@pytest.mark.parametrize(
    ("suffix", "version"), [("", "v1beta"), ("/", "v1beta"), ("/v1", "v1"), ("/g/v1alpha/", "v1alpha")]
)
async def test_the_version_of_the_api_is_v1beta_unless_the_address_says_it(
    server: StandIn, gemini_client: Make, suffix: str, version: str
) -> None:
    await asked(server, gemini_client(base_url=server.url + suffix))
    prefix = "/g" if suffix.startswith("/g") else ""
    assert server.paths == [f"{prefix}/{version}/models/gemini-3-pro:streamGenerateContent?alt=sse"]
