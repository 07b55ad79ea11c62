"""What every provider does, whatever its API: the same scripted conversation gives the same chunks.

The real clients talk to a real server on loopback (`wire.server`) that speaks each API's own format.
"""

import asyncio
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from itertools import groupby

import pytest

from integration.llm.apis import APIS, Api
from integration.llm.asking import content
from integration.llm.conftest import KEY
from tarsy.llm.message_forms import MessageForms
from tarsy.llm.protocol import (
    ActivityChunk,
    Chunk,
    EndChunk,
    GenerateRequest,
    LLMClient,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.llm.registry import build_client
from tarsy.plan.model import ProviderPlan
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition
from tarsy.record.usage import Usage
from wire.server import Said, StandIn, hang

Plans = Callable[..., ProviderPlan]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOLS = [ToolDefinition("kubernetes.get", "Gets.", SCHEMA), ToolDefinition("kube.pods/log: für alle", "Logs.", SCHEMA)]
CALLS = (ToolCall("c1", TOOLS[0].name, '{"name":"wéb"}'), ToolCall("c2", TOOLS[1].name, '{"name":"api"}'))
USAGE = Usage(input_tokens=9, output_tokens=7, thinking_tokens=4, cached_tokens=2)
THOUGHT = ("Memory? ", "Or 🔥?")
QUESTION = [Message(Role.SYSTEM, "You investigate."), Message(Role.USER, "why?")]
ASK = GenerateRequest(QUESTION, TOOLS, execution="e1")
pytestmark = [
    pytest.mark.parametrize("api", APIS, ids=str),
    pytest.mark.sweep("other providers; tests of each are beside it"),
]


@pytest.fixture(autouse=True)
def package(api: Api) -> None:
    """Skips a provider whose extra is not installed here."""
    if api.package:
        pytest.importorskip(api.package)


@pytest.fixture
async def client(api: Api, server: StandIn, plan: Plans) -> AsyncIterator[LLMClient]:
    made = build_client(plan(type=api.type, backend=api.backend, base_url=server.base_url, **api.fields), KEY)
    yield made
    await made.aclose()


async def collect(client: LLMClient, request: GenerateRequest = ASK) -> list[Chunk]:
    """All chunks, with text and thinking in one piece however they were cut, but for signs of life."""
    chunks: list[Chunk] = []
    async with asyncio.timeout(60), aclosing(content(client.generate(request))) as stream:
        parts = [chunk async for chunk in stream if not isinstance(chunk, ActivityChunk)]
    for kind, group in groupby(parts, type):
        same = list(group)
        if kind in (TextChunk, ThinkingChunk):
            chunks.append(kind("".join(chunk.text for chunk in same)))
        else:
            chunks += same
    return chunks


async def failure(client: LLMClient) -> tuple[ModelError, str]:
    """The error of a call, and the text before it; what it says may be shown to people."""
    text = ""
    with pytest.raises(ModelError) as raised:
        async with asyncio.timeout(60):
            async for chunk in client.generate(ASK):
                text += chunk.text if isinstance(chunk, TextChunk) else ""
    report = "".join(traceback.format_exception(raised.value))
    assert KEY not in report and raised.value.__context__ is None and raised.value.__cause__ is None
    assert "provider house-model (model gpt-x)" in str(raised.value)
    return raised.value, text


async def test_a_conversation_gives_the_same_chunks(api: Api, server: StandIn, client: LLMClient) -> None:
    server.answers = [
        api.said(Said(("Look", "ing. "), THOUGHT, CALLS, USAGE)),
        api.said(Said(("Out of ", "memory."), usage=USAGE)),
    ]
    thought = [ThinkingChunk("".join(THOUGHT))] if api.thinks else []
    first = await collect(client)
    assert first[:-1] == [*thought, TextChunk("Looking. "), *map(ToolCallChunk, CALLS), UsageChunk(USAGE)]
    end = first[-1]
    assert isinstance(end, EndChunk)
    conversation = [
        *QUESTION,
        Message(Role.ASSISTANT, "Looking. ", tool_calls=CALLS, provider_state=end.provider_state),
        *(Message(Role.TOOL, f"found {c.id}", tool_call_id=c.id, tool_name=c.name) for c in CALLS),
    ]
    second = await collect(client, GenerateRequest(conversation, TOOLS, execution="e1"))
    assert second[:-1] == [TextChunk("Out of memory."), UsageChunk(USAGE)] and isinstance(second[-1], EndChunk)
    sent = server.bodies[1].decode()
    assert all(text in sent for text in ("why?", "Looking. ", "found c1", "found c2", "Gets."))
    assert sent.index("Looking. ") < sent.index("found c1") < sent.index("found c2")
    assert KEY not in sent + str(server.paths)


async def test_a_request_is_the_same_whatever_was_made_of_its_conversation_before(
    api: Api, server: StandIn, client: LLMClient
) -> None:
    answer = api.said(Said(("Look", "ing. "), THOUGHT, CALLS, USAGE))
    server.answers = [answer] * 9
    end = (await collect(client))[-1]
    assert isinstance(end, EndChunk)
    said = Message(Role.ASSISTANT, "Looking. ", tool_calls=CALLS, provider_state=end.provider_state)
    found = [Message(Role.TOOL, f"found {c.id}", tool_call_id=c.id, tool_name=c.name) for c in CALLS]
    grown = [*QUESTION, said, *found, said, *found]
    shortened = [*QUESTION, replace(said, content="L"), replace(found[0], content="f"), *grown[4:]]

    forms = MessageForms()
    for conversation in (QUESTION, grown[:5], grown, shortened):
        for kept in (forms, MessageForms()):
            await collect(client, GenerateRequest(conversation, TOOLS, execution="e1", forms=kept))

    assert server.bodies[1::2] == server.bodies[2::2]


async def test_pieces_of_a_tool_call_are_signs_of_life(api: Api, server: StandIn, client: LLMClient) -> None:
    server.answers = [api.said(Said(("Looking.",), calls=CALLS))]
    async with asyncio.timeout(60), aclosing(content(client.generate(ASK))) as stream:
        kinds = [type(chunk) async for chunk in stream]
    assert ActivityChunk in kinds[: kinds.index(ToolCallChunk)]
    server.answers = [api.said(Said(("ok",)))]
    assert ActivityChunk not in [type(chunk) for chunk in [c async for c in content(client.generate(ASK))]]


async def test_usage_that_is_not_reported_is_not_invented(api: Api, server: StandIn, client: LLMClient) -> None:
    server.answers = [api.said(Said(("ok",)))]
    assert [type(chunk) for chunk in await collect(client)] == [TextChunk, EndChunk]


async def test_text_is_handed_on_as_it_comes(api: Api, server: StandIn, client: LLMClient) -> None:
    more = asyncio.Event()
    server.answers = [api.half(more, cut=True)]
    async with asyncio.timeout(30), aclosing(content(client.generate(ASK))) as chunks:
        assert await anext(chunks) == TextChunk("half")
        more.set()
        with pytest.raises(ModelError):
            await anext(chunks)


@pytest.mark.parametrize(
    ("status", "words", "code", "retryable"),
    [
        (401, f"bad key {KEY}", ModelErrorCode.CREDENTIALS, False),
        (403, "not yours", ModelErrorCode.CREDENTIALS, False),
        (404, "no such model", ModelErrorCode.NOT_FOUND, False),
        (400, "bad schema", ModelErrorCode.INVALID_REQUEST, False),
        (400, "the maximum context length is 8", ModelErrorCode.CONTEXT_TOO_LONG, False),
        (413, "too large", ModelErrorCode.CONTEXT_TOO_LONG, False),
        (429, "slow down", ModelErrorCode.RATE_LIMIT, True),
        (500, "oops", ModelErrorCode.SERVER, True),
        (503, "busy", ModelErrorCode.SERVER, True),
        (529, "overloaded", ModelErrorCode.SERVER, True),
    ],
)
async def test_refusals_are_one_request_classified_and_the_servers_words_are_for_the_trace(
    api: Api, server: StandIn, client: LLMClient, status: int, words: str, code: ModelErrorCode, retryable: bool
) -> None:
    server.answers = [api.fail(status, words, {"Retry-After": "7"})]
    error, _ = await failure(client)
    assert (error.code, error.retryable, error.started) == (code, retryable, False)
    assert error.retry_after == (7.0 if retryable else None)
    assert error.words == words.replace(KEY, "[key]")
    assert f"answered {status}" in str(error) and "in the trace" in str(error) and words not in str(error)
    assert len(server.bodies) == 1


async def test_a_stream_cut_in_the_middle_is_partial(api: Api, server: StandIn, client: LLMClient) -> None:
    for rest in (api.half(cut=True), api.half(), api.half(api.garbage)):
        server.answers = [rest]
        error, text = await failure(client)
        assert (error.code, error.started, text) == (ModelErrorCode.PARTIAL_STREAM, True, "half")


async def test_the_words_of_an_error_in_the_middle_are_for_the_trace(
    api: Api, server: StandIn, client: LLMClient
) -> None:
    server.answers = [api.half(api.broken(f"engine died, key {KEY}"))]
    error, text = await failure(client)
    assert (error.code, error.started, text) == (ModelErrorCode.SERVER, True, "half")
    assert "engine died, key [key]" in error.words and "engine died" not in str(error)


async def test_nobody_there_is_unreachable_and_may_be_tried_again(
    api: Api, server: StandIn, plan: Plans, unused_tcp_port: int
) -> None:
    made = build_client(
        plan(type=api.type, backend=api.backend, base_url=f"http://127.0.0.1:{unused_tcp_port}/v1", **api.fields), KEY
    )
    error, _ = await failure(made)
    assert (error.code, error.retryable, error.started) == (ModelErrorCode.CONNECTION, True, False)
    await made.aclose()


@pytest.mark.parametrize("half", [False, True], ids=["nothing", "half"])
async def test_cancelling_closes_the_connection_at_once(
    api: Api, server: StandIn, client: LLMClient, half: bool
) -> None:
    server.answers = [api.said(Said(("warm",))), api.half(hang=True) if half else hang]
    await collect(client)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            async for _ in client.generate(ASK):
                pass
    async with asyncio.timeout(60):
        await server.left.wait()


async def test_a_consumer_that_walks_away_closes_the_connection(api: Api, server: StandIn, client: LLMClient) -> None:
    server.answers = [api.half(hang=True)]
    async with aclosing(content(client.generate(ASK))) as chunks:
        assert await anext(chunks) == TextChunk("half")
    async with asyncio.timeout(60):
        await server.left.wait()


async def test_calls_of_one_provider_share_a_connection(api: Api, server: StandIn, client: LLMClient) -> None:
    server.answers = [api.said(Said(("ok",), calls=CALLS, usage=USAGE))]
    for _ in range(3):
        await collect(client)
    assert len(server.peers) == 1


async def test_neither_redirects_nor_the_environment_take_the_key_elsewhere(
    api: Api, server: StandIn, client: LLMClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    server.answers = [api.fail(307, "elsewhere", {"Location": f"{server.url}/elsewhere"}), api.said(Said(("ok",)))]
    error, _ = await failure(client)
    assert error.code is ModelErrorCode.INVALID_REQUEST and "spec.baseURL" in str(error)
    assert len(server.bodies) == 1


async def test_a_client_shows_no_key(api: Api, client: LLMClient) -> None:
    assert KEY not in repr(client) + str(client)


async def test_tools_that_may_not_be_called_go_out_as_before(api: Api, server: StandIn, client: LLMClient) -> None:
    server.answers = [api.said(Said(("Done.",)))]

    await collect(client)
    await collect(client, replace(ASK, may_call=False))

    free, bound = server.requests
    assert free["tools"] == bound["tools"] and len(free["tools"]) >= 1
    mode = bound.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode")
    assert bound.get("tool_choice") in ("none", {"type": "none"}) or mode == "NONE"
    assert not free.get("tool_choice") and not free.get("toolConfig")


async def test_stops_go_to_models_that_take_them(api: Api, server: StandIn, client: LLMClient) -> None:
    server.answers = [api.said(Said(("Thought: x",)))]

    await collect(client)
    await collect(client, replace(ASK, stop=("\nObservation:",)))

    assert ["Observation:" in body.decode() for body in server.bodies] == [False, api.type != "xai"]
