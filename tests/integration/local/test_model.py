"""Tests the scripted model over real HTTP, with the official SDK and with raw requests."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from extras import AtFirstUse
from tarsy_dev.model import Script, ScriptedModel, parse_script
from tarsy_dev.model.journal import RequestOutcome

openai = AtFirstUse("openai")
Serve = Callable[..., Awaitable[ScriptedModel]]
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("kubernetes__list_events", "kubernetes__get_logs")
]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts models that end with the test."""
    async with AsyncExitStack() as stack:

        async def start(script: str | Script, **options: Any) -> ScriptedModel:
            parsed = parse_script(script) if isinstance(script, str) else script
            return await stack.enter_async_context(ScriptedModel(parsed, **options))

        yield start


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
        yield session


def client(model: ScriptedModel, key: str = "none") -> Any:
    return openai.AsyncOpenAI(base_url=model.base_url, api_key=key, max_retries=0, timeout=60)


def conversation(agent: str | None = "a", turns: int = 0) -> list[Any]:
    system = f"You investigate.\nAgent: {agent}\n" if agent else "You investigate."
    talk = [{"role": "assistant", "content": "x"}, {"role": "user", "content": "go on"}] * turns
    return [{"role": "system", "content": system}, {"role": "user", "content": "alert"}, *talk]


async def ask(model: ScriptedModel, **options: Any) -> str:
    """The text of a streamed answer."""
    chunks = await stream(model, **options)
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


async def stream(model: ScriptedModel, *, agent: str | None = "a", turns: int = 0, **options: Any) -> list[Any]:
    async with client(model) as sdk:
        answer = await sdk.chat.completions.create(
            model="m", messages=conversation(agent, turns), stream=True, **options
        )
        return [chunk async for chunk in answer]


async def test_a_streamed_answer_with_thinking_text_and_calls_as_the_sdk_sees_it(serve: Serve) -> None:
    model = await serve("""
agents:
  a:
    - thinking: hm hm
      text: I look at both.
      calls:
        - {name: kubernetes.list_events, arguments: {namespace: shop}}
        - {name: kubernetes.get_logs, arguments: {namespace: shop, pod: "checkout-6f7d9c8b54-k8x2p", previous: true}}
""")
    chunks = await stream(model, tools=TOOLS, stream_options={"include_usage": True})
    assert chunks[0].choices[0].delta.role == "assistant"
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "hm hm"
    assert "".join(delta.content or "" for delta in deltas) == "I look at both."
    pieces = [call for delta in deltas for call in delta.tool_calls or ()]
    assert [(p.index, p.function.name) for p in pieces if p.id] == [
        (0, "kubernetes__list_events"),
        (1, "kubernetes__get_logs"),
    ]
    assert "".join(p.function.arguments for p in pieces if p.index == 0) == '{"namespace":"shop"}'
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "tool_calls"
    assert not chunks[-1].choices and chunks[-1].usage.completion_tokens == model.journal.requests[0].chunks
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_the_sdks_own_accumulation_gives_the_whole_calls(serve: Serve) -> None:
    model = await serve("agents: {a: [{calls: [{name: kubernetes.get_logs, arguments: {pod: p}}]}]}")
    async with client(model) as sdk:
        async with sdk.chat.completions.stream(model="m", messages=conversation(), tools=TOOLS) as events:
            whole = await events.get_final_completion()
    [call] = whole.choices[0].message.tool_calls or []
    assert (call.function.name, call.function.arguments) == ("kubernetes__get_logs", '{"pod":"p"}')


async def test_usage_is_sent_only_to_those_who_ask(serve: Serve) -> None:
    model = await serve("agents: {a: [{text: one two}]}")
    assert all(chunk.choices and chunk.usage is None for chunk in await stream(model))


async def test_an_answer_in_one_piece(serve: Serve) -> None:
    model = await serve("agents: {a: [{text: one two, usage: {prompt_tokens: 7, cached_tokens: 3}}]}")
    async with client(model) as sdk:
        answer = await sdk.chat.completions.create(model="m", messages=conversation())
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("one two", "stop")
    assert answer.usage and (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 2)


async def test_the_wire_is_server_sent_events_that_end_with_done(serve: Serve, http: aiohttp.ClientSession) -> None:
    model = await serve("agents: {a: [{text: hi}]}")
    body = {"model": "m", "messages": conversation(), "stream": True}
    async with http.post(f"{model.base_url}/chat/completions", json=body) as response:
        lines = (await response.text()).split("\n\n")
        assert response.content_type == "text/event-stream"
    assert lines[-2:] == ["data: [DONE]", ""] and all(line.startswith("data: {") for line in lines[:-2])


