"""Whatever compatible servers put into their events is read, and what is none of it is said to be."""

from typing import Any

import orjson
import pytest

from tarsy.llm.openai_native.reading import NativeReading, UnreadableResponse
from tarsy.llm.openai_native.request import body
from tarsy.llm.protocol import (
    Chunk,
    EndChunk,
    GenerateRequest,
    ModelError,
    ModelErrorCode,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from tarsy.llm.toolcalls import MAX_TOOL_CALLS
from tarsy.plan.model import ObjectRef, ProviderPlan
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition
from tarsy.record.usage import Usage

PROVIDER = ProviderPlan(ref=ObjectRef(kind="LLMProvider", namespace="n", name="p"), type="openai", model="m")
ASK = GenerateRequest([Message(Role.USER, "why?")], [ToolDefinition("kubernetes.get", "Gets.")], execution="e1")


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return orjson.dumps({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def call(index: Any = 0, id: str | None = None, name: str | None = None, arguments: Any = None) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}


def read(*packets: list[bytes], provider: ProviderPlan = PROVIDER, **limits: int) -> list[Chunk]:
    reading = NativeReading(provider, ASK, "KEY", **limits)
    chunks = [chunk for packet in packets for chunk in reading.read(packet)]
    return [*chunks, *reading.end("provider p")]


def calls(*packets: list[bytes]) -> list[ToolCall]:
    return [chunk.call for chunk in read(*packets) if isinstance(chunk, ToolCallChunk)]


def failed(*packets: list[bytes], **limits: int) -> ModelError:
    with pytest.raises(ModelError) as raised:
        read(*packets, **limits)
    return raised.value


def usage_of(**fields: Any) -> Usage | None:
    chunks = read([delta("stop", content="ok")], [orjson.dumps({"choices": [], "usage": fields})])
    return next((chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)), None)


def test_text_that_arrived_together_is_one_chunk_and_later_text_another() -> None:
    chunks = read([delta(content="a"), delta(content="b")], [delta(content="c"), delta("stop")])
    assert chunks == [TextChunk("ab"), TextChunk("c"), EndChunk("stop")]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking_and_keeps_its_place_beside_text(field: str) -> None:
    together = [delta(**{field: "h"}), delta(**{field: "m"}), delta(content="a"), delta(**{field: "."}), delta("stop")]
    assert read(together) == [ThinkingChunk("hm"), TextChunk("a"), ThinkingChunk("."), EndChunk("stop")]


def test_reasoning_that_is_said_under_both_names_is_said_once() -> None:
    assert read([delta(reasoning="hm", reasoning_content="hm"), delta("stop")])[0] == ThinkingChunk("hm")


def test_content_in_parts_is_text_and_thinking() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "ok"}]
    chunks = read([delta(content=parts), delta("stop")])
    assert sorted(map(str, chunks[:2])) == [str(TextChunk("ok")), str(ThinkingChunk("hm"))]


def test_halves_of_a_character_in_two_events_are_one_character() -> None:
    halves = [b'{"choices":[{"delta":{"%s":"%s"}}]}' % (f, h) for f in (b"content", b"reasoning") for h in HALVES]
    assert read(*([half] for half in halves), [delta("stop")])[:2] == [TextChunk("😀"), ThinkingChunk("😀")]


HALVES = (rb"\ud83d", rb"\ude00")


