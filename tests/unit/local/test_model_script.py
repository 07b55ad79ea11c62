"""Tests the pure parts of the scripted model: scripts and their errors, position in a conversation, names, chunks."""

import json
import re

import pytest

from tarsy.engine.model_calls.repetition import RepeatedText
from tarsy_dev.model import Script, ScriptError, demo_script, parse_script
from tarsy_dev.model.conversation import agent_name, tool_names, turn, wire_name, with_call_ids
from tarsy_dev.model.script import Entry, Order, ScriptedCall
from tarsy_dev.model.wire import WireAnswer, split_words


def answer(entry: Entry, *, offered: tuple[str, ...] = (), position: int = 0) -> WireAnswer:
    return WireAnswer(entry, model="m", agent="a", position=position, number=1, offered=offered, prompt_tokens=5)


def test_a_list_of_entries_is_short_for_an_agent_chosen_by_turn() -> None:
    script = parse_script("agents: {a: [{text: one}, {text: two}]}")
    assert script.agents["a"].by is Order.TURN
    assert [entry.text for entry in script.agents["a"].entries] == ["one", "two"]


def test_true_is_short_for_a_fault_without_details() -> None:
    entry = parse_script("sequential: [{hang: true}]").sequential[0]
    assert entry.hang is not None and entry.hang.after is None and entry.fault is entry.hang


def test_an_empty_script_is_a_script() -> None:
    assert parse_script("") == Script()


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("agents: {a: [{txt: x}]}", ["agents.a.entries.0.txt: Extra inputs are not permitted"]),
        ("agents: {a: []}", ["agents.a.entries: Tuple should have at least 1 item"]),
        (
            "agents: {a: [{}], b: [{error: {status: 200}}]}",
            ["agents.a.entries.0: says nothing", "agents.b.entries.0.error.status: "],
        ),
        ("sequential: [{text: x, hang: true, cut: {after: 1}}]", ["sequential.0: has hang and cut: keep one"]),
        ("sequential: [{error: {status: 429, times: 2}}]", ["sequential.0: error has `times` or `after`"]),
        ("sequential: [{calls: [{name: a.b, arguments: [1]}]}]", ["sequential.0.calls.0.arguments"]),
        ("[1, 2]", ["(top): "]),
        ("a: [", ["is not YAML"]),
    ],
)
def test_a_wrong_script_names_every_wrong_field_by_its_path(text: str, complaints: list[str]) -> None:
    with pytest.raises(ScriptError) as refused:
        parse_script(text, "my.yaml")
    assert str(refused.value).startswith("my.yaml is not")
    for complaint in complaints:
        assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("messages", "name"),
    [
        ([{"role": "system", "content": "You help.\nAgent: log-analyst\nBe brief."}], "log-analyst"),
        ([{"role": "developer", "content": "Agent: a \r\nx"}], "a"),
        ([{"role": "system", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "Agent: b"}]}], "b"),
        ([{"role": "system", "content": "An Agent: c"}, {"role": "user", "content": "Agent: d"}], "d"),
        ([{"role": "user", "content": "Agent: of the alert\nAgent: x\n\nAgent: e\n"}], "e"),
        ([{"role": "user", "content": "Agent: f"}, {"role": "user", "content": "Agent: g"}], "f"),
        ([{"role": "user", "content": "no"}, {"role": "user", "content": "Agent: g"}], None),
        ([{"role": "system", "content": None}], None),
        ([], None),
    ],
)
def test_the_agent_is_named_by_a_line_of_the_first_messages(
    messages: list[dict[str, object]], name: str | None
) -> None:
    assert agent_name(messages) == name


def test_the_turn_is_the_number_of_answers_so_far() -> None:
    roles = ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    assert turn([{"role": role} for role in roles]) == 2


