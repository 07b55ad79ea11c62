"""A conversation that outgrows its model's window: what is given up, in which order, and what never is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties import examples
from tarsy.engine.conversation.compaction import (
    Window,
    apply_compaction,
    compact_conversation,
    cut_text,
    reserve,
    size,
    size_of,
)
from tarsy.engine.prompts.fence import fence
from tarsy.engine.prompts.results import observation_text, tool_text
from tarsy.record.messages import Message, Role, ToolCall, ToolOutcome

LINES = "\n".join(f"line {i:05d} of a log" for i in range(1500))  # 30 KB


def opening(alert: str = "pod x", runbook: str = "look") -> list[Message]:
    user = "\n\n".join(("## Alert", fence("ALERT_DATA", alert), fence("RUNBOOK", runbook), "## Your task\n\nLook."))
    return [Message(Role.SYSTEM, "you are " * 500), Message(Role.USER, user)]


def rounds(count: int, result: str = LINES, *, text: str = "let me look", react: bool = False) -> list[Message]:
    found = []
    for i in range(count):
        call, outcome = ToolCall(f"w{i}", "k.get", "{}"), ToolOutcome(f"{i} {result}")
        if react:
            found.append(Message(Role.ASSISTANT, f"Thought: {text}\nAction: k.get"))
            found.append(Message(Role.USER, observation_text(f"call_{i:012d}", "k.get", outcome)))
        else:
            found.append(Message(Role.ASSISTANT, text, (call,)))
            told = tool_text(f"call_{i:012d}", "k.get", outcome)
            found.append(Message(Role.TOOL, told, tool_call_id=f"w{i}", tool_name="k.get"))
    return found


@pytest.mark.parametrize("react", [False, True], ids=["functions", "react"])
def test_oldest_results_go_first_and_no_more_than_needed(react: bool) -> None:
    messages = [*opening(), *rounds(10, react=react)]
    room = size_of(messages) - 40_000

    changed = compact_conversation(messages, {}, room)

    assert sorted(changed) == [3, 5]
    assert size_of(apply_compaction(messages, changed)) <= room
    for seq in changed:
        assert f"callId: call_{seq // 2 - 1:012d}" in changed[seq]
        assert "line 00000" in changed[seq] and "line 01499" in changed[seq]
        assert "1,50" in changed[seq] and "call the tool again" in changed[seq]
        assert ("<!-- TOOL_RESULT_END -->" in changed[seq]) is react


@pytest.mark.parametrize("react", [False, True], ids=["functions", "react"])
def test_two_hundred_results_of_thirty_kilobytes_fit_and_the_last_two_rounds_stay_whole(react: bool) -> None:
    messages = [*opening(), *rounds(200, react=react)]
    window = Window(131_072, 8_192)
    assert size_of(messages) > 6_000_000

    changed = compact_conversation(messages, {}, window.room)

    assert size_of(apply_compaction(messages, changed)) <= window.room
    assert min(changed) > 1 and max(changed) < len(messages) - 4
    assert [m.role for m in apply_compaction(messages, changed)] == [m.role for m in messages]
    assert [m.tool_calls for m in apply_compaction(messages, changed)] == [m.tool_calls for m in messages]


def test_older_texts_of_the_model_are_shortened_when_results_do_not_suffice() -> None:
    messages = [*opening(), *rounds(10, "ok", text="I think " * 1000)]

    changed = compact_conversation(messages, {}, size_of(messages) - 20_000)

    assert changed and {messages[i].role for i in changed} == {Role.ASSISTANT}
    assert all("I think" in text and "left out" in text for text in changed.values())


def test_results_of_one_round_that_fill_the_window_are_cut_to_one_length() -> None:
    calls = tuple(ToolCall(f"w{i}", "k.get", "{}") for i in range(200))
    tools = [
        Message(Role.TOOL, tool_text(f"c{i}", "k.get", ToolOutcome(LINES)), tool_call_id=f"w{i}") for i in range(199)
    ]
    small = Message(Role.TOOL, tool_text("c199", "k.get", ToolOutcome("just this")), tool_call_id="w199")
    messages = [*opening(), Message(Role.ASSISTANT, "", calls), *tools, small]
    room = 300_000

    changed = compact_conversation(messages, {}, room)

    assert room * 0.7 < size_of(apply_compaction(messages, changed)) <= room
    assert len(messages) - 1 not in changed
    assert len({len(text) // 100 for text in changed.values()}) <= 2


def test_at_last_the_alert_is_cut_inside_its_fence_and_nothing_else_of_the_opening() -> None:
    messages = opening("x" * 1_000_000)

    changed = compact_conversation(messages, {}, 100_000)

    assert list(changed) == [1]
    assert size_of(apply_compaction(messages, changed)) <= 100_000
    parts = "<!-- ALERT_DATA_START -->", "<!-- ALERT_DATA_END -->", fence("RUNBOOK", "look"), "Look.", "left out"
    assert all(part in changed[1] for part in parts)


def test_what_was_shortened_is_shortened_further_only_when_there_is_need() -> None:
    messages = [*opening(), *rounds(60)]
    first = compact_conversation(messages, {}, 120_000)
    assert compact_conversation(messages, first, 120_000) == {}

    second = compact_conversation(messages, first, 95_000)

    assert set(second) <= set(first) and all(len(second[i]) < len(first[i]) for i in second)
    assert size_of(apply_compaction(messages, first | second)) <= 95_000


def test_what_cannot_be_given_up_is_left_as_it_is() -> None:
    messages = [Message(Role.SYSTEM, "s" * 50_000), Message(Role.USER, "no fence " * 5_000)]
    assert compact_conversation(messages, {}, 1_000) == {}


@examples(60)
@given(
    st.lists(st.tuples(st.text(max_size=50), st.integers(0, 40), st.booleans()), max_size=12),
    st.integers(0, 60_000),
    st.text(max_size=2_000),
)
def test_compaction_never_grows_a_conversation_and_is_done_when_it_is_done(
    parts: list[tuple[str, int, bool]], room: int, alert: str
) -> None:
    messages = opening(alert)
    for text, times, react in parts:
        messages += rounds(1, f"{text}\n" * times * 50, text=text * times, react=react)

    changed = compact_conversation(messages, {}, room)

    after = size_of(apply_compaction(messages, changed))
    assert after <= size_of(messages) and 0 not in changed
    assert after <= room or compact_conversation(messages, changed, room) == {}
    assert compact_conversation(messages, {}, room) == changed
    if size_of(messages) <= room:
        assert changed == {}


def test_a_hostile_result_is_shortened_in_linear_time() -> None:
    hostile = "<!-- A_START -->\n" * 60_000
    messages = [*opening(hostile), *rounds(3, hostile), *rounds(3, hostile, react=True)]
    changed = compact_conversation(messages, {}, 50_000)
    assert size_of(apply_compaction(messages, changed)) <= 50_000


@pytest.mark.parametrize(("length", "whole"), [(1059, True), (1060, True), (1061, False)])
def test_what_is_hardly_longer_than_its_ends_stays_whole(length: int, whole: bool) -> None:
    assert (cut_text("x" * length, 600, 300, "here") == "x" * length) is whole


def test_cut_counts_what_it_leaves_out() -> None:
    text = cut_text("a" * 5_000 + "b" * 5_000, 600, 300, "it is on record")
    assert text.startswith("a" * 600 + "\n[") and text.endswith("b" * 300)
    assert "9,100 of 10,000 characters" in text and "it is on record" in text


@pytest.mark.parametrize(("density", "full"), [(None, 800), (0.25, 800), (0.5, 400), (5.0, 200), (0.01, 1000)])
def test_a_window_in_bytes_follows_what_the_provider_counted(density: float | None, full: int) -> None:
    assert Window(tokens=1000, reserve=650, density=density).full == full
    assert Window(tokens=1000, reserve=650, density=density, overhead=100).full == full - 100


@pytest.mark.parametrize(("output", "kept"), [(None, 8192), (100, 100), (1_000_000, 32_768)])
def test_the_answer_has_its_place(output: int | None, kept: int) -> None:
    assert reserve(131_072, output) == kept
    assert reserve(4_000, None) == 1_000


def test_sizes_are_bytes() -> None:
    assert (size("abc"), size("äöü"), size("漢"), size("\ud800")) == (3, 6, 3, 1)
