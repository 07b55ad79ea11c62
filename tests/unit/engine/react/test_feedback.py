"""The feedback to a model whose answer cannot be acted on, and to empty answers."""

import pytest

from tarsy.engine.strategies.react import Kind, parse_react
from tarsy.llm import ToolDefinition

TOOLS = tuple(ToolDefinition(f"k8s.tool_{n}", f"does\nthing {n}") for n in range(60))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("Thought: t\nAction: k8s.tool_1", ['has "Action:"', 'missing "Action Input:"'], id="F1"),
        pytest.param("Action Input: {}", ["must be preceded by", '"Action:"'], id="F2"),
        pytest.param("Action:\nAction Input: {}", ["must be preceded by"], id="F2: an empty action"),
        pytest.param("Thought: hm", ['either a tool call ("Action:"', '"Final Answer:"'], id="F3"),
        pytest.param("<think>hm</think>", ['either a tool call ("Action:"'], id="F3: only a think block"),
        pytest.param("Let me see.", ["Could not detect any ReAct sections"], id="F4"),
        pytest.param(".", ["Could not detect any ReAct sections"], id="F4: punctuation"),
        pytest.param("", ["Could not detect any ReAct sections"], id="F4: empty"),
        pytest.param(" \n\t ", ["Could not detect any ReAct sections"], id="F4: blank"),
        pytest.param(
            "Action: k8s.\nAction Input: {}", ["Incomplete ReAct format", "Found: Action", "Missing:"], id="F5"
        ),
        pytest.param("Action: .get\nAction Input: {}", ["Incomplete ReAct format"], id="F5: no server"),
        pytest.param("Thought: t\nFinal Answer:", ["Incomplete ReAct format", "Found: Thought"], id="F5: no text"),
    ],
)
def test_a_malformed_answer_is_told_what_is_wrong_and_how_it_goes(text: str, says: list[str]) -> None:
    for tools in ((), TOOLS):
        parsed = parse_react(text, tools)
        assert parsed.kind is Kind.MALFORMED
        assert parsed.feedback.startswith("FORMAT ERROR:")
        for words in says:
            assert words in parsed.feedback.partition("\n")[0]
        for rule in ("colon", "new line", "Stop after", "either one tool call or a Final Answer"):
            assert rule in parsed.feedback
        assert parsed.feedback.count("Thought: ") == (2 if tools else 1)
        assert ("Action: k8s.tool_0\nAction Input: {}" in parsed.feedback) == bool(tools)
        assert "server.tool" not in parsed.feedback
        assert parsed.arguments == {} and parsed.final_answer == ""


@pytest.mark.parametrize("text", [None, 3, b"Final Answer: x", ["Final Answer: x"]])
def test_what_is_no_text_is_malformed(text: object) -> None:
    assert parse_react(text).kind is Kind.MALFORMED  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["k8s.drop_all", "nowhere.tool_1", "list", "k8s"])
def test_f6_an_unknown_tool_is_told_all_tools(name: str) -> None:
    parsed = parse_react(f"Thought: t\nAction: {name}\nAction Input: a=1", TOOLS)

    assert (parsed.kind, parsed.thought, parsed.tool, parsed.arguments) == (Kind.UNKNOWN_TOOL, "t", name, {"a": 1})
    assert f"Unknown tool '{name}'" in parsed.feedback
    assert "server.tool" not in parsed.feedback
    for n in range(60):
        assert f"k8s.tool_{n}: does thing {n}\n" in parsed.feedback + "\n"


def test_f6_without_tools_a_name_without_a_dot_is_unknown() -> None:
    parsed = parse_react("Action: list\nAction Input:")

    assert parsed.kind is Kind.UNKNOWN_TOOL
    assert "No tools are currently available." in parsed.feedback