async def test_asking_the_same_turn_again_gives_the_same_answer(serve: Serve) -> None:
    model = await serve("agents: {a: [{text: zero}, {text: one}]}")
    assert [await ask(model, turns=turns) for turns in (1, 1, 0, 1)] == ["one", "one", "zero", "one"]


async def test_by_order_each_request_takes_the_next_and_repeat_keeps_the_last(serve: Serve) -> None:
    model = await serve("agents: {a: {by: order, repeat: last, entries: [{text: zero}, {text: one}]}}")
    assert [await ask(model) for _ in range(4)] == ["zero", "one", "one", "one"]


async def test_agents_without_a_script_take_the_next_of_the_sequence(serve: Serve) -> None:
    model = await serve("{agents: {a: [{text: mine}]}, sequential: [{text: first}, {text: second}]}")
    assert [await ask(model, agent=agent) for agent in ("b", "a", None)] == ["first", "mine", "second"]


@pytest.mark.parametrize(
    ("script", "agent", "sentence"),
    [
        ("agents: {a: [{text: x}]}", "a", "agents.a ran out: a asks for answer of turn 1, and there are 1"),
        ("agents: {a: [{text: x}]}", "b", "no answers for agent b"),
        ("{}", None, "without the line `Agent: NAME`"),
    ],
)
async def test_a_script_that_ran_out_says_whose_it_was(serve: Serve, script: str, agent: str, sentence: str) -> None:
    model = await serve(script)
    with pytest.raises(openai.InternalServerError, match=sentence):
        await ask(model, agent=agent, turns=1)


async def test_an_error_has_the_scripted_status_headers_and_body_for_the_first_requests(serve: Serve) -> None:
    model = await serve("""
agents:
  a:
    - text: at last
      error: {status: 429, message: slow down, code: rate_limit_exceeded, headers: {Retry-After: "3"}, times: 2}
""")
    for _ in range(2):
        with pytest.raises(openai.RateLimitError, match="slow down") as refused:
            await ask(model)
        assert refused.value.response.headers["retry-after"] == "3"
        assert refused.value.code == "rate_limit_exceeded"
    assert await ask(model) == "at last"
    assert [served.status for served in model.journal.requests] == [429, 429, 200]


async def test_an_error_may_have_a_body_that_is_no_json(serve: Serve, http: aiohttp.ClientSession) -> None:
    model = await serve("sequential: [{error: {status: 502, body: <html>bad gateway</html>}}]")
    async with http.post(f"{model.base_url}/chat/completions", json={"messages": []}) as response:
        assert (response.status, await response.text()) == (502, "<html>bad gateway</html>")


async def test_an_error_in_mid_stream_is_an_event(serve: Serve) -> None:
    model = await serve("agents: {a: [{text: one two three, error: {after: 2, message: lost my mind}}]}")
    with pytest.raises(openai.APIError, match="lost my mind"):
        await ask(model)
    assert model.journal.requests[0].chunks == 2


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_cut_closes_the_connection_before_the_answer_is_whole(
    serve: Serve, http: aiohttp.ClientSession, streaming: bool
) -> None:
    model = await serve("agents: {a: [{text: one two three, cut: {after: 2}}]}")
    body = {"messages": conversation(), "stream": streaming}
    received = b""
    with pytest.raises(aiohttp.ClientPayloadError):
        async with http.post(f"{model.base_url}/chat/completions", json=body) as response:
            async for data in response.content.iter_any():
                received += data
    assert (b'"content":"one"' in received and b'" two"' in received) is streaming
    assert b"three" not in received and b"DONE" not in received
    assert model.journal.requests[0].outcome is RequestOutcome.CUT


async def test_a_cut_instead_of_an_answer_is_a_connection_error(serve: Serve) -> None:
    model = await serve("agents: {a: [{cut: true}]}")
    with pytest.raises(openai.APIConnectionError):
        await ask(model)


async def test_a_malformed_chunk_is_in_the_middle_of_a_stream_that_goes_on(
    serve: Serve, http: aiohttp.ClientSession
) -> None:
    model = await serve("agents: {a: [{text: one two, malformed: {after: 1}}]}")
    async with http.post(
        f"{model.base_url}/chat/completions", json={"messages": conversation(), "stream": True}
    ) as response:
        events = (await response.text()).split("\n\n")
    assert events[2].endswith('"del') and events[-2] == "data: [DONE]"
    with pytest.raises(ValueError):
        await ask(model)


