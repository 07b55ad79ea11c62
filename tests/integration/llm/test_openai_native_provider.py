"""The native provider on the wire: what it does beyond the contract of all providers (`test_provider_contract`)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import orjson
import pytest

from integration.llm.asking import content
from integration.llm.conftest import KEY
from tarsy.llm.openai_native import OpenAINativeProvider
from tarsy.llm.openai_native import client as module
from tarsy.llm.protocol import (
    Chunk,
    EndChunk,
    GenerateRequest,
    LifeChunk,
    LLMClient,
    ModelError,
    ModelErrorCode,
    TextChunk,
)
from tarsy.llm.retry import Retrying
from tarsy.plan.model import ProviderPlan
from tarsy.record.messages import Message, Role
from wire.openai import delta, event, fail, stream, text
from wire.server import Answerer, StandIn
from wire.server import fail as answer_with
from wire.server import stream as raw

Plans = Callable[..., ProviderPlan]
ASK = GenerateRequest([Message(Role.USER, "why?")], execution="e1")


@pytest.fixture
async def native(server: StandIn, plan: Plans) -> AsyncIterator[OpenAINativeProvider]:
    client = OpenAINativeProvider(plan(base_url=server.base_url), KEY)
    yield client
    await client.aclose()


async def collect(client: LLMClient, request: GenerateRequest = ASK) -> list[Chunk]:
    async with asyncio.timeout(60), aclosing(content(client.generate(request))) as chunks:
        return [chunk async for chunk in chunks]


async def failure(client: LLMClient) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await collect(client)
    assert KEY not in str(raised.value) and "provider house-model (model gpt-x)" in str(raised.value)
    return raised.value


def written(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


async def test_only_the_headers_that_are_needed_are_sent(server: StandIn, native: OpenAINativeProvider) -> None:
    server.answers = [text("ok")]
    await collect(native)
    sent = server.headers[0]
    assert set(sent) == {
        "accept", "accept-encoding", "authorization", "content-length", "content-type", "host", "user-agent",
    }  # fmt: skip
    assert (sent["authorization"], sent["content-type"]) == (f"Bearer {KEY}", "application/json")
    assert server.paths == ["/v1/chat/completions"]


async def test_few_answers_are_handed_on_as_they_come(server: StandIn, plan: Plans) -> None:
    client = OpenAINativeProvider(plan(base_url=server.base_url), KEY, gather_seconds=3600)
    more = asyncio.Event()
    server.answers = [stream(delta(content="a"), more, delta(content="b"), delta("stop"), event("[DONE]"))]
    async with asyncio.timeout(30), aclosing(content(client.generate(ASK))) as chunks:
        assert await anext(chunks) == TextChunk("a")
        more.set()
        assert await anext(chunks) == TextChunk("b")
    await client.aclose()


async def test_the_text_of_many_answers_is_gathered(server: StandIn, plan: Plans) -> None:
    client = OpenAINativeProvider(plan(base_url=server.base_url), KEY, gather_seconds=3)
    begun = asyncio.Barrier(9)
    second, third = asyncio.Event(), asyncio.Event()
    end = (delta("stop"), event("[DONE]"))
    server.answers = [stream(delta(content="a"), second, delta(content="b"), third, delta(content="c"), *end)]

    async def take() -> str:
        async with aclosing(content(client.generate(ASK))) as chunks:
            assert await anext(chunks) == TextChunk("a")
            await begun.wait()
            second.set()
            asyncio.get_running_loop().call_later(0.05, third.set)
            return written([chunk async for chunk in chunks if chunk == TextChunk("bc")])

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        tasks = [group.create_task(take()) for _ in range(9)]
    assert [task.result() for task in tasks] == ["bc"] * 9
    await client.aclose()


async def test_a_server_that_wants_no_key_gets_none(server: StandIn, plan: Plans) -> None:
    server.answers = [text("ok")]
    client = OpenAINativeProvider(plan(base_url=server.base_url), None)
    await collect(client)
    assert "authorization" not in server.headers[0]
    await client.aclose()


async def test_a_base_url_keeps_its_path_and_its_query(server: StandIn, plan: Plans) -> None:
    server.answers = [text("ok")]
    client = OpenAINativeProvider(plan(base_url=f"{server.url}/a%2Fb/?api-version=1"), KEY)
    await collect(client)
    assert server.paths == ["/a%2Fb/chat/completions?api-version=1"]
    await client.aclose()


@pytest.mark.parametrize("base_url", ["ftp://model/v1", "model:80/v1", "http:///v1", "http://user:pw@127.0.0.1:1/v1"])
async def test_a_base_url_that_is_none_names_the_field(plan: Plans, base_url: str) -> None:
    with pytest.raises(ModelError, match=r"house-model: spec\.baseURL is not a usable") as raised:
        OpenAINativeProvider(plan(base_url=base_url), KEY)
    assert (raised.value.code, raised.value.retryable) == (ModelErrorCode.INVALID_REQUEST, False)
    assert "pw" not in str(raised.value)


async def test_a_request_of_many_megabytes_is_sent(server: StandIn, native: OpenAINativeProvider) -> None:
    server.answers = [text("ok")]
    question = "é" * (3 << 20)
    assert written(await collect(native, GenerateRequest([Message(Role.USER, question)]))) == "ok"
    assert server.requests[0]["messages"][0]["content"] == question


async def test_keep_alives_carriage_returns_and_single_bytes_do_no_harm(
    server: StandIn, native: OpenAINativeProvider
) -> None:
    sent = (b": keep-alive\n\n" + event(delta(content="é🔥")) + event(delta("stop"))).replace(b"\n", b"\r\n")
    server.answers = [stream(*(sent[i : i + 1] for i in range(len(sent))))]
    assert await collect(native) == [TextChunk("é🔥"), EndChunk("stop", None, "c1", "m")]


@pytest.mark.parametrize("how", ["done", "no done", "no empty line", "cut", "open"])
async def test_an_answer_is_complete_once_its_finish_reason_is_there(
    server: StandIn, native: OpenAINativeProvider, how: str
) -> None:
    last = event(delta("stop"))
    server.answers = [
        {
            "done": text("ok"),
            "no done": stream(delta(content="ok"), last, done=False),
            "no empty line": stream(delta(content="ok"), last.rstrip(), done=False),
            "cut": stream(delta(content="ok"), last, cut=True),
            "open": stream(delta(content="ok"), last, event("[DONE]"), hang=True),
        }[how]
    ]
    async with asyncio.timeout(60):
        assert await collect(native) == [TextChunk("ok"), EndChunk("stop", None, "c1", "m")]


async def test_an_empty_stream_may_be_tried_again(server: StandIn, native: OpenAINativeProvider) -> None:
    role = delta(role="assistant", content="")
    for nothing in (stream(), stream(done=False), stream(cut=True), stream(b"data: {nonsense\n\n"), stream(role)):
        server.answers = [nothing]
        error = await failure(native)
        assert (error.retryable, error.started) == (True, False)


async def test_a_call_that_failed_before_its_first_words_is_made_again_by_the_one_who_retries(
    server: StandIn, native: OpenAINativeProvider
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    broken = stream(delta(role="assistant", content=""), {"error": {"message": "engine died"}})
    server.answers = [broken, fail(429, headers={"Retry-After": "9"}), text("ok")]
    assert written(await collect(Retrying(native, sleep=sleep))) == "ok"
    assert len(server.requests) == 3 and slept[1] >= 9


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (fail(413, "too large", content_type="text/plain"), ModelErrorCode.CONTEXT_TOO_LONG, "too large"),
        (answer_with(422, {"detail": [{"msg": "tools"}]}), ModelErrorCode.INVALID_REQUEST, "tools"),
        (answer_with(400, {"object": "error", "message": "tools"}), ModelErrorCode.INVALID_REQUEST, "tools"),
        (answer_with(400, {"error": "model is loading"}), ModelErrorCode.INVALID_REQUEST, "model is loading"),
        (answer_with(502, "", content_type="text/plain"), ModelErrorCode.SERVER, "Bad Gateway"),
        (fail(503, "<html><title>Busy</title>", content_type="text/html"), ModelErrorCode.SERVER, "'Busy'"),
        (fail(500, "x" * (1 << 20), content_type="text/plain"), ModelErrorCode.SERVER, "xxx…"),
        (fail(429, {"message": "pay", "code": "insufficient_quota"}), ModelErrorCode.RATE_LIMIT, "pay"),
        (answer_with(200, "<html>hello", content_type="text/html"), ModelErrorCode.INVALID_REQUEST, "text/html"),
        (answer_with(200, {"id": "whole"}), ModelErrorCode.INVALID_REQUEST, "application/json"),
        (answer_with(200, {"error": {"message": "slow", "code": 429}}), ModelErrorCode.RATE_LIMIT, "slow"),
    ],
)
async def test_answers_of_other_shapes_are_told(
    server: StandIn, native: OpenAINativeProvider, answer: Answerer, code: ModelErrorCode, words: str
) -> None:
    server.answers = [answer]
    error = await failure(native)
    assert error.code is code and words in f"{error} {error.words}"
    assert len(str(error)) < 1000


async def test_an_error_whose_body_never_ends_is_told_all_the_same(
    server: StandIn, native: OpenAINativeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ERROR_SECONDS", 0.2)
    server.answers = [raw(b"<html><title>Wait</title>", status=503, hang=True)]
    async with asyncio.timeout(60):
        error = await failure(native)
    assert error.code is ModelErrorCode.SERVER and "'Wait'" in error.words


@pytest.mark.parametrize(("length", "fits"), [(999, True), (1000, True), (1001, False)])
async def test_an_event_longer_than_the_limit_ends_the_answer(
    server: StandIn, plan: Plans, length: int, fits: bool
) -> None:
    client = OpenAINativeProvider(plan(base_url=server.base_url), KEY, longest_event=1000)
    short = len(event(delta(content="")).rstrip())
    server.answers = [stream(delta(content="x" * (length - short)), delta("stop"))]
    if fits:
        assert len(written(await collect(client))) == length - short
    else:
        error = await failure(client)
        assert (error.code, error.retryable) == (ModelErrorCode.SERVER, False)
    await client.aclose()


async def test_a_port_that_speaks_no_http_and_a_name_that_nobody_has_are_unreachable(plan: Plans) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as mail:
        port = mail.sockets[0].getsockname()[1]
        for base_url in (f"http://127.0.0.1:{port}/v1", f"https://127.0.0.1:{port}/v1", "http://nowhere.invalid/v1"):
            client = OpenAINativeProvider(plan(base_url=base_url), KEY)
            error = await failure(client)
            assert (error.code, error.retryable) == (ModelErrorCode.CONNECTION, True), base_url
            assert "ESMTP" not in str(error), "a library quotes what the server sent"
            await client.aclose()


@pytest.mark.parametrize("sent", [b"", b": reading the prompt\n\n", b'data: {"choices": [{"index": 0, '])
async def test_a_status_a_comment_and_half_an_event_are_signs_of_life(
    server: StandIn, native: OpenAINativeProvider, sent: bytes
) -> None:
    server.answers = [stream(*[sent] if sent else [], hang=True)]
    async with asyncio.timeout(30), aclosing(native.generate(ASK)) as chunks:
        seen = [await anext(chunks) for _ in range(2 if sent else 1)]
    assert seen == [LifeChunk()] * len(seen)


async def test_a_window_that_the_server_states_is_part_of_its_refusal(
    server: StandIn, native: OpenAINativeProvider
) -> None:
    body = {
        "code": 400,
        "message": "request (5123 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 5123,
        "n_ctx": 4096,
    }
    server.answers = [fail(400, body), stream(b"error: " + orjson.dumps(body) + b"\n\n")]
    for _ in range(2):
        error = await failure(native)
        assert (error.code, error.window, error.asked) == (ModelErrorCode.CONTEXT_TOO_LONG, 4096, 5123)
