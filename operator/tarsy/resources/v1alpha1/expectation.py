"""Defines what a case of an EvalSuite expects of a run, and when a suite of cases passes.

Decision: the same models are the YAML of a cluster (EvalSuite) and of a folder of cases, so that a case means the same
in both. The checks themselves are pure functions (`tarsy.evals.expectations`, `tarsy.evals.verdict`).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Model, Unique, ValidationRule

ExpectedVerdict = Literal["Cause", "NoFault", "Inconclusive"]
MAX_ENTITIES = 16
MAX_FACTS = 16
MAX_EXPRESSION = 1024

ENTITY = r"^([A-Za-z]{1,63}/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?(-?\*)?$"
Entity = Annotated[str, StringConstraints(min_length=2, max_length=253, pattern=ENTITY)]
_Entities = Annotated[tuple[Entity, ...], Unique()]
_ToolPath = Annotated[str, StringConstraints(min_length=3, max_length=169, pattern=r"^[a-z0-9-]+\.[A-Za-z0-9_./-]+$")]
_Share = Annotated[float, Field(ge=0, le=1)]


class RootCause(Model):
    """Root cause of the incident."""

    entities: _Entities = Field(
        min_length=1,
        max_length=MAX_ENTITIES,
        description="Objects that are the cause, as KIND/NAME or NAME. Each must be blamed in a supported claim. An * "
        "at the end stands for the rest of a name, such as Pod/checkout-*.",
    )


class Fact(Model):
    """A statement about the run in CEL."""

    expression: Annotated[str, StringConstraints(min_length=1, max_length=MAX_EXPRESSION)] = Field(
        description="CEL expression that must be true. Variables: claims (the supported claims, with text and tools), "
        "finding (summary, confidence), calls (tool, failed), steps, costUSD."
    )
    message: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = Field(
        default=None, description="Message that is reported when the expression is false."
    )


class RequiredTools(Model):
    """Tools that the run must call."""

    required: Annotated[tuple[_ToolPath, ...], Unique()] = Field(
        min_length=1, max_length=32, description="Tools, as SERVER.TOOL. Each must be called at least once."
    )


class CitationPrecision(Model):
    """Quality of the citations."""

    precision_min: _Share = Field(
        description="Smallest share of citations that hold, of all citations of the finding. From 0 to 1."
    )


class CaseLimits(Model):
    """Limits of one run of a case."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.costUSD) || has(self.steps)",
            "set costUSD, steps or both",
            lambda self: self.cost_usd is not None or self.steps is not None,
        ),
    )

    cost_usd: Annotated[float, Field(ge=0.0001, le=1_000_000)] | None = Field(
        default=None, alias="costUSD", description="Maximum cost of the run in US dollars. The cost must be known."
    )
    steps: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="Maximum model calls of the run."
    )


class Expectation(Model):
    """Expected outcome of a case. All checks that are set must hold."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.rootCause) || has(self.distractors) || has(self.facts) || has(self.verdict) || has(self.tools) "
            "|| has(self.citations) || has(self.limits)",
            "expect at least one thing: rootCause, distractors, facts, verdict, tools, citations or limits",
            lambda self: self.model_fields_set - {"no_confident_wrong"} != set(),
        ),
        ValidationRule(
            "!has(self.rootCause) || !has(self.verdict) || self.verdict == 'Cause'",
            "rootCause needs the verdict Cause; remove one of them",
            lambda self: self.root_cause is None or self.verdict in (None, "Cause"),
            field="verdict",
        ),
    )

    root_cause: RootCause | None = Field(default=None, description="Root cause that the finding must blame.")
    distractors: _Entities = Field(
        default=(), max_length=MAX_ENTITIES, description="Objects that no supported claim may blame."
    )
    facts: tuple[Fact, ...] = Field(default=(), max_length=MAX_FACTS, description="Statements that must be true.")
    verdict: ExpectedVerdict | None = Field(
        default=None,
        description="Expected verdict. Cause: a supported claim explains a fault. NoFault: the summary says that "
        "nothing is wrong. Inconclusive: the finding has confidence Inconclusive, or no supported claim.",
    )
    tools: RequiredTools | None = Field(default=None, description="Tools that the run must call.")
    citations: CitationPrecision | None = Field(default=None, description="Required quality of the citations.")
    no_confident_wrong: bool = Field(
        default=True,
        description="Whether a wrong finding with confidence High is counted as confidently wrong, which the gate of "
        "the suite limits.",
    )
    limits: CaseLimits | None = Field(default=None, description="Limits of one run.")


class Gate(Model):
    """Rule that decides whether a candidate passes."""

    pass_rate_min: _Share = Field(
        default=0.8, description="Smallest share of conclusive cases that must pass. Below it the run is Regressed."
    )
    confident_wrong_max: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=0, description="Maximum samples that are confidently wrong. Above it the run is Regressed."
    )
    inconclusive_max: Annotated[float, Field(ge=0, le=0.5)] = Field(
        default=0.2, description="Largest share of inconclusive cases. Above it the run is Insufficient."
    )
    alpha: Annotated[float, Field(ge=0.001, le=0.5)] = Field(
        default=0.05, description="Significance level of the paired comparison with the baseline."
    )
    detectable_loss_max: Annotated[float, Field(ge=0.01, le=1)] | None = Field(
        default=None,
        description="Smallest loss that the comparison must be able to detect with a power of 0.8, as the share of "
        "cases that newly fail. If the suite has too few cases, the run is Insufficient.",
    )