@pytest.mark.parametrize(
    ("offered", "sent"),
    [
        (("kubernetes__get_logs",), "kubernetes__get_logs"),
        (("kubernetes.get_logs",), "kubernetes.get_logs"),
        ((), "kubernetes__get_logs"),
    ],
)
def test_a_tool_is_named_in_the_words_of_the_request(offered: tuple[str, ...], sent: str) -> None:
    assert wire_name("kubernetes.get_logs", offered) == sent


def test_tool_names_ignore_what_is_no_function() -> None:
    assert tool_names([{"type": "function", "function": {"name": "f"}}, {"type": "web"}, 1]) == ["f"]


@pytest.mark.parametrize("text", ["one  two\n\nthree ", " ", "", "\n- a\n"])
def test_words_joined_are_the_text(text: str) -> None:
    assert "".join(split_words(text)) == text


def test_filler_is_no_repetition_that_the_engine_cuts() -> None:
    watched = RepeatedText()
    pieces = [str(delta["content"]) for delta in answer(Entry(tokens=2000)).deltas()]
    assert [watched.add(piece) for piece in pieces] == [None] * 2000 and watched.end() is None


@pytest.mark.parametrize(("entry", "pieces"), [(Entry(text="abcdefg", tokens=3), 3), (Entry(tokens=200), 200)])
def test_tokens_fix_the_number_of_pieces(entry: Entry, pieces: int) -> None:
    contents = [delta["content"] for delta in answer(entry).deltas()]
    assert len(contents) == pieces
    assert entry.text in (None, "".join(contents))


def test_call_arguments_come_in_pieces_that_join_to_the_json_and_ids_differ_by_turn() -> None:
    arguments = {"namespace": "shop", "pod": "checkout-6f7d9c8b54-k8x2p"}
    entry = Entry(calls=(ScriptedCall(name="k.a", arguments=arguments), ScriptedCall(name="k.b", arguments="{bad")))
    deltas = [delta["tool_calls"][0] for delta in answer(entry).deltas()]
    texts = ["".join(d["function"]["arguments"] for d in deltas if d["index"] == index) for index in (0, 1)]
    assert json.loads(texts[0]) == arguments and texts[1] == "{bad"
    ids = {d["id"] for position in (0, 1) for d in _heads(answer(entry, position=position))}
    assert len(ids) == 4 and all(len(identifier) <= 40 for identifier in ids)


def _heads(given: WireAnswer) -> list[dict[str, str]]:
    return [delta["tool_calls"][0] for delta in given.deltas() if "id" in delta["tool_calls"][0]]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("@callId(k.logs)", "call_c"),
        ("@callId(k.logs#1), @callId(k.logs#2)", "call_a, call_c"),
        ("@callId(k.logs#3) @callId(k.top) @callId(k.logs#0)", "@callId(k.logs#3) @callId(k.top) @callId(k.logs#0)"),
        ("@callId(k.get#1)", "call_b"),
        ("plain", "plain"),
    ],
)
def test_ids_of_calls_are_those_that_the_conversation_shows(text: str, filled: str) -> None:
    messages = [
        {"role": "tool", "content": "[callId: call_a] k.logs\nno"},
        {"role": "user", "content": "Observation: [callId: call_b] k.get\n[callId: call_a] k.logs"},
        {"role": "user", "content": [{"type": "text", "text": "[callId: call_c] k.logs (error)\nno"}]},
    ]
    assert with_call_ids(text, messages) == filled


def test_the_demo_ends_each_agents_work_with_a_finding_that_cites() -> None:
    script = demo_script()
    agents = ["kubernetes-agent", "log-analyst", "change-analyst", "synthesis-agent"]
    assert sorted(script.agents) == sorted([*agents, "executive-summary", "chat-agent"])
    for name in agents:
        block = re.search(r"```finding\n(.*)\n```\s*$", script.agents[name].entries[-1].text or "", re.DOTALL)
        assert block, name
        finding = json.loads(block.group(1))
        assert 0 < len(finding["summary"]) <= 1024 and finding["confidence"] in ("High", "Medium")
        assert all(claim["citations"] for claim in finding["claims"])
