"""Tests how much text a span may have, and that the JSON of messages stays whole where it is cut."""

import json

import pytest

from tarsy.record.messages import Message, Role, ToolCall
from tarsy.runtime.span_content import MOST_CONTENT, messages_text, openinference


@pytest.mark.parametrize(("more", "cut"), [(-1, False), (0, False), (1, True)])
def test_a_message_is_cut_at_the_limit(more, cut):
    length = MOST_CONTENT + more
    (said,) = json.loads(messages_text([Message(Role.USER, "x" * length)]))
    text = said["parts"][0]["content"]
    assert (len(text) == length, text.endswith("…")) == (not cut, cut)
    assert len(text) <= MOST_CONTENT


def test_many_messages_share_the_room():
    said = json.loads(messages_text([Message(Role.USER, "x" * MOST_CONTENT)] * 8))
    assert {len(message["parts"][0]["content"]) for message in said} == {MOST_CONTENT // 8}


def test_calls_and_their_results_are_parts_of_their_own():
    asked = Message(Role.ASSISTANT, "", tool_calls=(ToolCall("c1", "k8s.pods", '{"a": 1}'),))
    answered = Message(Role.TOOL, "two pods", tool_call_id="c1", tool_name="k8s.pods")
    first, second = json.loads(messages_text([asked, answered]))
    assert first["parts"] == [{"type": "tool_call", "id": "c1", "name": "k8s.pods", "arguments": '{"a": 1}'}]
    assert second["parts"] == [{"type": "tool_call_response", "id": "c1", "response": "two pods"}]


def test_tokens_that_are_not_known_have_no_total():
    assert openinference({"gen_ai.usage.input_tokens": 3}) == {"llm.token_count.prompt": 3}
