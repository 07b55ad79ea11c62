"""Reads ReAct answers: sections, names and arguments in the forms that models write them."""

import pytest

from for_each import for_each
from tarsy.engine.strategies.react import Kind, Parsed, parse_react
from tarsy.llm import ToolDefinition

TOOLS = (ToolDefinition("k8s.get_pods", "Lists pods"), ToolDefinition("k8s.logs", "Reads logs"))
CALL = 'Action: k8s.get_pods\nAction Input: {"namespace": "x"}'


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        pytest.param(
            f"Thought: why\n{CALL}",
            Parsed(Kind.TOOL_CALL, "why", "k8s.get_pods", {"namespace": "x"}),
            id="thought_action",
        ),
        pytest.param(
            "Thought: why\nFinal Answer: full", Parsed(Kind.FINAL_ANSWER, "why", final_answer="full"), id="final_answer"
        ),
    ],
)
def test_what_an_answer_has_is_there_and_the_rest_is_empty(text: str, parsed: Parsed) -> None:
    assert parse_react(text, TOOLS) == parsed


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("Thought: t\nAction: k8s.drop\nAction Input: {}", Kind.UNKNOWN_TOOL, id="unknown_tool"),
        pytest.param("Thought: t", Kind.MALFORMED, id="malformed"),
    ],
)
def test_what_cannot_be_done_has_feedback_and_nothing_to_do(text: str, kind: Kind) -> None:
    parsed = parse_react(text, TOOLS)
    assert (parsed.kind, parsed.final_answer, parsed.thought) == (kind, "", "t")
    assert parsed.feedback


def test_names_and_arguments_come_without_what_surrounds_them() -> None:
    parsed = parse_react("Action:   k8s.logs  \nAction Input:   ", TOOLS)
    assert (parsed.tool, parsed.arguments) == ("k8s.logs", {})


def test_an_answer_may_skip_its_thought() -> None:
    parsed = parse_react(CALL, TOOLS)
    assert (parsed.kind, parsed.thought, parsed.tool) == (Kind.TOOL_CALL, "", "k8s.get_pods")


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        pytest.param('{"namespace": "x", "limit": 2}', {"namespace": "x", "limit": 2}, id="JSON"),
        pytest.param("\nnames:\n  - a\n  - b", {"names": ["a", "b"]}, id="YAML"),
        pytest.param("namespace: x, limit: 2", {"namespace": "x", "limit": 2}, id="key: value"),
        pytest.param("namespace=x, limit=2", {"namespace": "x", "limit": 2}, id="key=value"),
        pytest.param("namespace: x, limit=2", {"namespace": "x", "limit": 2}, id="mixed"),
        pytest.param("the pods of x", {"input": "the pods of x"}, id="raw"),
    ],
)
def test_arguments_come_in_every_form(written: str, arguments: dict[str, object]) -> None:
    assert parse_react(f"Thought: t\nAction: k8s.get_pods\nAction Input: {written}", TOOLS).arguments == arguments


@pytest.mark.parametrize("empty", ["", " ", "\n", "{}", " {}\n"])
def test_an_empty_input_means_no_arguments(empty: str) -> None:
    parsed = parse_react(f"Thought: t\nAction: k8s.logs\nAction Input:{empty}", TOOLS)
    assert (parsed.kind, parsed.tool, parsed.arguments) == (Kind.TOOL_CALL, "k8s.logs", {})


@for_each("end", [".", "!", "?"])
@for_each("between", ["", " ", "`", "**", " ** ", "` "])
def test_a_sentence_may_run_into_the_next_section(end: str, between: str) -> None:
    called = parse_react(f"Thought: why{end}{between}{CALL}", TOOLS)
    assert (called.kind, called.tool, called.thought) == (Kind.TOOL_CALL, "k8s.get_pods", f"why{end}")
    answered = parse_react(f"Thought: why{end}{between}Final Answer: full", TOOLS)
    assert (answered.kind, answered.final_answer, answered.thought) == (Kind.FINAL_ANSWER, "full", f"why{end}")


@pytest.mark.parametrize("separator", ["Thought\nwhy", "Thought:\nwhy", "Thought: \n\nwhy"])
def test_a_thought_may_begin_on_the_next_line(separator: str) -> None:
    parsed = parse_react(f"{separator}\n{CALL}", TOOLS)
    assert (parsed.kind, parsed.thought) == (Kind.TOOL_CALL, "why")


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("Thought: look. action: k8s.logs", id="the word in another case"),
        pytest.param("Thought: first Action: none, then Action: k8s.logs", id="the last of several"),
        pytest.param("Thought: the next Action\nk8s.logs", id="the bare word"),
        pytest.param("Thought: look. Action k8s.logs", id="the bare word on its line"),
    ],
)
def test_an_action_is_found_behind_its_input(before: str) -> None:
    parsed = parse_react(f"{before}\nAction Input: {{}}", TOOLS)
    assert (parsed.kind, parsed.tool) == (Kind.TOOL_CALL, "k8s.logs")


def test_an_input_that_is_missing_is_not_made_up() -> None:
    assert parse_react("Thought: t\nAction: k8s.logs", TOOLS).kind is Kind.MALFORMED


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("k8s.logs", Kind.TOOL_CALL),
        ("some.tool.with.dots", Kind.TOOL_CALL),
        ("nodots", Kind.UNKNOWN_TOOL),
        ("k8s.", Kind.MALFORMED),
        (".logs", Kind.MALFORMED),
    ],
)
def test_a_name_is_taken_apart_at_its_first_dot(name: str, kind: Kind) -> None:
    assert parse_react(f"Thought: t\nAction: {name}\nAction Input: {{}}").kind is kind


@pytest.mark.parametrize("text", ["", None, "...", "!?.", "Action:", "Action Input:", "Thought:", "Final Answer:"])
def test_boundary_conditions_are_malformed_and_never_raise(text: object) -> None:
    parsed = parse_react(text, TOOLS)  # type: ignore[arg-type]
    assert parsed.kind is Kind.MALFORMED
    assert parsed.feedback.startswith("FORMAT ERROR:")


@pytest.mark.parametrize(
    "text",
    [
        f"{CALL}\nObservation: pods: 3\nThought: fine\nFinal Answer: invented",
        f"{CALL}\n[Based on the tool output, the pods are fine]\nFinal Answer: invented",
        f"{CALL}\n\nObservation:\nAction: k8s.logs\nAction Input: {{}}",
    ],
)
def test_reading_stops_where_a_model_begins_to_invent(text: str) -> None:
    parsed = parse_react(text, TOOLS)
    assert (parsed.kind, parsed.tool, parsed.arguments) == (Kind.TOOL_CALL, "k8s.get_pods", {"namespace": "x"})
