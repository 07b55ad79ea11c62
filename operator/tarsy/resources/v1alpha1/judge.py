"""Defines the judge of a suite: a model that answers yes/no questions about findings.

Decision: a judge is measured before it may decide. Published judges approve fluent wrong answers nearly as often as
right ones, so its answers count only when they agree with those of people about the same findings (`labels` of the
cases). Otherwise they are shown, and change no outcome.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import LabelName, Model, Unique
from tarsy.resources.v1alpha1.common import NameRef

MAX_QUESTIONS = 16
MAX_LABELS = 8
AGREEMENT_MIN = 0.7
"""Smallest agreement (Cohen's kappa) with people at which a judge may decide."""


class ChecklistQuestion(Model):
    """One question about a finding."""

    name: LabelName = Field(description="Name of the question, unique in the checklist.")
    question: Annotated[str, StringConstraints(min_length=1, max_length=512)] = Field(
        description="Yes/no question. Yes is the good answer and requires a quote from the finding."
    )


class JudgeBudget(Model):
    """Usage limits of the judge in one EvalRun. When one is reached, the judge is not asked any more."""

    tokens: Annotated[int, Field(ge=1, le=1_000_000_000_000, json_schema_extra={"format": "int64"})] | None = Field(
        default=None, description="Total tokens, as counted by the provider."
    )
    cost_usd: Annotated[float, Field(ge=0.0001, le=1_000_000)] | None = Field(
        default=None, alias="costUSD", description="Cost in US dollars. Requires rates on the LLMProvider."
    )


class SuiteJudge(Model):
    """A model that answers a checklist about each finding, at temperature 0."""

    llm_provider_ref: NameRef = Field(description="LLMProvider in the same namespace.")
    checklist: Annotated[tuple[ChecklistQuestion, ...], Unique("name")] = Field(
        min_length=1, max_length=MAX_QUESTIONS, description="Questions, all asked in one call for each finding."
    )
    gates: bool = Field(
        default=False,
        description="Whether the answers affect the outcome. They do only if their agreement with people is measured "
        "in the same EvalRun and is high enough. Otherwise they are only shown.",
    )
    agreement_min: Annotated[float, Field(ge=AGREEMENT_MIN, le=1)] = Field(
        default=AGREEMENT_MIN,
        description="Smallest agreement (Cohen's kappa) with the labels of the suite at which the answers affect the "
        "outcome.",
    )
    budget: JudgeBudget | None = Field(default=None, description="Usage limits in one EvalRun.")


class LabelledAnswer(Model):
    """The answer of a person to one question."""

    question: LabelName = Field(description="Name of a question of the checklist.")
    answer: Literal["Yes", "No"] = Field(description="Answer of the person.")


class LabelledFinding(Model):
    """A finding, and the answers that a person gave about it."""

    finding: Annotated[str, StringConstraints(min_length=1, max_length=4096)] = Field(
        description="Text of the finding, such as its summary and claims."
    )
    answers: Annotated[tuple[LabelledAnswer, ...], Unique("question")] = Field(
        min_length=1, max_length=MAX_QUESTIONS, description="Answers of a person."
    )
