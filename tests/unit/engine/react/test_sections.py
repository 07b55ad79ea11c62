"""Which header counts, and whose text is whose, row by row."""

import pytest

from for_each import for_each
from tarsy.engine.strategies.react import Kind, parse_react
from tarsy.llm import ToolDefinition

TOOLS = (
    ToolDefinition("k8s.get_pods", "Lists pods"),
    ToolDefinition("k8s.logs", "Reads logs"),
    ToolDefinition("prom.query", "Runs a query"),
)
CALL = 'Action: k8s.get_pods\nAction Input: {"namespace": "x"}'


@for_each("tools", [(), TOOLS], ids=["no tools known", "tools known"])
@for_each(
    ("text", "thought"),
    [
        pytest.param(f"Thought: why\n{CALL}", "why", id="3.2 tier 1: header at the start of a line"),
        pytest.param(
            'Thought:why\nAction:k8s.get_pods\nAction Input:{"namespace": "x"}', "why", id="3.2 tier 1: no space"
        ),
        pytest.param(f"Thought\nwhy\n{CALL}", "why", id="3.2 tier 1b: Thought alone on its line"),
        pytest.param(f"Thought about it first.\n{CALL}", "", id="3.2 tier 1b: prose is not a header"),
        pytest.param(f"Thought: why.{CALL}", "why.", id="3.2 tier 3 and thought split: no space"),
        pytest.param(f"Thought: why! {CALL}", "why!", id="3.2 tier 3: exclamation mark"),
        pytest.param(f"Thought: why?`{CALL}", "why?", id="3.2 tier 3: a backtick between"),
        pytest.param(
            'Thought: why.** Action:** k8s.get_pods\nAction Input: {"namespace": "x"}', "why.", id="3.2 tier 3: **"
        ),
        pytest.param('Thought: why. Action: k8s.get_pods. Action Input: {"namespace": "x"}', "why.", id="3.2 tier 3b"),
        pytest.param(CALL, "", id="3.3 row 1: no thought"),
        pytest.param(f"Thought: one. Two! Why? {CALL}", "one. Two! Why?", id="3.3 row 4: several sentences"),
        pytest.param(f"Thought: why...{CALL}", "why...", id="3.3 row 5: three dots"),
        pytest.param(
            'Thought: why\nAction: k8s.get_pods\nAction Input:\n{"namespace": "x"}', "why", id="3.3 row 7: next line"
        ),
        pytest.param(
            'Thought: why\n\n\nAction: k8s.get_pods\n\nAction Input: {"namespace": "x"}\n\n', "why", id="3.3 row 8"
        ),
        pytest.param(
            '  Thought: why \r\n\tAction:  k8s.get_pods\r\n  Action Input: {"namespace": "x"}  \r\n', "why", id="row 9"
        ),
        pytest.param(f"Thought: a\nAction: k8s.logs\nAction Input: {{}}\nThought: why\n{CALL}", "why", id="row 10"),
        pytest.param(
            'Thought: why\nAction: k8s.get_pods\nAction Input: {"a": 1}\nAction Input: {"namespace": "x"}',
            "why",
            id="row 10: last input",
        ),
        pytest.param(f"Thought: why\n{CALL}\nAction Input:\nAction:\nThought:", "why", id="row 12: empty never wins"),
        pytest.param(f"Thought: why\n{CALL}\nFinal Answer: invented", "why", id="row 13: call, then answer"),
        pytest.param(f"Final Answer: invented\nThought: why\n{CALL}", "why", id="row 13: answer, then call"),
        pytest.param(f"Thought: why\n{CALL}\nObservation: invented\nFinal Answer: x", "why", id="row 15: Observation"),
        pytest.param(f"Thought: why\n{CALL}\n[Based on the output]\nFinal Answer: x", "why", id="row 15: [Based on"),
        pytest.param(f"Thought: why\nObservation: Please specify a tool.\n{CALL}", None, id="row 16: Please specify"),
        pytest.param(f"Observation: what Action you want to take\nThought: why\n{CALL}", "why", id="row 16: what"),
        pytest.param(f"Observation: Error in reasoning: x.\nThought: why\n{CALL}", "why", id="row 16: Error"),
        pytest.param(
            'Thought: why\nAction\nk8s.get_pods\nAction Input: {"namespace": "x"}', "why", id="row 17: own line"
        ),
        pytest.param(
            'Thought: why. Action\nk8s.get_pods\nAction Input: {"namespace": "x"}', "why.", id="row 17: in a sentence"
        ),
        pytest.param('Thought: why\nAction:\nk8s.get_pods\nAction Input: {"namespace": "x"}', "why", id="row 18"),
        pytest.param('Action Input: {"namespace": "x"}\nThought: why\nAction: k8s.get_pods', "why", id="row 19"),
        pytest.param(f"<think>why</think>\n{CALL}", "why", id="row 20: think block"),
        pytest.param(f"<think>why\n{CALL}", "why", id="row 20: never closed"),
        pytest.param(f"why\n</think>\n{CALL}", "why", id="row 20: never opened"),
        pytest.param(f"Sure, let me help.\n\nThought: why\n{CALL}", "why", id="row 21: narrative"),
        pytest.param(f"Thought: why {CALL}", "why", id="row 22: no punctuation"),
    ],
)
def test_a_call_in_an_odd_form_is_still_that_call(
    text: str, thought: str | None, tools: tuple[ToolDefinition, ...]
) -> None:
    parsed = parse_react(text, tools)

    assert (parsed.kind, parsed.tool, parsed.arguments) == (Kind.TOOL_CALL, "k8s.get_pods", {"namespace": "x"})
    assert (parsed.final_answer, parsed.feedback) == ("", "")
    if thought is not None:
        assert parsed.thought == thought