def test_other_choices_than_the_first_are_not_ours() -> None:
    other = orjson.dumps({"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]})
    assert read([other, delta("stop", content="ok"), other]) == [TextChunk("ok"), EndChunk("stop")]


def test_nothing_after_done_is_read() -> None:
    assert read([delta("stop", content="ok"), b"[DONE]", delta(content="more")])[0] == TextChunk("ok")


def test_tool_calls_are_put_together_however_they_are_cut() -> None:
    whole = [ToolCall("a", "kubernetes.get", '{"x":1}'), ToolCall("b", "kubernetes.get", "{}")]
    name, end = "kubernetes__get", delta("tool_calls")
    pieces = [call(0, "a", name, '{"x"'), call(0, None, None, ":1}"), call(1, "b", name, "{}")]
    assert calls(*([delta(tool_calls=[piece])] for piece in pieces), [end]) == whole
    assert calls([delta(tool_calls=pieces), end]) == whole
    for index in (0, None):  # servers that number every call 0, or none
        same = [call(index, "a", name, '{"x":1}'), call(index, "b", name, "{}")]
        assert calls([delta(tool_calls=same), end]) == whole


def test_arguments_that_are_an_object_are_its_json() -> None:
    assert calls([delta("stop", tool_calls=[call(0, "a", "kubernetes__get", {"x": 1})])])[0].arguments == '{"x":1}'


def test_a_call_without_an_id_gets_the_same_one_every_time() -> None:
    packet = [delta("tool_calls", tool_calls=[call(0, None, "kubernetes__get", "{}")])]
    assert calls(packet) == calls(packet) and calls(packet)[0].id


def test_announced_calls_that_never_come_are_an_error() -> None:
    assert failed([delta("tool_calls")]).code is ModelErrorCode.SERVER


@pytest.mark.parametrize(("count", "fits"), [(MAX_TOOL_CALLS, True), (MAX_TOOL_CALLS + 1, False)])
def test_calls_are_as_many_as_the_limit_and_no_more(count: int, fits: bool) -> None:
    packet = [delta("tool_calls", tool_calls=[call(i, f"c{i}", "kubernetes__get", "{}") for i in range(count)])]
    if fits:
        assert len(calls(packet)) == count
    else:
        assert failed(packet).code is ModelErrorCode.SERVER


@pytest.mark.parametrize(("length", "fits"), [(99, True), (100, True), (101, False)])
@pytest.mark.parametrize("kind", ["arguments", "reasoning", "refusal"])
def test_what_is_kept_until_the_end_has_a_limit(length: int, fits: bool, kind: str) -> None:
    text = "x" * length
    packet = delta(tool_calls=[call(0, arguments=text)]) if kind == "arguments" else delta(**{kind: text})
    reading = NativeReading(PROVIDER, ASK, None, kept=100)
    if fits:
        list(reading.read([packet]))
    else:
        with pytest.raises(ModelError) as raised:
            list(reading.read([packet]))
        assert raised.value.code is ModelErrorCode.SERVER and not raised.value.retryable


@pytest.mark.parametrize(
    ("fields", "usage"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 7}, Usage(input_tokens=9, output_tokens=7)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 7,
                "total_tokens": 16,
                "prompt_tokens_details": {"cached_tokens": 2},
                "completion_tokens_details": {"reasoning_tokens": 4},
            },
            Usage(input_tokens=9, output_tokens=7, thinking_tokens=4, cached_tokens=2),
        ),
        (
            {
                "prompt_tokens": 8,
                "completion_tokens": 7,
                "total_tokens": 18,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(input_tokens=8, output_tokens=10, thinking_tokens=3),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 7, "prompt_cache_hit_tokens": 5, "prompt_tokens_details": None},
            Usage(input_tokens=9, output_tokens=7, cached_tokens=5),
        ),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": 9}, None),
        ({"prompt_tokens": 9, "completion_tokens": None}, None),
        ({"prompt_tokens": -9, "completion_tokens": 20}, None),
        ({"prompt_tokens": True, "completion_tokens": "7"}, None),
        ({"prompt_tokens": 1 << 60, "completion_tokens": 7}, None),
    ],
    ids=["plain", "details", "xai", "deepseek", "zero", "half", "null", "negative", "types", "absurd"],
)
def test_usage_is_what_was_reported_and_unknown_is_not_zero(fields: dict[str, Any], usage: Usage | None) -> None:
    assert usage_of(**fields) == usage


