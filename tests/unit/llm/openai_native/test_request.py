"""Settings go where each server expects them, and nothing that a request holds keeps it from being sent."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tarsy.llm.message_forms import MessageForms
from tarsy.llm.openai_native.request import BLOCK_BYTES, body, state
from tarsy.llm.protocol import GenerateRequest
from tarsy.plan.model import ObjectRef, ProviderPlan
from tarsy.record.messages import Message, Role, ToolCall, ToolDefinition

QUESTION = [Message(Role.USER, "why?")]
PROVIDER = ProviderPlan(ref=ObjectRef(kind="LLMProvider", namespace="n", name="p"), type="openai", model="m")
OWN = "http://house.example/v1"


def sent(request: GenerateRequest | None = None, **fields: Any) -> dict[str, Any]:
    ref = ObjectRef(kind="LLMProvider", namespace="n", name="p")
    provider = ProviderPlan.model_validate({"ref": ref, "type": "openai", "model": "m", **fields})
    found: dict[str, Any] = json.loads(b"".join(body(provider, request or GenerateRequest(QUESTION))))
    return found


def test_a_request_has_what_it_needs_and_nothing_that_was_not_set() -> None:
    assert sent() == {
        "model": "m",
        "messages": [{"role": "user", "content": "why?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("model", "base_url", "name"),
    [
        ("gpt-4o", None, "max_completion_tokens"),
        ("gpt-4o", "https://api.openai.com/v1", "max_completion_tokens"),
        ("o3-mini", OWN, "max_completion_tokens"),
        ("openai/gpt-5.1", OWN, "max_completion_tokens"),
        ("gpt-4o", OWN, "max_tokens"),
        ("qwen/qwq-o1-like", OWN, "max_tokens"),
        ("llama3", OWN, "max_tokens"),
    ],
)
def test_the_most_tokens_go_under_the_name_the_server_knows(model: str, base_url: str | None, name: str) -> None:
    request = sent(model=model, base_url=base_url, max_output_tokens=77, temperature=0.0)
    assert {key: request[key] for key in request if key.startswith("max")} == {name: 77}
    assert request["temperature"] == 0.0


def test_the_effort_goes_only_when_the_provider_says_one() -> None:
    assert sent(thinking={"effort": "high"})["reasoning_effort"] == "high"
    assert "reasoning_effort" not in sent()


def test_schemas_go_out_untouched_but_for_what_is_not_there() -> None:
    schema = {"type": "object", "properties": {"n": {"const": 1 << 70, "$ref": "#/$defs/x"}}, "$defs": {"x": {}}}
    tools = [ToolDefinition("s.t", "half \ud83d", schema), ToolDefinition("s.u", "")]
    first, second = sent(GenerateRequest(QUESTION, tools))["tools"]
    assert first["function"] == {"name": "s__t", "description": "half \ufffd", "parameters": schema}
    assert second["function"]["parameters"] == {"type": "object", "properties": {}}


def test_tools_that_may_not_be_called_are_sent_all_the_same() -> None:
    tools = [ToolDefinition("k.get", "Gets.")]
    free, bound = (sent(GenerateRequest(QUESTION, tools, may_call=may)) for may in (True, False))

    assert "tool_choice" not in free and bound["tool_choice"] == "none"
    assert bound["tools"] == free["tools"]
    assert "tool_choice" not in sent(GenerateRequest(QUESTION, may_call=False))


@pytest.mark.parametrize(
    ("model", "base_url", "sends"),
    [
        ("gpt-4.1", None, True),
        ("qwen2.5-coder", "http://local/v1", True),
        ("openai/gpt-4o", "http://gateway/v1", True),
        ("o3-mini", None, False),
        ("gpt-5.1", None, False),
        ("openai/gpt-5", "http://gateway/v1", False),
        ("azure/o4-mini", "http://gateway/v1", False),
        ("xai/grok-4", "http://gateway/v1", False),
    ],
)
def test_stops_go_only_to_models_that_take_them(model: str, base_url: str | None, sends: bool) -> None:
    body = sent(GenerateRequest(QUESTION, stop=("\nObservation:",)), model=model, base_url=base_url)

    assert body.get("stop") == (["\nObservation:"] if sends else None)
    assert "stop" not in sent(GenerateRequest(QUESTION), model=model, base_url=base_url)


# What is encoded once.


def conversation(rounds: int, size: int = 40_000) -> list[Message]:
    made = [Message(Role.SYSTEM, "You look."), *QUESTION]
    for number in range(rounds):
        calls = (ToolCall(f"c{number}", "k.get", f'{{"n": {number}}}'),)
        made.append(Message(Role.ASSISTANT, "hm", calls))
        made.append(Message(Role.TOOL, f"{number} ".ljust(size, "é"), tool_call_id=f"c{number}"))
    return made


def pieces(messages: list[Message], forms: MessageForms, tools: Sequence[ToolDefinition] = ()) -> list[bytes]:
    return body(PROVIDER, GenerateRequest(messages, tools, forms=forms))


@pytest.mark.parametrize("size", [10, BLOCK_BYTES // 8, BLOCK_BYTES, 2 * BLOCK_BYTES])
def test_a_request_is_the_same_whatever_was_encoded_before(size: int) -> None:
    messages, forms, tools = conversation(12, size), MessageForms(), [ToolDefinition("k.get", "Gets.")]
    shorter = [*messages[:8], Message(Role.ASSISTANT, "short", messages[8].tool_calls), *messages[9:]]

    for sent in [messages[:count] for count in (2, 4, 6, 16, 26)] + [shorter, messages, messages[:5], messages]:
        assert b"".join(pieces(sent, forms, tools)) == b"".join(pieces(sent, MessageForms(), tools))


def test_a_block_is_encoded_and_copied_once() -> None:
    messages, forms = conversation(40), MessageForms()

    first = pieces(messages[:-2], forms)
    second = pieces(messages, forms)

    assert len(first) > 4
    assert all(one is other for one, other in zip(first[1:-2], second[1:-2], strict=False))
    assert all(len(piece) >= BLOCK_BYTES for piece in second[1:-2])


def test_a_request_begins_with_the_bytes_of_the_one_before_it() -> None:
    messages, forms = conversation(12), MessageForms()
    earlier = b"".join(pieces(messages[:-2], forms)[:-1])

    assert b"".join(pieces(messages, forms)).startswith(earlier)


def test_the_reasoning_of_answered_questions_is_taken_out_of_what_was_encoded() -> None:
    reasoned = state(PROVIDER, "reasoning", "hm")
    asks = Message(Role.ASSISTANT, "", (ToolCall("c", "k.get", "{}"),), provider_state=reasoned)
    messages = [*QUESTION, asks, Message(Role.TOOL, "found", tool_call_id="c")]
    forms = MessageForms()

    before = json.loads(b"".join(pieces(messages, forms)))["messages"]
    after = json.loads(b"".join(pieces([*messages, *QUESTION], forms)))["messages"]
    other = PROVIDER.model_copy(update={"model": "other"})
    elsewhere = json.loads(b"".join(body(other, GenerateRequest(messages, forms=forms))))["messages"]

    assert before[1]["reasoning"] == "hm"
    assert "reasoning" not in after[1] and "reasoning" not in elsewhere[1]


def test_settings_are_read_anew_for_each_request() -> None:
    forms, tools = MessageForms(), [ToolDefinition("k.get", "Gets.")]
    free, bound = (GenerateRequest(QUESTION, tools, may_call=may, forms=forms) for may in (True, False))

    assert "tool_choice" not in sent(free) and sent(bound)["tool_choice"] == "none"
    assert "tools" not in sent(GenerateRequest(QUESTION, forms=forms))
