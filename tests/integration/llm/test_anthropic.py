"""What is Claude's own, on the wire: its blocks and their signatures, its rules for conversations. The SDK is real."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from extras import needs
from integration.llm.asking import ASK, GET, QUESTION, SCHEMA, collect, failure, results, turn
from integration.llm.conftest import KEY, making
from tarsy.llm.cache_marks import MOST_MARKS
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
from tarsy.llm.providers.anthropic import ANTHROPIC_CHAT
from tarsy.plan.model import ProviderPlan
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition
from tarsy.record.usage import Usage
from wire import anthropic, openai
from wire.server import StandIn

pytestmark = needs("langchain_anthropic")
Code = ModelErrorCode
CALLS = (ToolCall("toolu_1", GET.name, '{"a": "x"}'), ToolCall("toolu_2", GET.name, "{}"))
Make = Callable[..., LangChainProvider]


@pytest.fixture
async def make(server: StandIn, plan: Callable[..., ProviderPlan]) -> AsyncIterator[Make]:
    fields = {"type": "anthropic", "model": "claude-sonnet-4-6", "base_url": server.url}
    async with making(partial(LangChainProvider, chat=ANTHROPIC_CHAT), plan, **fields) as build:
        yield build


async def asked(server: StandIn, client: LangChainProvider, request: GenerateRequest = ASK) -> dict[str, Any]:
    server.answers = [anthropic.stream(anthropic.text(0, "ok"), anthropic.end())]
    await collect(client, request)
    sent: dict[str, Any] = server.requests[-1]
    return sent


async def thought(server: StandIn, client: LangChainProvider) -> list[Chunk]:
    """An answer that thinks, partly unseen, says something, calls a tool, thinks again and calls another."""
    server.answers = [
        anthropic.stream(
            anthropic.thinking(0, "Two ", "pods.", signature="c2lnMQ=="),
            anthropic.redacted(1, "b3BhcXVl"),
            anthropic.text(2, "I ", "look."),
            anthropic.call(3, CALLS[0]),
            anthropic.thinking(4, "Both.", signature="c2lnMg=="),
            anthropic.call(5, CALLS[1]),
            anthropic.end("tool_use", Usage(input_tokens=20, output_tokens=9, thinking_tokens=4, cached_tokens=7)),
        )
    ]
    return await collect(client)


async def test_everything_claude_does_becomes_its_chunk(server: StandIn, make: Make) -> None:
    chunks = await thought(server, make(thinking={"budget": 2048}))
    assert chunks[:-1] == [
        ThinkingChunk("Two "),
        ThinkingChunk("pods."),
        TextChunk("I "),
        TextChunk("look."),
        ThinkingChunk("Both."),
        *map(ToolCallChunk, CALLS),
        UsageChunk(Usage(input_tokens=20, output_tokens=9, thinking_tokens=4, cached_tokens=7)),
    ]
    assert isinstance(chunks[-1], EndChunk) and chunks[-1].finish_reason == "tool_calls"


async def test_the_next_process_sends_the_answer_back_block_by_block(server: StandIn, make: Make) -> None:
    message = turn(await thought(server, make(thinking={"budget": 2048})))
    again = make(thinking={"budget": 2048}, cache_marks=False)
    sent = await asked(server, again, GenerateRequest([*QUESTION, message, *results(message)], [GET]))
    assert sent["system"] == "You investigate."
    user, assistant, tools = sent["messages"]
    assert user == {"role": "user", "content": "why?"}
    assert assistant == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Two pods.", "signature": "c2lnMQ=="},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "kubernetes__get", "input": {"a": "x"}},
            {"type": "thinking", "thinking": "Both.", "signature": "c2lnMg=="},
            {"type": "tool_use", "id": "toolu_2", "name": "kubernetes__get", "input": {}},
        ],
    }
    assert tools["role"] == "user"
    assert [(block["type"], block["tool_use_id"], block["content"]) for block in tools["content"]] == [
        ("tool_result", "toolu_1", "found toolu_1"),
        ("tool_result", "toolu_2", "found toolu_2"),
    ]
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": 2048}


async def test_text_that_was_shortened_and_calls_that_were_not_taken_are_sent_as_they_are_now(
    server: StandIn, make: Make
) -> None:
    client = make(thinking={"budget": 2048})
    message = turn(await thought(server, client), content="short", tool_calls=CALLS[:1])
    sent = await asked(server, client, GenerateRequest([*QUESTION, message, *results(message)], [GET]))
    blocks = sent["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["thinking", "redacted_thinking", "text", "tool_use", "thinking"]
    assert blocks[2]["text"] == "short"


async def test_another_models_thinking_is_not_sent(server: StandIn, make: Make) -> None:
    message = turn(await thought(server, make(thinking={"budget": 2048})))
    request = GenerateRequest([*QUESTION, message, *results(message)], [GET])
    other = await asked(server, make("claude-opus-4-5", thinking={"budget": 2048}), request)
    assert anthropic.thoughts(other) == []
    assert other["thinking"] == {"type": "disabled"}, "Claude refuses to think in a turn begun without its thinking"
    asked_anew = GenerateRequest([*request.messages, Message(Role.ASSISTANT, "Done."), Message(Role.USER, "More?")])
    thinks = await asked(server, make("claude-opus-4-5", thinking={"budget": 2048}), asked_anew)
    assert thinks["thinking"]["type"] == "enabled"
    adaptive = await asked(server, make("claude-opus-5"), request)
    assert anthropic.thoughts(adaptive) == [] and adaptive["thinking"]["type"] == "adaptive"


@pytest.mark.parametrize(
    ("model", "thinking", "sent"),
    [
        ("claude-sonnet-4-6", None, (None, None)),
        ("claude-sonnet-4-6", {"budget": 4096}, ({"type": "enabled", "budget_tokens": 4096}, None)),
        ("claude-sonnet-4-6", {"budget": 0}, ({"type": "disabled"}, None)),
        ("claude-opus-4-5", {"effort": "low"}, (None, "low")),
        ("claude-opus-5", None, ({"type": "adaptive", "display": "summarized"}, None)),
        ("claude-sonnet-5", {"effort": "xhigh"}, ({"type": "adaptive", "display": "summarized"}, "xhigh")),
        ("claude-opus-5", {"effort": "none"}, ({"type": "disabled"}, None)),
        ("house-claude", {"effort": "max"}, (None, "max")),
    ],
)
async def test_thinking_is_asked_for_in_the_models_own_measure(
    server: StandIn, make: Make, model: str, thinking: Any, sent: Any
) -> None:
    body = await asked(server, make(model, thinking=thinking))
    assert (body.get("thinking"), body.get("output_config", {}).get("effort")) == sent


@pytest.mark.parametrize(
    ("fields", "most"),
    [
        ({"model": "claude-sonnet-4-6"}, 128_000),
        ({"model": "house-claude"}, 16_384),
        ({"model": "house-claude", "thinking": {"budget": 20_000}}, 36_384),
        ({"model": "claude-sonnet-4-6", "max_output_tokens": 512}, 512),
    ],
)
async def test_the_answer_has_room_beside_its_thinking(server: StandIn, make: Make, fields: Any, most: int) -> None:
    assert (await asked(server, make(**fields)))["max_tokens"] == most


async def test_schemas_go_untouched(server: StandIn, make: Make) -> None:
    sent = await asked(server, make(cache_marks=False))
    assert sent["tools"] == [{"name": "kubernetes__get", "description": "Gets.", "input_schema": SCHEMA}]


async def test_tools_stay_declared_while_the_conversation_shows_calls(server: StandIn, make: Make) -> None:
    message = Message(Role.ASSISTANT, "", CALLS)
    conversation = [*QUESTION, message, *results(message), Message(Role.USER, "Conclude.")]
    sent = await asked(server, make(), GenerateRequest(conversation))
    assert [tool["name"] for tool in sent["tools"]] == ["kubernetes__get"]
    assert sent["tool_choice"] == {"type": "none"}
    assert [block["type"] for block in sent["messages"][2]["content"]] == ["tool_result", "tool_result", "text"]


async def test_a_conversation_is_made_such_as_claude_takes(server: StandIn, make: Make) -> None:
    conversation = [
        Message(Role.ASSISTANT, "Earlier."),
        Message(Role.SYSTEM, "One."),
        Message(Role.USER, " "),
        Message(Role.ASSISTANT, " \n"),
        Message(Role.SYSTEM, "Two."),
        Message(Role.ASSISTANT, "", (ToolCall("call:1", "a.b", "{oops"),)),
        Message(Role.TOOL, "", tool_call_id="call:1", tool_name="a.b"),
    ]
    sent = await asked(server, make(), GenerateRequest(conversation, [GET]))
    assert [block["text"] for block in sent["system"]] == ["One.\n\nTwo."]
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert all(message["content"] and message["content"] != " " for message in sent["messages"])
    (called,), (result,) = sent["messages"][3]["content"], sent["messages"][4]["content"]
    assert called["input"] == {"malformed_arguments": "{oops"}
    assert called["id"] == result["tool_use_id"] and ":" not in called["id"]


async def test_the_key_goes_as_its_own_api_and_gateways_want_it_and_nothing_else_goes(
    server: StandIn, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-leak: 1\nanthropic-version: 1999-01-01")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    await asked(server, make())
    headers = server.headers[-1]
    assert headers["authorization"] == f"Bearer {KEY}" and headers["x-api-key"] == KEY
    assert headers["anthropic-version"] == "2026-10-21" and "x-leak" not in headers
    await asked(server, make(key=None, base_url=f"{server.url}/v1/"))
    assert not {"authorization", "x-api-key"} & server.headers[-1].keys()
    assert server.paths == ["/v1/messages"] * 2


@pytest.mark.parametrize(
    ("reason", "finish"), [("end_turn", "stop"), ("max_tokens", "length"), ("pause_turn", "pause_turn")]
)
async def test_why_an_answer_ended_is_told(server: StandIn, make: Make, reason: str, finish: str) -> None:
    server.answers = [anthropic.stream(anthropic.text(0, "ok"), anthropic.end(reason))]
    end = (await collect(make()))[-1]
    assert isinstance(end, EndChunk) and (end.finish_reason, end.provider_state) == (finish, None)


async def test_a_refusal_is_the_content_filter(server: StandIn, make: Make) -> None:
    server.answers = [anthropic.stream(anthropic.text(0, "I"), anthropic.end("refusal"))]
    error = await failure(make())
    assert (error.code, error.retryable) == (Code.CONTENT_FILTER, False)


@pytest.mark.parametrize(
    ("kind", "words", "code", "retryable"),
    [
        ("overloaded_error", "Overloaded", Code.SERVER, True),
        ("rate_limit_error", "slow down", Code.RATE_LIMIT, True),
        ("authentication_error", "who?", Code.CREDENTIALS, False),
        ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", Code.CONTEXT_TOO_LONG, False),
        ("invalid_request_error", "max_tokens: too many", Code.INVALID_REQUEST, False),
    ],
)
async def test_an_error_event_says_its_type(
    server: StandIn, make: Make, kind: str, words: str, code: Code, retryable: bool
) -> None:
    server.answers = [anthropic.stream(anthropic.event(anthropic.error(kind, words)))]
    error = await failure(make())
    assert (error.code, error.retryable) == (code, retryable)
    assert error.words == words and words not in str(error)


async def test_an_input_that_leaves_no_room_for_the_answer_is_a_context_too_long(server: StandIn, make: Make) -> None:
    words = "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000"
    server.answers = [anthropic.fail(400, words, {})]
    assert (await failure(make())).code is Code.CONTEXT_TOO_LONG


async def test_what_the_sdk_refuses_to_ask_is_not_asked_again(server: StandIn, make: Make) -> None:
    error = await failure(make("claude-sonnet-5-5", temperature=0.5))
    assert (error.code, error.retryable) == (Code.INVALID_REQUEST, False)
    assert "temperature" in str(error) and server.requests == []


async def test_a_server_of_another_api_is_said(server: StandIn, make: Make) -> None:
    server.answers = [openai.text("hello")]
    error = await failure(make())
    assert (error.code, error.retryable, error.started) == (Code.PARTIAL_STREAM, True, False)


# The prompt cache.

MARK = {"type": "ephemeral"}
OTHER = ToolDefinition("k.other", "does other", SCHEMA)


def conversation(rounds: int) -> list[Message]:
    """An agent's loop after so many answers with two calls each."""
    found = [Message(Role.SYSTEM, "You investigate."), Message(Role.USER, "why?")]
    for number in range(rounds):
        calls = tuple(ToolCall(f"toolu_{number}_{place}", GET.name, "{}") for place in range(2))
        found.append(Message(Role.ASSISTANT, f"look {number}", calls))
        found += [Message(Role.TOOL, f"result {call.id}", tool_call_id=call.id, tool_name=GET.name) for call in calls]
    return found


