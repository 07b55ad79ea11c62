"""EvalRun: one candidate, measured with a suite and compared with a baseline.

Decision: an EvalRun is immutable, and a new measurement is a new object. The samples are Investigations with
`spec.replay`, so they run on the same workers, under the same limits, and have the same record as any other run.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource, Status
from tarsy.resources.schema import LabelName, Lenient, Model, ObjectName, Time, ValidationRule, clipped
from tarsy.resources.v1alpha1.common import WEEK_SECONDS, Author, NameRef, TtlSeconds, immutable
from tarsy.resources.v1alpha1.eval_suite import Digest, Total

EvalPhase = Literal["Pending", "Running", "Passed", "Regressed", "Insufficient", "Cancelled"]
MAX_NAMED_CASES = 20


class EvalCandidate(Model):
    """The configuration that is measured."""

    chain_ref: NameRef = Field(description="Chain to measure. Looked up first in this namespace.")
    llm_provider_ref: NameRef | None = Field(
        default=None, description="LLMProvider that all agents use instead of their own."
    )


class EvalBaseline(Model):
    """The measurement to compare with."""

    eval_run_ref: NameRef = Field(description="Finished EvalRun of the same suite, in the same namespace.")


class EvalRunSpec(Model):
    """Suite, candidate and baseline."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "oldSelf.desiredState == 'Running' || self.desiredState == oldSelf.desiredState",
            "desiredState can only move forward: Running, Cancelled; to measure again, create a new object",
            field="desiredState",
            reason="FieldValueForbidden",
        ),
        *immutable("EvalRun", "suiteRef", "candidate", "baseline", "author"),
    )

    suite_ref: NameRef = Field(description="EvalSuite in the same namespace.")
    candidate: EvalCandidate = Field(description="Configuration to measure.")
    baseline: EvalBaseline | None = Field(
        default=None,
        description="Measurement to compare with. Without it, only the floors of the suite's gate decide.",
    )
    author: Author | None = Field(
        default=None,
        description="The user who created this object. Set by admission; leave it out. The samples run on behalf of "
        "this user.",
    )
    desired_state: Literal["Running", "Cancelled"] = Field(
        default="Running", description="Desired state. Cancelled: stop all samples. It can only move forward."
    )
    ttl_seconds_after_finished: TtlSeconds = Field(
        default=WEEK_SECONDS * 12, description="Seconds from the end of the run to the deletion of this object."
    )


class MeasuredCandidate(Lenient):
    """The configuration that was measured, as it was when the run started."""

    chain: ObjectName | None = Field(default=None, description="Name of the Chain.")
    chain_namespace: LabelName | None = Field(default=None, description="Namespace of the Chain.")
    revision: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="Revision of the Chain that was measured, Agents and servers included."
    )


class OutcomeCounts(Lenient):
    """Number of samples or cases by outcome."""

    total: Total = Field(default=0, description="Number of samples that the suite requires.")
    passed: Total = Field(default=0, description="Number that passed.")
    failed: Total = Field(default=0, description="Number that failed.")
    inconclusive: Total = Field(default=0, description="Number that could not be judged.")
    flaky: Total | None = Field(default=None, description="Number of cases of which some samples passed.")


class JudgeStatus(Lenient):
    """The judge of the run: what its answers are worth, and its usage."""

    role: Annotated[str, clipped(16), StringConstraints(max_length=16)] | None = Field(
        default=None,
        description="Gates: its answers affect the verdict. Informs: its answers are only shown. Unavailable: its "
        "answers were meant to affect the verdict, but its agreement with people could not be measured. Not set "
        "until this is known.",
    )
    agreement: Annotated[str, StringConstraints(max_length=16)] | None = Field(
        default=None, description="Agreement with people (Cohen's kappa). Not set if it is not defined or not measured."
    )
    answers: Total | None = Field(
        default=None, description="Number of answers of people used to measure the agreement."
    )
    message: Annotated[str, clipped(512), StringConstraints(max_length=512)] | None = Field(
        default=None, description="Reason for the role."
    )
    calls: Total = Field(default=0, description="Number of calls.")
    failed_calls: Total = Field(default=0, description="Number of calls that failed or were interrupted.")
    total_tokens: Total = Field(default=0, description="Tokens of its calls.")
    cost_usd: Annotated[str, StringConstraints(max_length=32)] | None = Field(
        default=None,
        alias="costUSD",
        description="Cost of its calls in US dollars. A trailing + marks a lower bound. Not set if no cost is known.",
    )