@for_each("tools", [(), TOOLS], ids=["no tools known", "tools known"])
@for_each(
    ("text", "thought", "answer"),
    [
        pytest.param("Thought: done\nFinal Answer: full", "done", "full", id="3.2 tier 1"),
        pytest.param("Final Answer: full", "", "full", id="3.3 row 1: no thought"),
        pytest.param("Thought: done. Final Answer: full", "done.", "full", id="3.2 tier 2"),
        pytest.param("Thought: done!`Final Answer: full", "done!", "full", id="3.2 tier 2: backtick"),
        pytest.param("Thought: done.**Final Answer:** full", "done.", "full", id="3.2 tier 2: **"),
        pytest.param("I looked. Final Answer: full", "", "full", id="3.2 tier 2: after narrative"),
        pytest.param(
            "Final Answer:\n# A\n\n  - b\n\n```\ncode\n```\n", "", "# A\n\n  - b\n\n```\ncode\n```", id="lines"
        ),
        pytest.param("Final Answer: a\nFinal Answer: b", "", "a\nFinal Answer: b", id="row 11: the first wins"),
        pytest.param("Final Answer:\nFinal Answer: b", "", "b", id="row 12: an empty one does not"),
        pytest.param("Thought: t\nAction: k8s.get_pods\nFinal Answer: full", "t", "full", id="row 14: no input"),
        pytest.param("Final Answer: full\nAction: k8s.get_pods", "", "full\nAction: k8s.get_pods", id="row 14"),
        pytest.param("Final Answer: full\nObservation: invented", "", "full", id="row 15: Observation"),
        pytest.param("Final Answer: full\n[Based on what I saw]", "", "full", id="row 15: [Based on"),
        pytest.param("Final Answer: a. Action: b Action Input: {}", "", "a. Action: b Action Input: {}", id="row 13"),
        pytest.param("<think>Final Answer: no</think>\nFinal Answer: yes", "Final Answer: no", "yes", id="rehearsed"),
        pytest.param("Action: None\nAction Input: None\nFinal Answer: full", "", "full", id="no action"),
        pytest.param("Action: Final Answer\nAction Input: full", "", "full", id="the answer as an action"),
    ],
)
def test_a_final_answer_is_found_whole(text: str, thought: str, answer: str, tools: tuple[ToolDefinition, ...]) -> None:
    parsed = parse_react(text, tools)

    assert (parsed.kind, parsed.thought, parsed.final_answer) == (Kind.FINAL_ANSWER, thought, answer)
    assert (parsed.tool, parsed.arguments, parsed.feedback) == ("", {}, "")