def marks(sent: Any, path: str = "") -> Iterator[str]:
    """The paths of all marks in a request."""
    if isinstance(sent, dict):
        if "cache_control" in sent:
            assert sent["cache_control"] == MARK
            yield path
        for key, value in sent.items():
            yield from marks(value, f"{path}.{key}")
    elif isinstance(sent, list):
        for place, value in enumerate(sent):
            yield from marks(value, f"{path}[{place}]")


def unmarked(sent: Any) -> Any:
    """A request without marks."""
    if isinstance(sent, dict):
        return {key: unmarked(value) for key, value in sent.items() if key != "cache_control"}
    return [unmarked(value) for value in sent] if isinstance(sent, list) else sent


def flat(sent: dict[str, Any]) -> list[Any]:
    """A request as Claude reads it: tools, system text, then each block of each turn with its role."""
    found: list[Any] = [unmarked(sent["tools"]), unmarked(sent["system"])]
    for message in sent["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [(message["role"], unmarked(block)) for block in blocks]
    return found


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (0, [".messages[0].content[0]", ".system[0]", ".tools[1]"]),
        (1, [".messages[0].content[0]", ".messages[2].content[1]", ".system[0]", ".tools[1]"]),
        (3, [".messages[4].content[1]", ".messages[6].content[1]", ".system[0]", ".tools[1]"]),
    ],
)
async def test_the_stable_beginning_of_a_request_is_marked(
    server: StandIn, make: Make, rounds: int, expected: list[str]
) -> None:
    sent = await asked(server, make(), GenerateRequest(conversation(rounds), [GET, OTHER]))

    assert sorted(marks(sent)) == expected


