"""The LangChain provider on the wire: the real SDKs against a server that does whatever servers do."""

import asyncio
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import aclosing

import pytest

from integration.llm.asking import content
from integration.llm.conftest import KEY
from tarsy.llm.langchain import LangChainProvider
from tarsy.llm.protocol import (
    Chunk,
    EndChunk,
    GenerateRequest,
    LLMClient,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.llm.providers.openai import OPENAI_CHAT
from tarsy.llm.registry import ModelRegistry
from tarsy.llm.retry import Retrying
from tarsy.plan.model import ProviderPlan, SecretKey
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition
from tarsy.record.usage import Usage
from wire.openai import delta, event, fail, stream, text, usage
from wire.server import StandIn, hang

Plans = Callable[..., ProviderPlan]
ASK = GenerateRequest([Message(Role.USER, "why?")], execution="e1")
GET = ToolDefinition("kubernetes.get", "Gets.", {"type": "object", "properties": {"name": {"type": "string"}}})


async def collect(client: LLMClient, request: GenerateRequest = ASK) -> list[Chunk]:
    async with asyncio.timeout(60), aclosing(content(client.generate(request))) as chunks:
        return [chunk async for chunk in chunks]


async def failure(client: LLMClient, request: GenerateRequest = ASK) -> tuple[ModelError, list[Chunk]]:
    seen: list[Chunk] = []
    with pytest.raises(ModelError) as raised:
        async with asyncio.timeout(60):
            async for chunk in content(client.generate(request)):
                seen.append(chunk)
    report = "".join(traceback.format_exception(raised.value))
    assert KEY not in report and raised.value.__context__ is None and raised.value.__cause__ is None
    assert "provider house-model (model gpt-x)" in str(raised.value)
    return raised.value, seen


def written(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


async def test_an_answer_streams_as_text_usage_and_end(server: StandIn, provider: LangChainProvider) -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 4}, "prompt_tokens_details": {"cached_tokens": 2}}
    server.answers = [
        stream(
            delta(role="assistant", content=""),
            delta(content="Out of "),
            delta(content="memory."),
            delta("stop"),
            usage(prompt_tokens=9, completion_tokens=7, total_tokens=16, **details),
        )
    ]
    assert await collect(provider) == [
        TextChunk("Out of "),
        TextChunk("memory."),
        UsageChunk(Usage(input_tokens=9, output_tokens=7, thinking_tokens=4, cached_tokens=2)),
        EndChunk("stop", response_model="m"),
    ]
    assert server.paths == ["/v1/chat/completions"]
    assert server.requests[0]["stream_options"] == {"include_usage": True}
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_usage_that_is_not_reported_is_not_invented(server: StandIn, provider: LangChainProvider) -> None:
    server.answers = [text("ok")]
    assert await collect(provider) == [TextChunk("ok"), EndChunk("stop", response_model="m")]


