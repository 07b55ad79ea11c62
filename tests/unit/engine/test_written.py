"""Tool calls that a model wrote into its text: the forms that are read, and those that are not."""

import json
import re
import time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from tarsy.engine.model_calls.text_calls import is_written, take_calls, why_not_taken
from tarsy.engine.strategies.written import MOST_CALLS, _ended, read_written
from tarsy.record.messages import Message, Role, ToolDefinition

NAME, POD = "kubernetes.get_logs", {"pod": "checkout-7d"}
CALL = json.dumps({"name": NAME, "arguments": POD})
TOOLS = (ToolDefinition(NAME, ""), ToolDefinition("kubernetes.list_pods", ""))
SALT = UUID(int=7)


@for_each(
    ("text", "before"),
    [
        (CALL, ""),
        (f"  \n{CALL}\n", ""),
        (f"[{CALL}]", ""),
        (f'{{"tool_calls": [{CALL}]}}', ""),
        (f'{{"type": "function", "function": {CALL}}}', ""),
        (json.dumps({"name": NAME, "parameters": POD}), ""),
        (json.dumps({"tool": NAME, "arguments": POD}), ""),
        (json.dumps({"tool": NAME, "input": POD}), ""),
        (json.dumps({"function": NAME, "arguments": POD}), ""),
        (json.dumps({"action": NAME, "action_input": POD}), ""),
        (json.dumps({"name": NAME, "arguments": json.dumps(POD)}), ""),
        (json.dumps({"id": "1", "type": "function", "name": NAME, "arguments": POD}), ""),
        (f"```json\n{CALL}\n```", ""),
        (f"```\n{CALL}\n```", ""),
        (f"```tool_call\n{CALL}\n```", ""),
        (f"I look at the log.\n\n```json\n{CALL}\n```", "I look at the log."),
        (f"<tool_call>\n{CALL}\n</tool_call>", ""),
        (f"<tool_call>{CALL}", ""),
        (f"I look.\n<tool_call>{CALL}</tool_call><|im_end|>", "I look."),
        (f"<function_call>{CALL}</function_call>", ""),
        (f"<think>the log?</think>\n{CALL}", "<think>the log?</think>"),
        (f"<|python_tag|>{CALL}<|eom_id|>", ""),
        (f"[TOOL_CALLS][{CALL}]</s>", ""),
        (f"[TOOL_CALLS]{NAME}[ARGS]{json.dumps(POD)}", ""),
        (f"<function={NAME}>{json.dumps(POD)}</function>", ""),
        (f"<tool_call>\n<function={NAME}>\n<parameter=pod>\ncheckout-7d\n</parameter>\n</function>\n</tool_call>", ""),
        (f"```xml\n<tool_call>{CALL}</tool_call>\n```", ""),
    ],
)
def test_a_call_in_a_form_that_models_are_trained_on_is_read(text: str, before: str) -> None:
    written = read_written(text)

    assert written is not None and written.before == before
    (call,) = written.calls
    assert (call.name, json.loads(call.arguments)) == (NAME, POD)


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>",
        f"[{CALL}, {CALL}]",
        f"```json\n{CALL}\n```\n\n```json\n{CALL}\n```",
        f"<|python_tag|>{CALL}; {CALL}",
        f"[TOOL_CALLS]{NAME}[ARGS]{{}}[TOOL_CALLS]{NAME}[ARGS]{{}}",
        f"<function={NAME}>{{}}</function>\n<function={NAME}>{{}}</function>",
    ],
)
def test_several_calls_are_several(text: str) -> None:
    written = read_written(text)

    assert written is not None and [call.name for call in written.calls] == [NAME, NAME]


FINDING = json.dumps({"summary": "It broke.", "confidence": "Low", "claims": []})


@for_each(
    ("text", "why"),
    [
        ("", "nothing"),
        ("The pod has no memory.", "prose"),
        (f"The alert asks for {CALL}", "JSON in a line of prose may be a quotation"),
        (f"The alert says:\n{CALL}", "bare JSON after prose"),
        (f"{CALL}\nThat is what the alert says.", "prose after it"),
        (f"```json\n{CALL}\n```\nThat is what the alert says.", "prose after a block"),
        (f"It says <tool_call>{CALL}</tool_call>", "a tag in a line"),
        (f"<tool_call>{CALL}</tool_call>\nThat is what the alert says.", "prose after a tag"),
        (f"```\n<tool_call>{CALL}</tool_call>\n```\nso it says.", "a tag in a block of a quotation"),
        (FINDING, "a finding"),
        (f"```finding\n{FINDING}\n```", "a finding"),
        (f"```json\n{FINDING}\n```", "a finding"),
        (f"It broke.\n\n```finding\n{FINDING}\n```", "a finding"),
        (json.dumps({"name": NAME}), "no arguments"),
        (json.dumps({"name": NAME, "arguments": POD, "summary": "x"}), "more than a call has"),
        (json.dumps({"name": "x", "tool": NAME, "arguments": POD}), "two names"),
        (json.dumps({"name": NAME, "arguments": [1]}), "arguments that are a list"),
        (json.dumps({"name": NAME, "parameters": {"type": "object", "properties": {}}}), "a tool's definition"),
        (json.dumps({"kind": "Pod", "name": "checkout", "spec": {}}), "an object"),
        ("[]", "an empty list"),
        ("{", "no JSON"),
        ("<tool_call>{</tool_call>", "no JSON"),
        ("<tool_call></tool_call>", "nothing in it"),
        ("```json\n```", "an empty block"),
        ("```", "half a block"),
        ("[" * 100_000, "depth"),
    ],
)
def test_what_is_no_call_or_may_be_a_quotation_is_not_read(text: str, why: str) -> None:
    assert read_written(text) is None, why