async def test_a_marked_request_begins_with_the_one_before_it(server: StandIn, make: Make) -> None:
    client = make()
    sent = [await asked(server, client, GenerateRequest(conversation(rounds), [GET, OTHER])) for rounds in range(5)]

    read = [flat(one) for one in sent]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(read))
    assert all(len(list(marks(one))) <= MOST_MARKS for one in sent)


async def test_the_forced_conclusion_is_marked_as_the_requests_before_it(server: StandIn, make: Make) -> None:
    messages = [*conversation(1), Message(Role.USER, "Conclude now.")]
    sent = await asked(server, make(), GenerateRequest(messages, [GET], may_call=False))

    assert sent["tool_choice"] == {"type": "none"}
    # Claude gets the results and the question in one turn, so the last block is the question.
    assert sorted(marks(sent)) == [".messages[0].content[0]", ".messages[2].content[2]", ".system[0]", ".tools[0]"]


async def test_a_request_without_tools_is_not_marked(server: StandIn, make: Make) -> None:
    assert list(marks(await asked(server, make(), GenerateRequest(QUESTION)))) == []


async def test_nothing_is_marked_where_the_provider_says_so(server: StandIn, make: Make) -> None:
    sent = await asked(server, make(cache_marks=False), GenerateRequest(conversation(2), [GET]))

    assert list(marks(sent)) == []
    assert sent["system"] == "You investigate."


async def test_tokens_that_are_written_to_the_cache_are_reported(server: StandIn, make: Make) -> None:
    usage = Usage(input_tokens=100, output_tokens=9, cached_tokens=60, cache_write_tokens=30)
    server.answers = [anthropic.stream(anthropic.text(0, "ok"), anthropic.end("end_turn", usage))]

    chunks = await collect(make())

    assert UsageChunk(usage) in chunks
