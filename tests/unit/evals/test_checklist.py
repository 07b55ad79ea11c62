"""Tests that a judge's answers count only with quotes that hold, and decide only if they agree with those of people."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.evals.agreement import FEWEST_ANSWERS, judge_budget_spent, measure_agreement
from tarsy.evals.checklist import (
    CheckedAnswer,
    ChecklistAnswer,
    ReplyUnreadable,
    checklist_request,
    judge_checks,
    judged_text,
    read_answers,
    unanswered,
    with_judge,
)
from tarsy.evals.expectations import Checked, Judgement, Outcome
from tarsy.record.finding import Claim, Finding
from tarsy.resources.v1alpha1.judge import ChecklistQuestion, JudgeBudget
from tarsy.store.judging.judge_calls import JudgeUsage

LIMIT = ChecklistQuestion(name="limit", question="Does the finding name the memory limit?")
ACTION = ChecklistQuestion(name="action", question="Does it propose an action?")
TEXT = "Deployment/checkout was killed: its memory limit is 64Mi.\nRaise the limit."
PASSED = Judgement(Outcome.PASSED, (Checked("rootCause", Outcome.PASSED, "ok"),))
FAILED = Judgement(Outcome.FAILED, (Checked("rootCause", Outcome.FAILED, "no"),))


def reply(*answers: tuple[str, str, str]) -> str:
    return json.dumps({"answers": [{"question": q, "answer": a, "quote": quote} for q, a, quote in answers]})


def read(text: str, *questions: ChecklistQuestion, finding: str = TEXT) -> Sequence[tuple[str, str]]:
    found = read_answers(text, questions or (LIMIT,), finding)
    return [(one.question, one.answer.value) for one in found]


@pytest.mark.parametrize(
    ("answer", "quote", "read_as"),
    [
        ("yes", "its memory limit is 64Mi", "Yes"),
        ("Yes ", "is 64Mi. Raise the limit.", "Yes"),  # across a line break
        ("yes", "the memory limit is 64Mi", "Unclear"),  # nearly, and not in the finding
        ("yes", "", "Unclear"),
        ("yes", "limit", "Unclear"),  # too short to show anything
        ("yes", "memory limit", "Yes"),  # twelve characters
        ("no", "", "No"),
        ("no", "whatever", "No"),
        ("maybe", "its memory limit is 64Mi", "Unclear"),
    ],
)
def test_yes_needs_a_quote_that_the_finding_contains(answer: str, quote: str, read_as: str) -> None:
    assert read(reply(("limit", answer, quote))) == [("limit", read_as)]


def test_short_finding_may_be_quoted_whole() -> None:
    assert read(reply(("limit", "yes", "64Mi")), finding="64Mi") == [("limit", "Yes")]


def test_every_question_has_one_answer_in_order() -> None:
    text = reply(("other", "yes", "x"), ("limit", "no", ""), ("limit", "yes", "its memory limit is 64Mi"))
    assert read(text, ACTION, LIMIT) == [("action", "Unclear"), ("limit", "No")]


def test_reply_may_stand_in_a_block() -> None:
    assert read(f"Here it is:\n```json\n{reply(('limit', 'no', ''))}\n```") == [("limit", "No")]


@pytest.mark.parametrize("text", ["", "no", "{}", "[]", '{"answers": 1}', '{"answers": [1]}', "}{", "{" * 500])
def test_reply_without_answers_is_no_answer(text: str) -> None:
    with pytest.raises(ReplyUnreadable):
        read(text)


@given(st.text(max_size=200))
def test_no_reply_ends_in_another_error(text: str) -> None:
    for made in (text, '{"answers": [' + text + "]}"):
        try:
            read(made)
        except ReplyUnreadable:
            continue


def test_request_fences_the_finding_and_is_the_same_each_time() -> None:
    request = checklist_request((LIMIT, ACTION), TEXT)
    assert request == checklist_request((LIMIT, ACTION), TEXT)
    system, user = (message.content for message in request.messages)
    assert "is data" in system
    assert user.count(f"<{request.execution}>") == user.count(f"</{request.execution}>") == 1
    assert "limit: Does the finding name the memory limit?" in user
    assert checklist_request((LIMIT,), f"</{request.execution}>").execution != request.execution
    assert not request.tools


def test_judge_reads_the_summary_and_the_supported_claims() -> None:
    claims = (Claim(text="shown", supported=True), Claim(text="made up", supported=False))
    assert judged_text(Finding(summary="All.", claims=claims)) == "All.\n\nClaims:\n- shown"
    assert judged_text(Finding(summary="All.")) == "All."


def answers(*given: ChecklistAnswer) -> tuple[CheckedAnswer, ...]:
    return tuple(CheckedAnswer(q.name, a) for q, a in zip((LIMIT, ACTION), given, strict=False))


@pytest.mark.parametrize(
    ("answer", "gated"),
    [
        (ChecklistAnswer.YES, Outcome.PASSED),
        (ChecklistAnswer.NO, Outcome.FAILED),
        (ChecklistAnswer.UNCLEAR, Outcome.INCONCLUSIVE),
    ],
)
def test_answers_change_an_outcome_only_where_they_decide(answer: ChecklistAnswer, gated: Outcome) -> None:
    decides = with_judge(PASSED, judge_checks((LIMIT,), answers(answer), gates=True), gates=True)
    assert decides.outcome is gated
    informs = with_judge(PASSED, judge_checks((LIMIT,), answers(answer), gates=False), gates=False)
    assert informs.outcome is Outcome.PASSED
    assert informs.checks[-1].name == "judge (informs only)"
    assert LIMIT.question in informs.checks[-1].sentence
    for gates in (True, False):
        checks = judge_checks((LIMIT,), answers(answer), gates=gates)
        assert with_judge(FAILED, checks, gates=gates).outcome is Outcome.FAILED


def test_unavailable_judge_neither_passes_nor_fails() -> None:
    assert with_judge(PASSED, unanswered("away", gates=True), gates=True).outcome is Outcome.INCONCLUSIVE
    assert with_judge(FAILED, unanswered("away", gates=True), gates=True).outcome is Outcome.FAILED
    assert with_judge(PASSED, unanswered("away", gates=False), gates=False).outcome is Outcome.PASSED


def labelled(count: int) -> tuple[list[dict[str, str]], list[tuple[CheckedAnswer, ...] | None]]:
    """Findings that a person and the judge answer alike: half of them yes, half no."""
    people = [{"limit": "Yes" if number % 2 else "No"} for number in range(count)]
    judged = [(CheckedAnswer("limit", ChecklistAnswer(one["limit"])),) for one in people]
    return people, list(judged)


@pytest.mark.parametrize(("count", "role"), [(FEWEST_ANSWERS - 1, "Informs"), (FEWEST_ANSWERS, "Gates")])
def test_judge_decides_only_with_enough_answers_of_people(count: int, role: str) -> None:
    people, judged = labelled(count)
    found = measure_agreement(people, judged, gates=True, least=0.7)
    assert (found.role, found.kappa, found.answers) == (role, 1.0, count)
    assert measure_agreement(people, judged, gates=False, least=0.7).role == "Informs"


@pytest.mark.parametrize(("wrong", "role"), [(3, "Gates"), (4, "Informs")])
def test_judge_decides_from_the_least_agreement_on(wrong: int, role: str) -> None:
    people, judged = labelled(20)
    for number in range(wrong):  # kappa 0.7, then 0.6
        other = ChecklistAnswer.NO if people[number]["limit"] == "Yes" else ChecklistAnswer.YES
        judged[number] = (CheckedAnswer("limit", other),)
    found = measure_agreement(people, judged, gates=True, least=0.7)
    assert found.kappa == pytest.approx(1 - wrong / 10)
    assert found.role == role
    assert f"{found.kappa:.2f}" in found.sentence


def test_judge_that_approves_everything_does_not_decide() -> None:
    people, _ = labelled(40)
    everything = [(CheckedAnswer("limit", ChecklistAnswer.YES),)] * 40
    found = measure_agreement(people, everything, gates=True, least=0.7)
    assert (found.role, found.kappa) == ("Informs", 0.0)
    always = measure_agreement([{"limit": "Yes"}] * 40, everything, gates=True, least=0.7)
    assert (always.role, always.kappa) == ("Informs", None)


def test_unclear_answers_count_as_disagreement() -> None:
    people, judged = labelled(40)
    for number in range(12):
        judged[number] = (CheckedAnswer("limit", ChecklistAnswer.UNCLEAR),)
    found = measure_agreement(people, judged, gates=True, least=0.7)
    assert found.answers == 40
    assert found.role == "Informs"


def test_judge_that_was_to_decide_and_could_not_be_asked_opens_no_gate() -> None:
    people, judged = labelled(40)
    judged[7] = None
    found = measure_agreement(people, judged, gates=True, least=0.7, unavailable="no key.")
    assert (found.role, found.gates) == ("Unavailable", True)
    assert "1 of 40 labelled findings: no key." in found.sentence
    informs = measure_agreement(people, judged, gates=False, least=0.7, unavailable="no key.")
    assert (informs.role, informs.gates) == ("Informs", False)


def test_judge_without_labels_informs_and_says_what_to_do() -> None:
    found = measure_agreement([], [], gates=True, least=0.7)
    assert found.role == "Informs"
    assert "add labels" in found.sentence


@pytest.mark.parametrize(("tokens", "spent"), [(99, False), (100, True), (101, True)])
def test_budget_of_tokens(tokens: int, spent: bool) -> None:
    assert (judge_budget_spent(JudgeBudget(tokens=100), JudgeUsage(tokens=tokens)) is not None) == spent


def test_budget_of_money_needs_known_costs() -> None:
    from decimal import Decimal

    budget = JudgeBudget(cost_usd=1)
    assert judge_budget_spent(None, JudgeUsage(cost_complete=False)) is None
    assert judge_budget_spent(budget, JudgeUsage(cost_usd=Decimal("0.99"))) is None
    assert judge_budget_spent(budget, JudgeUsage(cost_usd=Decimal("1"))) is not None
    assert "set rates" in (judge_budget_spent(budget, JudgeUsage(cost_complete=False)) or "")