async def test_a_conversation_goes_out_as_it_was_and_tools_under_the_providers_names(
    server: StandIn, provider: LangChainProvider
) -> None:
    server.answers = [text("ok")]
    calls = (
        ToolCall("c1", "kubernetes.get", '{"name":  "é", "deep": {"a": [1.50]}}'),
        ToolCall("c2", "kubernetes.get", "name: web"),
        ToolCall("c3", "kubernetes.get", ""),
    )
    messages = [
        Message(Role.SYSTEM, "You investigate."),
        Message(Role.USER, "why? \ud83d"),
        Message(Role.ASSISTANT, "looking", tool_calls=calls),
        Message(Role.TOOL, "pod web", tool_call_id="c1", tool_name="kubernetes.get"),
        Message(Role.TOOL, "", tool_call_id="c2", tool_name="kubernetes.get"),
        Message(Role.TOOL, "error", tool_call_id="c3", tool_name="kubernetes.get"),
    ]
    await collect(provider, GenerateRequest(messages, [GET, ToolDefinition("kubernetes.pods/log", "Logs.")]))
    sent = server.requests[0]
    assert sent["messages"] == [
        {"role": "system", "content": "You investigate."},
        {"role": "user", "content": "why? \ufffd"},
        {
            "role": "assistant",
            "content": "looking",
            "tool_calls": [
                {"type": "function", "id": id, "function": {"name": "kubernetes__get", "arguments": arguments}}
                for id, arguments in (
                    ("c1", '{"name":  "é", "deep": {"a": [1.50]}}'),
                    ("c2", '{"malformed_arguments": "name: web"}'),
                    ("c3", "{}"),
                )
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "pod web"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        {"role": "tool", "tool_call_id": "c3", "content": "error"},
    ]
    first, second = (tool["function"] for tool in sent["tools"])
    assert first == {"name": "kubernetes__get", "description": "Gets.", "parameters": GET.parameters_schema}
    assert second["name"].startswith("kubernetes_pods_log_")
    assert second["parameters"] == {"type": "object", "properties": {}}


async def test_tool_calls_in_pieces_arrive_whole_in_order_and_under_their_own_names(
    server: StandIn, provider: LangChainProvider
) -> None:
    def piece(index: int, id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, object]:
        return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}

    server.answers = [
        stream(
            delta(role="assistant", content="Looking."),
            delta(tool_calls=[piece(0, "c1", "kubernetes__get")]),
            delta(tool_calls=[piece(0, arguments='{"na')]),
            delta(tool_calls=[piece(0, arguments='me":"a"}'), piece(1, None, "kubernetes__get", "{}")]),
            delta("tool_calls"),
        )
    ]
    request = GenerateRequest(ASK.messages, [GET], execution="e1")
    chunks = await collect(provider, request)
    calls = [chunk.call for chunk in chunks if isinstance(chunk, ToolCallChunk)]
    assert chunks[0] == TextChunk("Looking.") and chunks[-1] == EndChunk("tool_calls", response_model="m")
    assert calls[0] == ToolCall("c1", "kubernetes.get", '{"name":"a"}')
    assert (calls[1].name, calls[1].arguments) == ("kubernetes.get", "{}")
    again = [chunk.call for chunk in await collect(provider, request) if isinstance(chunk, ToolCallChunk)]
    assert again == calls


async def test_announced_tool_calls_that_never_come_are_an_error(server: StandIn, provider: LangChainProvider) -> None:
    server.answers = [stream(delta(content="", role="assistant"), delta("tool_calls"))]
    error, _ = await failure(provider)
    assert error.code is ModelErrorCode.SERVER


async def test_reasoning_content_of_compatible_servers_is_dropped_and_does_no_harm(
    server: StandIn, provider: LangChainProvider
) -> None:
    server.answers = [stream(delta(role="assistant", reasoning_content="hm"), delta(content="ok"), delta("stop"))]
    assert await collect(provider) == [TextChunk("ok"), EndChunk("stop", response_model="m")]


async def test_an_empty_answer_just_ends(server: StandIn, provider: LangChainProvider) -> None:
    server.answers = [stream(delta(role="assistant", content=""), delta("stop"))]
    assert await collect(provider) == [EndChunk("stop", response_model="m")]


async def test_an_answer_cut_by_its_length_says_so(server: StandIn, provider: LangChainProvider) -> None:
    server.answers = [stream(delta(content="half a"), delta("length"))]
    assert (await collect(provider))[-1] == EndChunk("length", response_model="m")


async def test_an_answer_stopped_by_the_content_filter_is_an_error_after_its_text(
    server: StandIn, provider: LangChainProvider
) -> None:
    server.answers = [stream(delta(content="how to"), delta("content_filter"))]
    error, seen = await failure(provider)
    assert (error.code, error.retryable, error.started) == (ModelErrorCode.CONTENT_FILTER, False, True)
    assert written(seen) == "how to"


async def test_unicode_split_over_packets_and_over_chunks_arrives_whole(
    server: StandIn, provider: LangChainProvider
) -> None:
    raw = event('{"choices":[{"index":0,"delta":{"content":"é🔥"}}]}')
    middle = raw.index("🔥".encode()) + 2
    halves = [event(f'{{"choices":[{{"index":0,"delta":{{"content":"{half}"}}}}]}}') for half in (r"\ud83d", r"\ude00")]
    server.answers = [stream(raw[:middle], raw[middle:], *halves, delta("stop"))]
    assert written(await collect(provider)) == "é🔥😀"


async def test_an_answer_of_a_megabyte_arrives_whole(server: StandIn, provider: LangChainProvider) -> None:
    block = "0123456789abcdef" * 4096
    arguments = '{"a": "' + "y" * (1 << 20) + '"}'
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "kubernetes__get", "arguments": arguments}}
    server.answers = [stream(*(delta(content=block) for _ in range(16)), delta(tool_calls=[call]), delta("tool_calls"))]
    chunks = await collect(provider)
    assert written(chunks) == block * 16
    assert [chunk.call.arguments for chunk in chunks if isinstance(chunk, ToolCallChunk)] == [arguments]