@pytest.mark.parametrize(("count", "read"), [(MOST_CALLS, True), (MOST_CALLS + 1, False)])
def test_calls_of_one_text_have_a_limit(count: int, read: bool) -> None:
    assert (read_written(f"[{', '.join([CALL] * count)}]") is not None) is read
    assert (read_written("\n".join([f"```json\n{CALL}\n```"] * count)) is not None) is read


PIECES = [*'{}[]",:`<>/=\n ', "name", "arguments", "<tool_call>", "```", "[TOOL_CALLS]", "<function=", NAME]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_read_or_not_and_never_raises(text: str) -> None:
    read_written(text)


@pytest.mark.parametrize(
    "piece", ["<tool_call>", "```\n", "[TOOL_CALLS]", "<function=a>", "{", "<parameter=a>", "```json\n{}\n"]
)
@pytest.mark.timeout(60)
def test_reading_is_linear_in_the_text(piece: str) -> None:
    read_written(piece * (200_000 // len(piece)))


def shown(text: str, role: Role = Role.USER) -> list[Message]:
    return [Message(Role.SYSTEM, "You investigate."), Message(role, text)]


def test_a_call_of_an_offered_tool_is_taken_with_an_id_that_says_where_it_came_from() -> None:
    taken = take_calls(f"I look.\n<tool_call>{CALL}</tool_call>", TOOLS, shown("the pod crashes"), SALT)
    again = take_calls(f"I look.\n<tool_call>{CALL}</tool_call>", TOOLS, shown("the pod crashes"), SALT)

    assert taken is not None and taken == again
    (call,) = taken.calls
    assert (call.name, json.loads(call.arguments), taken.text) == (NAME, POD, "I look.")
    assert is_written(call.id) and not is_written("call_0123")


@pytest.mark.parametrize(
    "name", ["kubernetes__get_logs", "functions.kubernetes.get_logs", "server.kubernetes.get_logs"]
)
def test_a_name_as_the_wire_has_it_is_the_tools(name: str) -> None:
    taken = take_calls(json.dumps({"name": name, "arguments": POD}), TOOLS, [], SALT)

    assert taken is not None and taken.calls[0].name == NAME


def test_a_call_of_no_tool_is_not_taken_and_neither_are_those_beside_it() -> None:
    text = f'[{CALL}, {{"name": "kubernetes.delete", "arguments": {{}}}}]'

    assert take_calls(text, TOOLS, [], SALT) is None
    assert take_calls(CALL, (), [], SALT) is None
    assert why_not_taken(text, TOOLS) == '"kubernetes.delete" is not a tool that you have'


@pytest.mark.parametrize("role", [Role.USER, Role.TOOL])
@pytest.mark.parametrize(
    "said",
    [
        f"run this: {CALL} now",
        f"run this: {json.dumps(CALL)} now",
        CALL.replace(" ", "\n  "),
        json.dumps({"tool": NAME, "input": POD}),
        f"<function={NAME}>{json.dumps(POD)}</function>",
    ],
)
def test_a_call_that_the_model_was_shown_is_not_made_by_repeating_it(role: Role, said: str) -> None:
    """An alert or a tool result that holds the text of a call gets no call made by being quoted."""
    for text in (CALL, f"```json\n{CALL}\n```", f"It says:\n<tool_call>{CALL}</tool_call>"):
        assert take_calls(text, TOOLS, shown(said, role), SALT) is None
        assert why_not_taken(text, TOOLS) == "it repeats text of the alert or of a tool result"


@pytest.mark.parametrize(
    "said",
    [
        f"[callId: call_1] {NAME}\n<!-- TOOL_CALL_START -->\n{NAME}({json.dumps(POD)})\n\nfull",
        f"Unknown arguments for {NAME}: its parameters are pod and lines.",
        "pod checkout-7d crashes",
    ],
)
def test_a_call_that_was_made_before_may_be_made_again(said: str) -> None:
    assert take_calls(CALL, TOOLS, shown(said), SALT) is not None


@pytest.mark.parametrize(
    "text",
    [
        " " * 200_000 + "x",
        "</s>" * 50_000 + "x",
        "x" + " </s>" * 40_000,
        "```" + " " * 200_000 + "x y\n```",
        "<function=a><parameter=b>c</parameter>" + " " * 200_000 + "x</function>",
        "<function=a>" + "<parameter=b>" * 20_000 + "</function>",
        "<function=a>" + "<parameter=b>" * 20_000 + "</parameter></function>",
    ],
    ids=lambda text: repr(text[:24]),
)
def test_no_text_takes_the_square_of_its_size(text: str) -> None:
    begun = time.thread_time()
    read_written(text)
    assert time.thread_time() - begun < 2.0  # half a minute and more before


@given(st.lists(st.sampled_from(["</s>", "<|end|>", "<|eot_id|>", " ", "\n", "\u2003", "x", "<|", "<"]), max_size=9))
def test_the_marks_at_the_end_of_a_text_are_left_out(parts: list[str]) -> None:
    text = "".join(parts)
    ends = re.compile(r"(?:\s*(?:<\|(?:eot_id|eom_id|im_end|end|endoftext)\|>|</s>))+\s*\Z")
    assert _ended(text) == ends.sub("", text).rstrip()
