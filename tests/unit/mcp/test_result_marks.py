"""Tests the integrity classes of results: what objects declare, and what servers mark."""

from typing import Any

import mcp_types as types
import pytest

from tarsy.mcp.result_marks import RESULT_INTEGRITY, evidence_marks, result_marks
from tarsy.plan.model import DataFlowPlan, EvidencePlan, EvidenceRule
from tarsy.record.integrity import EvidenceMarks, Integrity, checked_spans, read_marks
from unit.engine.build import agent

TEXT = "exitCode: 1\nthe database is down"


def result(marks: Any, *texts: str) -> types.CallToolResult:
    content = [types.TextContent(type="text", text=text) for text in texts or (TEXT,)]
    return types.CallToolResult(content=list(content), _meta={RESULT_INTEGRITY: marks})


def rule(integrity: str, *tools: str) -> EvidenceRule:
    return EvidenceRule(tools=tools, integrity=Integrity(integrity))


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (None, None),
        (EvidencePlan(), EvidenceMarks()),
        (EvidencePlan(trust_marks=True), EvidenceMarks(Integrity.A, ((0, 11),))),
        (EvidencePlan(rules=(rule("X", "get_*"),), trust_marks=True), EvidenceMarks(Integrity.X)),
        (EvidencePlan(rules=(rule("K", "get_*"),), trust_marks=True), EvidenceMarks(Integrity.K)),
        (EvidencePlan(rules=(rule("K", "list_*"), rule("X", "*"))), EvidenceMarks(Integrity.X)),
        (EvidencePlan(rules=(rule("X", "list_*"),), state_tools=("get_pod",)), EvidenceMarks(state=True)),
    ],
)
def test_marks_count_only_where_the_object_trusts_them(
    declared: EvidencePlan | None, expected: EvidenceMarks | None
) -> None:
    assert evidence_marks(declared, "get_pod", result({"K": [[0, 11]]}), TEXT) == expected


@pytest.mark.parametrize(
    ("tool", "declared", "is_error", "expected"),
    [
        ("get_orders", None, False, EvidenceMarks(sensitive=True)),
        ("get_orders", None, True, EvidenceMarks(sensitive=True)),
        ("list_pods", None, False, None),
        ("list_pods", EvidencePlan(), True, None),
        ("get_orders", EvidencePlan(rules=(rule("X", "*"),)), False, EvidenceMarks(Integrity.X, sensitive=True)),
    ],
)
def test_results_of_sensitive_tools_are_labelled_also_errors(
    tool: str, declared: EvidencePlan | None, is_error: bool, expected: EvidenceMarks | None
) -> None:
    server = agent(servers=("k",)).servers[0]
    server = server.model_copy(update={"evidence": declared, "data_flow": DataFlowPlan(sensitive=("get_*",))})
    answer = result({}).model_copy(update={"is_error": is_error})
    assert result_marks(server, tool, answer, TEXT) == expected


@pytest.mark.parametrize("marks", [None, [], "K", {"K": None}, {"K": "0,11"}, {"K": [[0]]}, {"K": [["0", "11"]]}])
def test_marks_of_another_form_are_none(marks: Any) -> None:
    assert evidence_marks(EvidencePlan(trust_marks=True), "get", result(marks), TEXT) == EvidenceMarks()


def test_marks_of_several_blocks_of_text_are_none() -> None:
    marked = result({"K": [[0, 11]]}, "exitCode: 1", "another text")
    assert evidence_marks(EvidencePlan(trust_marks=True), "get", marked, "exitCode: 1\nanother text") == EvidenceMarks()


@pytest.mark.parametrize(
    ("spans", "left"),
    [
        ([[0, 8]], ((0, 8),)),
        ([[0, 7]], ()),
        ([[12, 20]], ((12, 20),)),
        ([[12, 21]], ()),
        ([[-1, 9]], ()),
        ([[9, 0]], ()),
        ([[0, 10], [9, 20], [10, 20]], ((0, 10), (10, 20))),
    ],
)
def test_only_spans_within_the_text_and_in_order_count(spans: list[list[int]], left: tuple[object, ...]) -> None:
    assert checked_spans(spans, 20) == left


def test_spans_move_with_a_text_that_is_masked_and_those_that_it_hit_are_gone() -> None:
    before = "token=abcdefgh1\nexitCode: 137\nnote: exitCode: 137"
    marks = EvidenceMarks(Integrity.A, ((0, 15), (16, 29)), state=True)
    after = "token=[MASKED_TOKEN]\nexitCode: 137\nnote: exitCode: 137"
    moved = marks.moved(before, after)
    assert list(moved.pieces(after)) == ["exitCode: 137"] and moved.state
    assert marks.moved(before, before) is marks
    assert marks.moved(before, "withheld").control == ()
    assert read_marks(marks.as_json()) == marks and read_marks(None) == EvidenceMarks()
    assert read_marks({**marks.as_json(), "class": "Newer"}) == EvidenceMarks(Integrity.X), "the least that is known"