async def test_401_keeps_the_servers_words_without_the_key(server: StandIn, provider: LangChainProvider) -> None:
    server.answers = [fail(401, {"message": f"Incorrect API key provided: {KEY}.", "code": "invalid_api_key"})]
    error, _ = await failure(provider)
    assert (error.code, error.retryable) == (ModelErrorCode.CREDENTIALS, False)
    assert error.words == "Incorrect API key provided: [key]." and "Secret" in str(error)


@pytest.mark.parametrize(("headers", "seconds"), [({"Retry-After": "7"}, 7.0), ({}, None)])
async def test_429_is_one_request_and_carries_retry_after(
    server: StandIn, provider: LangChainProvider, headers: dict[str, str], seconds: float | None
) -> None:
    server.answers = [fail(429, headers={"x-should-retry": "true", **headers})]
    error, _ = await failure(provider)
    assert (error.code, error.retryable, error.retry_after) == (ModelErrorCode.RATE_LIMIT, True, seconds)
    assert len(server.requests) == 1


async def test_500_and_then_success_is_an_answer_for_whoever_retries(
    server: StandIn, provider: LangChainProvider
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    server.answers = [fail(500), fail(429, headers={"Retry-After": "9"}), text("ok")]
    assert written(await collect(Retrying(provider, sleep=sleep))) == "ok"
    assert len(server.requests) == 3 and slept[1] >= 9


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (fail(404, {"message": "model gpt-x does not exist"}), ModelErrorCode.NOT_FOUND, "spec.model"),
        (fail(400, {"message": "bad tool schema"}), ModelErrorCode.INVALID_REQUEST, "bad tool schema"),
        (fail(413, "too large", content_type="text/plain"), ModelErrorCode.CONTEXT_TOO_LONG, "413"),
        (
            fail(400, {"message": "maximum context length is 8", "code": "context_length_exceeded"}),
            ModelErrorCode.CONTEXT_TOO_LONG,
            "maximum context length",
        ),
        (fail(529, {"message": "overloaded"}), ModelErrorCode.SERVER, "overloaded"),
        (fail(307, "", {"Location": "http://169.254.0.1/"}), ModelErrorCode.INVALID_REQUEST, "redirects"),
        (fail(200, "<html>hello", content_type="text/html"), ModelErrorCode.INVALID_REQUEST, "text/html"),
        (fail(200, {"message": "whole"}), ModelErrorCode.INVALID_REQUEST, "application/json"),
        (fail(503, "<html><title>Busy</title>", content_type="text/html"), ModelErrorCode.SERVER, "'Busy'"),
    ],
)
async def test_refusals_are_classified_and_told(
    server: StandIn, provider: LangChainProvider, answer: object, code: ModelErrorCode, words: str
) -> None:
    server.answers = [answer]  # type: ignore[list-item]
    error, _ = await failure(provider)
    assert error.code is code and words in f"{error} {error.words}"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        stream(delta(content="half"), cut=True),
        stream(delta(content="half"), done=False),
        stream(delta(content="half")),
        stream(delta(content="half"), b"data: {nonsense\n\n"),
        stream(delta(content="half"), b'data: {"choices": "none"}\n\n', cut=True),
    ],
    ids=["cut", "ended", "done without finish", "malformed chunk", "wrong shape"],
)
async def test_half_a_stream_is_a_partial_stream_that_nobody_retries(
    server: StandIn, provider: LangChainProvider, answer: object
) -> None:
    server.answers = [answer]  # type: ignore[list-item]
    error, seen = await failure(Retrying(provider))
    assert (error.code, error.started) == (ModelErrorCode.PARTIAL_STREAM, True)
    assert written(seen) == "half" and len(server.requests) == 1


async def test_a_stream_without_anything_may_be_tried_again(server: StandIn, provider: LangChainProvider) -> None:
    for nothing in (stream(), stream(done=False), stream(cut=True), stream(b"data: {nonsense\n\n")):
        server.answers = [nothing]
        error, seen = await failure(provider)
        assert (error.retryable, error.started, seen) == (True, False, [])