@pytest.mark.parametrize("entry", ["hang: true", "{text: one two, hang: {after: 1}}"])
async def test_a_hang_lasts_until_its_client_goes_away(serve: Serve, entry: str) -> None:
    model = await serve(f"agents: {{a: [{entry if entry[0] == '{' else '{' + entry + '}'}]}}")
    task = asyncio.create_task(ask(model))
    await model.journal.wait_for(lambda requests: len(requests) == 1, 60)
    assert not (await asyncio.wait([task], timeout=0.2))[0]
    task.cancel()
    await model.journal.wait_for(lambda requests: requests[0].outcome is RequestOutcome.DISCONNECTED, 60)


async def test_a_gate_holds_the_answer_back_until_it_is_opened(serve: Serve, http: aiohttp.ClientSession) -> None:
    model = await serve("agents: {a: [{text: through, gate: g}]}")
    control = model.base_url.removesuffix("/v1") + "/control"
    task = asyncio.create_task(ask(model))
    async with http.get(f"{control}/requests?wait=1") as response:
        [request] = await response.json()
    assert (request["gate"], request["outcome"]) == ("g", "pending")
    assert not (await asyncio.wait([task], timeout=0.1))[0]
    async with http.post(f"{control}/gates/g") as response:
        assert response.status == 204
    assert await task == "through"
    assert await ask(model) == "through"


async def test_delays_follow_a_schedule(serve: Serve) -> None:
    model = await serve("{first_token_ms: 100, per_token_ms: 5, agents: {a: [{tokens: 41}]}}")
    start = time.monotonic()
    await ask(model)
    assert time.monotonic() - start >= 0.3


async def test_the_key_is_asked_for_in_openais_words(serve: Serve) -> None:
    model = await serve("agents: {a: [{text: hi}]}", api_key="sesame")
    with pytest.raises(openai.AuthenticationError) as refused:
        await ask(model)
    assert refused.value.code == "invalid_api_key"
    async with client(model, "sesame") as sdk:
        assert [m.id async for m in sdk.models.list()] == ["scripted"]
        await sdk.chat.completions.create(model="m", messages=conversation())
    assert "sesame" not in str([served.as_dict() for served in model.journal.requests])


async def test_the_journal_tells_who_asked_what_and_what_it_cost(serve: Serve, http: aiohttp.ClientSession) -> None:
    model = await serve("agents: {a: [{text: x}, {text: one two three}]}")
    await ask(model, turns=1, tools=TOOLS)
    control = model.base_url.removesuffix("/v1") + "/control/requests"
    async with http.get(control) as response:
        [request] = await response.json()
    assert (request["agent"], request["turn"], request["entry"]) == ("a", 1, "agents.a[1]")
    assert request["tools"] == ["kubernetes__list_events", "kubernetes__get_logs"]
    assert request["messages"][1] == {"role": "user", "content": "alert"}
    assert (request["outcome"], request["usage"]["completion_tokens"]) == ("finished", 3)
    assert request["usage"]["prompt_tokens"] > 1 and request["ended"] >= request["received"]
    assert "authorization" not in request["headers"] and "user-agent" in request["headers"]
    async with http.delete(control) as response:
        assert response.status == 204
    async with http.get(f"{control}?wait=1&seconds=0.05") as response:
        assert (response.status, await response.json()) == (408, [])


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"messages": 1}', b'{"messages": ["x"]}'])
async def test_a_request_that_is_none_is_refused(serve: Serve, http: aiohttp.ClientSession, body: bytes) -> None:
    model = await serve("{}")
    async with http.post(f"{model.base_url}/chat/completions", data=body) as response:
        assert (response.status, (await response.json())["error"]["type"]) == (400, "invalid_request_error")


async def test_stop_ends_requests_that_hang(serve: Serve) -> None:
    model = await serve("agents: {a: [{hang: true}]}")
    task = asyncio.create_task(ask(model))
    await model.journal.wait_for(lambda requests: len(requests) == 1, 60)
    async with asyncio.timeout(60):
        await model.stop()
        with pytest.raises(openai.APIConnectionError):
            await task


async def test_a_process_of_its_own_serves_a_file_until_it_is_told_to_end(
    tmp_path: Path, http: aiohttp.ClientSession
) -> None:
    (tmp_path / "script.yaml").write_text("agents: {a: [{text: hi}]}")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tarsy_dev.model", "--script", str(tmp_path / "script.yaml"), "--key-env", "KEY"),
        env={**os.environ, "KEY": "sesame"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    base_url = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
    async with http.get(f"{base_url}/models") as response:
        assert response.status == 401
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 60) == 0


async def test_a_process_with_a_wrong_script_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("agents: {a: [{txt: hi}]}")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tarsy_dev.model", "--script", str(tmp_path / "script.yaml")),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1 and b"agents.a.entries.0.txt" in said
