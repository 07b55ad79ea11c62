"""The scripted client behaves as a provider does."""

import asyncio

import pytest

from tarsy.llm.protocol import (
    Chunk,
    CodeExecutionChunk,
    EndChunk,
    GenerateRequest,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.record.messages import ToolCall
from tarsy.record.usage import Usage
from wire.scripted_client import Answer, ByAgent, ScriptedClient, ScriptExhausted

REQUEST = GenerateRequest(messages=(), agent="triage")
CALL = ToolCall("1", "k.get", "{}")
CODE = CodeExecutionChunk("print(1)", "1", "python")
SIGNED = {"signature": "AAEC"}


async def collect(client: ScriptedClient, request: GenerateRequest = REQUEST) -> list[Chunk]:
    return [chunk async for chunk in client.generate(request)]


async def test_an_answer_is_thinking_text_calls_usage_and_the_end_in_this_order() -> None:
    client = ScriptedClient([Answer("two words", "hm", (CALL,), (CODE,), Usage(input_tokens=1), provider_state=SIGNED)])
    assert await collect(client) == [
        ThinkingChunk("hm"),
        CODE,
        TextChunk("two "),
        TextChunk("words"),
        ToolCallChunk(CALL),
        UsageChunk(Usage(input_tokens=1)),
        EndChunk("tool_calls", SIGNED),
    ]
    assert client.requests == [REQUEST]


async def test_a_function_sees_the_request_it_answers() -> None:
    client = ScriptedClient(lambda request: Answer(request.agent))
    assert await collect(client) == [TextChunk("triage"), EndChunk("stop")]


async def test_a_cut_answer_has_no_end_and_an_error_comes_after_the_text() -> None:
    error = ModelError(ModelErrorCode.SERVER, "down", retryable=True)
    client = ScriptedClient([Answer("x", cut=True), Answer("y", error=error)])
    assert await collect(client) == [TextChunk("x")]
    seen = []
    with pytest.raises(ModelError) as raised:
        async for chunk in client.generate(REQUEST):
            seen.append(chunk)
    assert raised.value is error and seen == [TextChunk("y")]


async def test_an_answer_that_waits_hangs_until_its_event() -> None:
    event = asyncio.Event()
    client = ScriptedClient([Answer("x", wait=event)])
    task = asyncio.ensure_future(collect(client))
    done, _ = await asyncio.wait({task}, timeout=0.01)
    assert not done
    event.set()
    assert await task == [TextChunk("x"), EndChunk("stop")]


async def test_a_script_that_is_used_up_says_who_asked() -> None:
    with pytest.raises(ScriptExhausted, match="triage"):
        await collect(ScriptedClient([]))


async def test_each_execution_of_an_agent_gets_its_answers_from_the_first_on_and_the_others_share_theirs() -> None:
    client = ScriptedClient(ByAgent({"triage": [Answer("one"), Answer("two")]}, [Answer("red"), Answer("blue")]))
    asked = [("triage", "a"), ("probe", "c"), ("triage", "b"), ("triage", "a"), ("other", "d")]
    said = [await collect(client, GenerateRequest((), execution=e, agent=a)) for a, e in asked]
    texts = [chunk.text for chunks in said for chunk in chunks if isinstance(chunk, TextChunk)]
    assert texts == ["one", "red", "one", "two", "blue"]
    with pytest.raises(ScriptExhausted, match="triage"):
        await collect(client, GenerateRequest((), execution="a", agent="triage"))