async def test_an_error_event_in_the_middle_keeps_its_words(server: StandIn, provider: LangChainProvider) -> None:
    server.answers = [stream(delta(content="half"), {"error": {"message": f"engine died, key {KEY}", "code": 500}})]
    error, seen = await failure(provider)
    assert (error.code, error.started, written(seen)) == (ModelErrorCode.SERVER, True, "half")
    assert "engine died" in error.words and "engine died" not in str(error)


async def test_a_connection_cut_after_the_answer_ended_does_not_spoil_it(
    server: StandIn, provider: LangChainProvider
) -> None:
    server.answers = [stream(delta(content="ok"), delta("stop"), cut=True)]
    assert await collect(provider) == [TextChunk("ok"), EndChunk("stop", response_model="m")]


async def test_a_refused_connection_and_an_unknown_name_are_unreachable(plan: Plans, unused_tcp_port: int) -> None:
    for base_url in (f"http://127.0.0.1:{unused_tcp_port}/v1", "http://nowhere.invalid/v1"):
        provider = LangChainProvider(plan(base_url=base_url), KEY, OPENAI_CHAT)
        error, _ = await failure(provider)
        assert (error.code, error.retryable, error.started) == (ModelErrorCode.CONNECTION, True, False)
        await provider.aclose()


async def test_https_to_a_server_without_tls_is_unreachable(server: StandIn, plan: Plans) -> None:
    provider = LangChainProvider(plan(base_url=server.base_url.replace("http:", "https:")), KEY, OPENAI_CHAT)
    error, _ = await failure(provider)
    assert error.code is ModelErrorCode.CONNECTION
    await provider.aclose()


@pytest.mark.parametrize("base_url", ["ftp://model/v1", "model:80/v1", "http:///v1"])
async def test_a_base_url_that_is_none_names_the_field(plan: Plans, base_url: str) -> None:
    with pytest.raises(ModelError, match=r"house-model: spec\.baseURL is not a usable") as raised:
        LangChainProvider(plan(base_url=base_url), KEY, OPENAI_CHAT)
    assert (raised.value.code, raised.value.retryable) == (ModelErrorCode.INVALID_REQUEST, False)


async def test_silence_ends_with_the_providers_last_resort(server: StandIn, plan: Plans) -> None:
    server.answers = [hang, stream(delta(content="half"), hang=True)]
    provider = LangChainProvider(plan(base_url=server.base_url), KEY, OPENAI_CHAT, read_seconds=0.2)
    for half in ("", "half"):
        error, seen = await failure(provider)
        assert (error.code, error.started, written(seen)) == (ModelErrorCode.TIMEOUT, bool(half), half)
    await provider.aclose()


@pytest.mark.parametrize("answer", [hang, stream(delta(content="half"), hang=True)], ids=["nothing", "half"])
async def test_the_consumers_timeout_closes_the_connection_at_once(
    server: StandIn, provider: LangChainProvider, answer: object
) -> None:
    server.answers = [text("warm"), answer]  # type: ignore[list-item]
    await collect(provider)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            async for _ in provider.generate(ASK):
                pass
    async with asyncio.timeout(60):
        await server.left.wait()


async def test_a_consumer_that_walks_away_closes_the_connection(server: StandIn, provider: LangChainProvider) -> None:
    server.answers = [stream(delta(content="a"), delta(content="b"), hang=True)]
    async with aclosing(content(provider.generate(ASK))) as chunks:
        assert await anext(chunks) == TextChunk("a")
    async with asyncio.timeout(60):
        await server.left.wait()


async def test_calls_of_one_provider_share_a_connection(server: StandIn, provider: LangChainProvider) -> None:
    server.answers = [text("ok")]
    for _ in range(3):
        await collect(provider)
    assert len(server.peers) == 1


async def test_settings_go_where_each_server_expects_them(server: StandIn, plan: Plans) -> None:
    server.answers = [text("ok")]
    provider = LangChainProvider(
        plan(base_url=server.base_url, temperature=0.0, max_output_tokens=77), None, OPENAI_CHAT
    )
    await collect(provider)
    assert (server.requests[0]["temperature"], server.requests[0]["max_tokens"]) == (0.0, 77)
    assert "tools" not in server.requests[0] and "authorization" not in server.headers[0]
    await provider.aclose()


async def test_models_that_langchain_sends_elsewhere_stay_on_chat_completions(server: StandIn, plan: Plans) -> None:
    server.answers = [text("ok")]
    provider = LangChainProvider(plan(base_url=server.base_url, model="gpt-5-codex"), KEY, OPENAI_CHAT)
    assert written(await collect(provider)) == "ok"
    assert server.paths == ["/v1/chat/completions"]
    await provider.aclose()