@pytest.mark.parametrize("late", ["Action: restart it\nAction Input: now", "Action: k8s.drop\nAction Input: {}"])
def test_a_final_answer_is_taken_back_only_by_a_tool_that_exists(late: str) -> None:
    answer = f"cause found\n\n{late}\n\nThought: and so on"

    assert parse_react(f"Final Answer: {answer}", TOOLS).final_answer == answer


def test_a_call_quoted_in_a_final_answer_is_not_made() -> None:
    text = f"Final Answer: next time do\n```\n{CALL}\n```\nand wait"

    assert parse_react(text, TOOLS).kind is Kind.FINAL_ANSWER


def test_a_call_in_a_fence_of_its_own_is_made() -> None:
    assert parse_react(f"```\nThought: why\n{CALL}\n```", TOOLS).arguments == {"namespace": "x"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Thought: more to see… Action: k8s.get_pods", id="3.7: a unicode ellipsis is no boundary"),
        pytest.param("Thought: the Final Answer: is near", id="3.2 tier 2 wants punctuation"),
        pytest.param("Thought: x\nfinal answers: many", id="a word that only begins like a header"),
    ],
)
def test_what_only_looks_like_a_header_is_none(text: str) -> None:
    parsed = parse_react(text, TOOLS)

    assert parsed.kind is Kind.MALFORMED
    assert parsed.thought == text.removeprefix("Thought: ")


@for_each(
    ("thought", "action", "given"),
    [
        ("**Thought:** why", "**Action:** k8s.get_pods", "**Action Input:** {}"),
        ("**Thought**: why", "**Action**: k8s.get_pods", "**Action Input**: {}"),
        ("**Thought: why**", "**Action: k8s.get_pods**", "**Action Input: {}**"),
        ("### Thought: why", "### Action: k8s.get_pods", "### Action Input: {}"),
        ("### Thought\nwhy", "### Action\nk8s.get_pods", "### Action Input\n{}"),
        ("## **Thought**\nwhy", "## **Action:**\nk8s.get_pods", "## **Action Input:**\n{}"),
        ("`Thought:` why", "`Action:` k8s.get_pods", "`Action Input:` {}"),
        ("- Thought: why", "- Action: k8s.get_pods", "- Action Input: {}"),
        ("* **Thought:** why", "* **Action:** k8s.get_pods", "* **Action Input:** {}"),
        ("1. Thought: why", "2. Action: k8s.get_pods", "3. Action Input: {}"),
        ("> Thought: why", "> Action: k8s.get_pods", "> Action Input: {}"),
        ("_Thought:_ why", "_Action:_ k8s.get_pods", "_Action Input:_ {}"),
        ("thought: why", "action: k8s.get_pods", "action input: {}"),
        ("THOUGHT: why", "ACTION: k8s.get_pods", "ACTION INPUT: {}"),
        ("Thought： why", "Action：k8s.get_pods", "Action Input： {}"),
        ("Thought : why", "Action : k8s.get_pods", "Action Input : {}"),
        ("Thought 1: why", "Action 1: k8s.get_pods", "Action Input 1: {}"),
        ("Thought: why", "Action: k8s.get_pods", "Action_Input: {}"),
        ("Thought: why", "Action: k8s.get_pods", "ActionInput: {}"),
    ],
)
def test_markup_letter_case_and_colons_of_headers_do_not_matter(thought: str, action: str, given: str) -> None:
    for tools in ((), TOOLS):
        parsed = parse_react("\n".join([thought, action, given]), tools)
        assert (parsed.kind, parsed.tool, parsed.arguments) == (Kind.TOOL_CALL, "k8s.get_pods", {})
        assert parsed.thought == "why"


@pytest.mark.parametrize(
    "header",
    [
        "**Final Answer:**",
        "**Final Answer**:",
        "### Final Answer\n",
        "### Final Answer:",
        "FINAL ANSWER:",
        "> Final Answer:",
        *["final answer：", "- Final Answer:", "`Final Answer:`", "__Final Answer:__", "## 3. **Final Answer**\n"],
    ],
)
def test_a_final_answer_header_may_be_dressed_up(header: str) -> None:
    parsed = parse_react(f"Thought: why\n{header} it was **full**")

    assert (parsed.kind, parsed.thought, parsed.final_answer) == (Kind.FINAL_ANSWER, "why", "it was **full**")