def test_the_last_usage_counts() -> None:
    early, late = ({"prompt_tokens": 9, "completion_tokens": n} for n in (1, 2))
    chunks = read(
        [orjson.dumps({"choices": [], "usage": early})], [orjson.dumps({"choices": [], "usage": late})], [delta("stop")]
    )
    assert chunks[0] == UsageChunk(Usage(input_tokens=9, output_tokens=2))


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        ({"message": "engine died KEY"}, ModelErrorCode.SERVER, True),
        ("engine died KEY", ModelErrorCode.SERVER, True),
        ({"message": "slow down", "type": "rate_limit_error"}, ModelErrorCode.RATE_LIMIT, True),
        ({"message": "no", "code": 401}, ModelErrorCode.CREDENTIALS, False),
        ({"message": "maximum context length", "code": 400}, ModelErrorCode.CONTEXT_TOO_LONG, False),
        ({"message": "no", "code": "content_filter"}, ModelErrorCode.CONTENT_FILTER, False),
    ],
)
def test_an_error_in_a_stream_is_classified(error: Any, code: ModelErrorCode, retryable: bool) -> None:
    found = failed([delta(content="half")], [orjson.dumps({"error": error})])
    assert (found.code, found.retryable, found.started) == (code, retryable, True)
    assert "KEY" not in str(found)
    assert failed([orjson.dumps({"error": error})]).started is False


def test_vllms_own_error_shape_is_an_error() -> None:
    body = {"object": "error", "message": "maximum context length is 8", "code": 400}
    assert failed([orjson.dumps(body)]).code is ModelErrorCode.CONTEXT_TOO_LONG


def test_text_before_an_error_in_the_same_packet_is_handed_on() -> None:
    reading = NativeReading(PROVIDER, ASK, None)
    chunks = reading.read([delta(content="half"), b'{"error":{"message":"no"}}'])
    assert next(chunks) == TextChunk("half")
    with pytest.raises(ModelError):
        next(chunks)


def test_a_refusal_is_the_content_filters_with_the_models_words() -> None:
    error = failed([delta(refusal="I will "), delta(refusal="not, KEY."), delta("stop")])
    assert (error.code, error.retryable) == (ModelErrorCode.CONTENT_FILTER, False)
    assert "I will not, [key]." in str(error)


@pytest.mark.parametrize(
    "event",
    [
        b"{nonsense",
        b"[]",
        b"[" * 100_000,
        b'"\xff"',
        b'{"choices": "none"}',
        b'{"choices": [null]}',
        b'{"choices": [{"delta": "x"}]}',
        b'{"choices": [{"delta": {"content": 7}}]}',
        b'{"choices": [{"delta": {"content": [{}]}}]}',
        b'{"choices": [{"delta": {"tool_calls": [7]}}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"id": 7}]}}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": [7]}}]}}]}',
        b'{"choices": [{"delta": {"refusal": {}, "tool_calls": 7}}]}',
    ],
)
def test_what_is_no_piece_of_a_completion_is_unreadable(event: bytes) -> None:
    with pytest.raises(UnreadableResponse):
        read([delta(content="ok")], [event])


def sent(provider: ProviderPlan, messages: list[Message]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = orjson.loads(b"".join(body(provider, GenerateRequest(messages))))["messages"]
    return found


def test_reasoning_goes_back_only_to_who_wrote_it_with_calls_made_since_the_last_question() -> None:
    answer = read([delta(reasoning="hm"), delta("tool_calls", tool_calls=[call(0, "a", "kubernetes__get", "{}")])])
    end = answer[-1]
    assert isinstance(end, EndChunk) and end.provider_state
    made = (ToolCall("a", "kubernetes.get", "{}"),)
    called = Message(Role.ASSISTANT, "", tool_calls=made, provider_state=end.provider_state)
    result = Message(Role.TOOL, "found", tool_call_id="a")
    assert sent(PROVIDER, [*ASK.messages, called, result])[1]["reasoning"] == "hm"
    assert "reasoning" not in sent(PROVIDER, [*ASK.messages, called, result, *ASK.messages])[1]
    for other in ({"model": "other"}, {"base_url": "http://elsewhere.example/v1"}):
        provider = PROVIDER.model_copy(update=other)
        assert "reasoning" not in sent(provider, [*ASK.messages, called, result])[1]
    for state in ({"google": [1]}, {"openai-native": 7}, {"openai-native": {"field": "role", "text": "system"}}):
        foreign = Message(Role.ASSISTANT, "", tool_calls=made, provider_state=state)
        assert set(sent(PROVIDER, [*ASK.messages, foreign])[1]) == {"role", "content", "tool_calls"}


def test_reasoning_without_calls_is_not_kept() -> None:
    assert read([delta(reasoning="hm"), delta("stop", content="ok")])[-1] == EndChunk("stop")