async def test_the_registry_hands_out_working_clients_with_the_key_of_the_moment(server: StandIn, plan: Plans) -> None:
    keys = iter(["first", "second\n"])

    async def secret(_: SecretKey) -> str:
        return next(keys)

    server.answers = [text("ok")]
    registry = ModelRegistry(secret)
    provider = plan(base_url=server.base_url, api_key=SecretKey(namespace="team", name="llm", key="k"))
    for _ in range(2):
        async with registry.client(provider) as client:
            assert written(await collect(client)) == "ok"
    assert [headers["authorization"] for headers in server.headers] == ["Bearer first", "Bearer second"]
    await registry.aclose()


ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-of-the-environment",
    "OPENAI_ADMIN_KEY": "sk-admin-of-the-environment",
    "OPENAI_BASE_URL": "http://127.0.0.1:1/environment",
    "OPENAI_API_BASE": "http://127.0.0.1:1/environment",
    "OPENAI_ORG_ID": "org-environment",
    "OPENAI_PROJECT_ID": "project-environment",
    "OPENAI_PROXY": "http://127.0.0.1:1",
    "OPENAI_CUSTOM_HEADERS": "X-Environment: yes\nAuthorization: Bearer environment",
    "HTTP_PROXY": "http://127.0.0.1:1",
    "HTTPS_PROXY": "http://127.0.0.1:1",
    "ALL_PROXY": "http://127.0.0.1:1",
    "http_proxy": "http://127.0.0.1:1",
    "all_proxy": "http://127.0.0.1:1",
    "LANGSMITH_TRACING": "true",
    "LANGSMITH_API_KEY": "environment",
    "LANGSMITH_ENDPOINT": "http://127.0.0.1:1/environment",
    "LANGSMITH_GATEWAY": "http://127.0.0.1:1/environment",
    "LC_OUTPUT_VERSION": "v1",
    "LANGCHAIN_OPENAI_STREAM_CHUNK_TIMEOUT_S": "0.000001",
}


@pytest.mark.parametrize("key", [KEY, None])
async def test_environment_variables_have_no_effect(
    server: StandIn, plan: Plans, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    traced: list[object] = []
    from langchain_core.tracers.langchain import LangChainTracer

    monkeypatch.setattr(LangChainTracer, "on_chat_model_start", lambda *args, **kwargs: traced.append(args))
    server.answers = [text("ok")]
    provider = LangChainProvider(plan(base_url=server.base_url), key, OPENAI_CHAT)
    assert written(await collect(provider)) == "ok"
    assert traced == []
    assert "environment" not in str(server.headers) + str(server.requests)
    assert server.headers[0].get("authorization") == (f"Bearer {key}" if key else None)
    assert not {name for name in server.headers[0] if name.startswith(("openai", "x-"))}
    await provider.aclose()


def test_importing_the_room_imports_no_sdk() -> None:
    program = (
        "import sys, tarsy.llm.registry;"
        "print([m for m in ('openai', 'langchain_core', 'langchain_openai', 'httpx2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.heavy("imports the SDKs in a process of its own")
def test_first_calls_of_many_providers_and_loops_at_once_import_the_sdk_without_harm() -> None:
    program = """
import asyncio, threading
from tarsy.llm.langchain import LangChainProvider
from tarsy.llm.protocol import GenerateRequest, ModelError
from tarsy.llm.providers.openai import OPENAI_CHAT
from tarsy.plan.model import ObjectRef, ProviderPlan
from tarsy.record.messages import Message, Role
ref = ObjectRef(kind="LLMProvider", namespace="n", name="p")
codes = []
async def call(n):
    plan = ProviderPlan(ref=ref, type="openai", model=f"m{n}", base_url="http://127.0.0.1:1")
    provider = LangChainProvider(plan, None, OPENAI_CHAT)
    try:
        async for _ in provider.generate(GenerateRequest([Message(Role.USER, "x")])): pass
    except ModelError as error: codes.append(error.code.value)
    await provider.aclose()
async def calls(): await asyncio.gather(*(call(n) for n in range(4)))
threads = [threading.Thread(target=lambda: asyncio.run(calls())) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(codes)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=90)
    assert done.stdout.strip() == str(["ModelUnreachable"] * 8)