class EvalRunStatus(Status):
    """Progress and verdict of the run."""

    phase: EvalPhase | None = Field(
        default=None,
        description="Phase for display: Pending (waits for its suite or candidate), Running, or the verdict: Passed, "
        "Regressed, Insufficient, Cancelled.",
    )
    candidate: MeasuredCandidate | None = Field(default=None, description="Configuration that was measured.")
    suite_digest: Digest | None = Field(default=None, description="Digest of the suite when the run started.")
    progress: Annotated[str, StringConstraints(max_length=16)] | None = Field(
        default=None, description="Finished and total samples, such as 4/6."
    )
    samples: OutcomeCounts | None = Field(default=None, description="Number of samples by outcome.")
    cases: OutcomeCounts | None = Field(default=None, description="Number of cases by outcome.")
    pass_rate: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="Share of the conclusive cases that passed, with its 95 % interval."
    )
    failed_cases: tuple[LabelName, ...] = Field(
        default=(), max_length=MAX_NAMED_CASES, description="First 20 cases that failed."
    )
    regressed_cases: tuple[LabelName, ...] = Field(
        default=(), max_length=MAX_NAMED_CASES, description="First 20 cases that passed in the baseline and fail now."
    )
    total_tokens: Total | None = Field(default=None, description="Tokens of all samples.")
    cost_usd: Annotated[str, StringConstraints(max_length=32)] | None = Field(
        default=None,
        alias="costUSD",
        description="Cost of all samples in US dollars. A trailing + marks a lower bound. Not set if no cost is known.",
    )
    judge: JudgeStatus | None = Field(default=None, description="Judge of the suite. Not set without one.")
    summary: Annotated[str, clipped(1024), StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Reasons for the verdict."
    )
    power: Annotated[str, clipped(256), StringConstraints(max_length=256)] | None = Field(
        default=None, description="Smallest loss that the comparison can detect."
    )
    started_at: Time | None = Field(default=None, description="Time at which the first sample was created.")
    finished_at: Time | None = Field(default=None, description="Time at which the verdict was reached.")


class EvalRun(Resource[EvalRunSpec, EvalRunStatus]):
    """Measurement of one candidate. To wait for it: kubectl wait --for=condition=Complete teval/NAME."""

    KIND: ClassVar[str] = "EvalRun"
    PLURAL: ClassVar[str] = "evalruns"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("teval",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("Suite", ".spec.suiteRef.name", description="Suite used for the measurement."),
        Column("Chain", ".spec.candidate.chainRef.name", description="Chain that is measured."),
        Column("Revision", ".status.candidate.revision", description="Revision that is measured."),
        Column("Phase", ".status.phase", description="Phase of the run, or its verdict."),
        Column("Progress", ".status.progress", description="Finished and total samples."),
        Column("Pass rate", ".status.passRate", description="Share of the conclusive cases that passed."),
        Column("Tokens", ".status.totalTokens", "integer", "Tokens of all samples so far."),
        Column("Cost", ".status.costUSD", description="Cost so far in US dollars. A trailing + marks a lower bound."),
        AGE,
        Column("Baseline", ".spec.baseline.evalRunRef.name", description="EvalRun to compare with.", wide=True),
        Column("Author", ".spec.author.username", description="User on whose behalf the samples run.", wide=True),
        Column("Judge", ".status.judge.role", description="Whether the answers of the judge decide.", wide=True),
        Column("Summary", ".status.summary", description="Reasons for the verdict.", wide=True),
    )
    SELECTABLE_FIELDS: ClassVar[tuple[str, ...]] = (".spec.suiteRef.name", ".spec.candidate.chainRef.name")

    kind: Literal["EvalRun"] = "EvalRun"
    spec: EvalRunSpec
    status: EvalRunStatus = EvalRunStatus()
