"""Measures the reliability of a judge: its agreement with people about the labelled findings of a suite.

Decision: a judge that was to decide and could not be asked about the labels does not become one that only informs.
Then nothing is known, and no sample passes: an outage must not open the gate.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from tarsy.evals.checklist import CheckedAnswer, ChecklistAnswer
from tarsy.evals.spending import budget_reached
from tarsy.evals.statistics import cohen_kappa
from tarsy.resources.v1alpha1.judge import JudgeBudget
from tarsy.store.judging.judge_calls import JudgeUsage

FEWEST_ANSWERS: Final = 20
"""Answers of people that an agreement needs: of fewer, chance makes any."""

JudgeRole = Literal["Gates", "Informs", "Unavailable"]
_CATEGORIES = tuple(ChecklistAnswer)


class JudgeAgreement(BaseModel):
    """Holds the role of a judge in an EvalRun, with its reason.

    `Gates`: its answers decide. `Informs`: they are shown. `Unavailable`: it was to decide, and its agreement could not
    be measured. `kappa` is None where it is not defined.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    role: JudgeRole
    sentence: str
    kappa: float | None = None
    answers: int = 0

    @property
    def gates(self) -> bool:
        """Whether the answers, or their absence, count."""
        return self.role != "Informs"


def measure_agreement(
    labels: Sequence[Mapping[str, str]],
    judged: Sequence[Sequence[CheckedAnswer] | None],
    *,
    gates: bool,
    least: float,
    unavailable: str = "",
) -> JudgeAgreement:
    """Measures the agreement of a judge with people.

    Args:
        labels: for each labelled finding, the answer of a person (Yes, No) by name of the question.
        judged: for each labelled finding, the answers of the judge; None: it could not be asked.
        gates: whether the suite wants the answers to decide.
        least: smallest agreement at which they may.
        unavailable: why the judge could not be asked.
    """
    missing = sum(answers is None for answers in judged)
    if missing:
        text = f"the judge could not be asked about {missing} of {len(labels)} labelled findings: {unavailable}"
        if gates:
            return JudgeAgreement(role="Unavailable", sentence=f"The judge cannot decide: {text}")
        return JudgeAgreement(role="Informs", sentence=f"The judge informs only; {text}")
    table = [[0] * len(_CATEGORIES) for _ in _CATEGORIES]
    for label, answers in zip(labels, judged, strict=True):
        by_name = {one.question: one.answer for one in answers or ()}
        for question, answer in label.items():
            if question in by_name:
                row, column = ChecklistAnswer(answer), by_name[question]
                table[_CATEGORIES.index(row)][_CATEGORIES.index(column)] += 1
    count = sum(map(sum, table))
    kappa = cohen_kappa(table)
    told = "not defined" if kappa is None else f"{kappa:.2f}"
    measured = f"its agreement with people is {told} (Cohen's kappa of {count} answers)"
    if why := _why_not(gates, kappa, count, least):
        known = f"; {measured}" if count else ""
        return JudgeAgreement(
            role="Informs", sentence=f"The judge informs only: {why}{known}.", kappa=kappa, answers=count
        )
    return JudgeAgreement(role="Gates", sentence=f"The judge decides: {measured}.", kappa=kappa, answers=count)


def judge_budget_spent(budget: JudgeBudget | None, usage: JudgeUsage) -> str | None:
    """Returns why a judge is not asked any more; None: its budget is not reached."""
    return budget_reached(budget, usage, whose="its", unknown="a call is unknown; set rates on its LLMProvider")


def _why_not(gates: bool, kappa: float | None, count: int, least: float) -> str | None:
    """Returns why the answers do not decide; None: they do."""
    if not gates:
        return "judge.gates is not set"
    if count < FEWEST_ANSWERS:
        return f"the suite has {count} answers of people, at least {FEWEST_ANSWERS} are needed; add labels to its cases"
    if kappa is None or kappa < least:
        return f"an agreement of at least {least:.2f} is needed; correct the checklist or the labels"
    return None