@pytest.mark.parametrize(
    "text",
    [
        'Action: k8s.get_pods Action Input: {"namespace": "x"}',
        'Thought: why Action: k8s.get_pods Action Input: {"namespace": "x"}',
        'Thought: why. **Action:** `k8s.get_pods` **Action Input:** {"namespace": "x"}',
        'Action: k8s.get_pods, Action Input: {"namespace": "x"}',
        "action: k8s.get_pods action input: namespace: x",
    ],
)
def test_header_and_input_may_share_a_line(text: str) -> None:
    parsed = parse_react(text, TOOLS)

    assert (parsed.kind, parsed.tool, parsed.arguments) == (Kind.TOOL_CALL, "k8s.get_pods", {"namespace": "x"})


def test_every_line_of_a_thought_is_kept() -> None:
    thought = "first\n\n- second\n  third: 3\n\n> fourth\n- Action: restart it\nFinal words"

    assert parse_react(f"Thought: {thought}\n{CALL}", TOOLS).thought == thought


def test_an_action_a_thought_only_talks_about_stays_in_the_thought() -> None:
    parsed = parse_react(f"Thought: The plan. Action: we look at pods.\nThen we wait.\n{CALL}", TOOLS)

    assert (parsed.thought, parsed.tool) == ("The plan. Action: we look at pods.\nThen we wait.", "k8s.get_pods")


def test_every_line_of_a_block_quote_is_unquoted() -> None:
    quoted = '> Thought: one\n> two\n> Action: k8s.get_pods\n> Action Input: {\n>   "namespace": "x"\n> }'

    parsed = parse_react(quoted, TOOLS)

    assert (parsed.thought, parsed.arguments) == ("one\ntwo", {"namespace": "x"})


def test_thinking_blocks_come_before_the_thought() -> None:
    parsed = parse_react(f"<think>\nAction: k8s.logs\nAction Input: {{}}\n</think>\nThought: why\n{CALL}", TOOLS)

    assert parsed.thought == "Action: k8s.logs\nAction Input: {}\n\nwhy"
    assert parsed.tool == "k8s.get_pods"


def test_a_parameter_called_action_is_not_a_header() -> None:
    parsed = parse_react("Action: k8s.get_pods\nAction Input:\naction: restart\ntarget: web", TOOLS)

    assert parsed.arguments == {"action": "restart", "target": "web"}


def test_a_call_that_was_begun_last_does_not_undo_a_whole_one() -> None:
    assert parse_react(f"{CALL}\nAction: k8s.logs", TOOLS).tool == "k8s.get_pods"


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("Thought: the best Action is to look", id="3.4: no tool behind the word"),
        pytest.param("Thought: action: a.b.c", id="3.4: exactly one dot"),
        pytest.param("Thought: nothing of the kind", id="3.4: no word"),
    ],
)
def test_an_input_without_a_recoverable_action_stays_malformed(before: str) -> None:
    parsed = parse_react(f"{before}\nAction Input: {{}}")

    assert parsed.kind is Kind.MALFORMED
    assert "must be preceded by" in parsed.feedback


def test_the_invented_rest_of_a_run_is_not_read() -> None:
    text = f"Thought: why\n{CALL}\nObservation: none\nAction: k8s.logs\nAction Input: {{}}\nFinal Answer: x"

    assert parse_react(text, TOOLS).tool == "k8s.get_pods"
    assert parse_react("Thought: why\n**Action:** k8s.logs\n**Action Input:** a=b\n**Observation:** x").arguments == {
        "a": "b"
    }


def test_a_stored_answer_reads_as_the_one_that_came() -> None:
    came = 'Thought: wh\x00y\r\nAction: k8s.get\x1b_pods\r\nAction Input: {"namespace": "x\ud800"}'
    stored = 'Thought: why\nAction: k8s.get_pods\nAction Input: {"namespace": "x\ufffd"}'

    assert parse_react(came, TOOLS) == parse_react(stored, TOOLS)
    assert parse_react(stored, TOOLS).arguments == {"namespace": "x\ufffd"}
