"""Claude's blocks are kept as they came and sent back in their places; what people changed since is sent changed."""

from typing import Any

import pytest

from tarsy.llm.claude_state import Blocks, replay_blocks
from tarsy.record.messages import Message, Role, ToolCall

CALL = ToolCall("t1", "a.b", "{}")
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
KEPT = [THINKING, {"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1"}]


def message(blocks: Any = KEPT, model: str = "claude", **changes: Any) -> Message:
    state = {"anthropic": {"model": model, "blocks": blocks}}
    made = {"content": "I look.", "tool_calls": (CALL,), "provider_state": state, **changes}
    return Message(Role.ASSISTANT, **made)


def test_pieces_become_blocks_in_the_order_of_their_index() -> None:
    blocks = Blocks()
    for piece in (
        {"type": "text", "text": "I ", "index": 1},
        {"type": "thinking", "thinking": "Hm", "index": 0},
        {"type": "thinking", "thinking": ".", "signature": None, "index": 0},
        {"type": "thinking", "thinking": "", "signature": "c2ln", "index": 0},
        {"type": "text", "text": "look.", "citations": None, "index": 1},
        {"type": "tool_use", "id": "own", "name": "a__b", "input": {}, "index": 2},
        {"type": "input_json_delta", "partial_json": "{}", "index": 2},
        {"type": "compaction", "content": "x", "index": 3},
        {"type": "text", "text": "no place"},
    ):
        blocks.add(piece)
    assert blocks.state("claude", ["t1"]) == {"anthropic": {"model": "claude", "blocks": KEPT}}


def test_an_answer_without_thinking_needs_no_state() -> None:
    blocks = Blocks()
    blocks.add({"type": "text", "text": "ok", "index": 0})
    assert blocks.state("claude", []) is None


def test_what_was_kept_goes_back() -> None:
    assert replay_blocks(message(), "claude") == KEPT


@pytest.mark.parametrize(
    "made",
    [
        message(model="another"),
        message(provider_state=None),
        message(provider_state={"anthropic": "text"}),
        message(provider_state={"anthropic": {"model": "claude", "blocks": ["text"]}}),
        message(tool_calls=(CALL, ToolCall("t2", "a.b", "{}"))),
        message([THINKING], content="", tool_calls=()),
    ],
)
def test_what_does_not_fit_is_written_anew(made: Message) -> None:
    assert replay_blocks(made, "claude") is None


def test_changed_text_stands_in_front_of_the_calls() -> None:
    changed = {"type": "text", "text": "[masked]"}
    assert replay_blocks(message(content="[masked]"), "claude") == [THINKING, changed, KEPT[2]]
    assert replay_blocks(message(content=""), "claude") == [THINKING, KEPT[2]]
    assert replay_blocks(message(content="[masked]", tool_calls=()), "claude") == [THINKING, changed]
