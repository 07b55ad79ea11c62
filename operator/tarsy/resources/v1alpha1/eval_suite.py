"""EvalSuite: recorded incidents with the expected outcome of each, and the gate that a candidate must pass.

Decision: each case is copied into the database when the suite is first seen, and is masked again. So neither retention
nor an edit of its source changes what a suite measures; a changed case has another digest, and is not compared with
older results.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import LabelName, Lenient, Model, Unique, ValidationRule, clipped
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    READY_COLUMNS,
    Author,
    ConfigMapKeyRef,
    ConfigStatus,
    ObjectRef,
)
from tarsy.resources.v1alpha1.expectation import Expectation, Gate
from tarsy.resources.v1alpha1.git_source import GitSource
from tarsy.resources.v1alpha1.judge import MAX_LABELS, LabelledFinding, SuiteJudge
from tarsy.resources.v1alpha1.scoring import ScoringStatus, SuiteScoring

MAX_CASES = 200
Samples = Annotated[int, Field(ge=1, le=20)]
Digest = Annotated[str, StringConstraints(max_length=64)]
Total = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]


class CaseSource(Model):
    """Source of a recording. Set exactly one."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "(has(self.investigationRef) ? 1 : 0) + (has(self.configMapKeyRef) ? 1 : 0) + (has(self.git) ? 1 : 0) == 1",
            "set exactly one of investigationRef (a finished Investigation), configMapKeyRef and git (a cassette)",
            lambda self: [self.investigation_ref, self.config_map_key_ref, self.git].count(None) == 2,
        ),
    )

    investigation_ref: ObjectRef | None = Field(
        default=None,
        description="Finished Investigation in the same namespace, whose record is copied. The author of the suite "
        "needs permission to get investigations/trace of it.",
    )
    config_map_key_ref: ConfigMapKeyRef | None = Field(
        default=None,
        description="Key of a ConfigMap with a cassette, in data or binaryData. The author of the suite needs "
        "permission to get the ConfigMap.",
    )
    git: GitSource | None = Field(
        default=None, description="Cassette in a public Git repository, of at most 16 MiB. No credentials are sent."
    )


class EvalCase(Model):
    """One recorded incident and its expected outcome."""

    name: LabelName = Field(description="Name of the case, unique in the suite.")
    source: CaseSource = Field(description="Source of the recording.")
    expect: Expectation = Field(description="Expected outcome.")
    coverage_min: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="Smallest share of the tool calls that the recording must answer. Below it a sample is "
        "inconclusive. Defaults to 0.7.",
    )
    labels: tuple[LabelledFinding, ...] = Field(
        default=(),
        max_length=MAX_LABELS,
        description="Findings about this incident with the answers of people to the checklist. They measure the judge.",
    )


class EvalBudget(Model):
    """Usage limits of a whole EvalRun. When one is reached, no further sample is started."""

    tokens: Annotated[int, Field(ge=1, le=1_000_000_000_000, json_schema_extra={"format": "int64"})] | None = Field(
        default=None, description="Total tokens of all samples, as counted by the providers."
    )
    cost_usd: Annotated[float, Field(ge=0.0001, le=1_000_000)] | None = Field(
        default=None,
        alias="costUSD",
        description="Cost of all samples in US dollars. Requires rates on every LLMProvider of the candidate.",
    )


class EvalSuiteSpec(Model):
    """Cases, samples and gate."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "!has(self.scoring) || has(self.judge)",
            "set judge too: it is the model that scores",
            lambda self: self.scoring is None or self.judge is not None,
            field="scoring",
        ),
    )

    description: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Purpose of the suite."
    )
    cases: Annotated[tuple[EvalCase, ...], Unique("name")] = Field(
        default=(), max_length=MAX_CASES, description="Cases of the suite. A suite without cases never passes."
    )
    samples: Samples = Field(default=1, description="Number of runs of each case.")
    parallelism: Annotated[int, Field(ge=1, le=50)] = Field(
        default=4, description="Maximum samples of one EvalRun that are unfinished at a time."
    )
    budget: EvalBudget | None = Field(default=None, description="Usage limits of a whole EvalRun.")
    gate: Gate = Field(default_factory=Gate, description="Rule that decides whether a candidate passes.")
    judge: SuiteJudge | None = Field(
        default=None,
        description="Model that answers a checklist about each finding, in addition to the checks that need no model.",
    )
    scoring: SuiteScoring | None = Field(
        default=None,
        description="Lets the judge score investigations that have ended. A score is advice: it changes no finding and "
        "no verdict.",
    )
    author: Author | None = Field(
        default=None,
        description="The user who created this object. Set by admission; leave it out. Recordings are copied only if "
        "this user may read them.",
    )


class CaseCounts(Lenient):
    """Number of cases of the suite."""

    total: Total = Field(default=0, description="Number of cases.")
    stored: Total = Field(default=0, description="Number of cases whose recording is stored.")


class EvalSuiteStatus(ConfigStatus):
    """Readiness of the suite."""

    cases: CaseCounts | None = Field(default=None, description="Number of cases of the suite.")
    digest: Digest | None = Field(
        default=None, description="Digest of all recordings and expectations. It changes with each of them."
    )
    last_run: Annotated[str, clipped(253), StringConstraints(max_length=253)] | None = Field(
        default=None, description="Name of the EvalRun that finished last."
    )
    last_verdict: Annotated[str, clipped(32), StringConstraints(max_length=32)] | None = Field(
        default=None, description="Verdict of the EvalRun that finished last."
    )
    scoring: ScoringStatus | None = Field(default=None, description="Progress of scoring. Not set without scoring.")


class EvalSuite(Resource[EvalSuiteSpec, EvalSuiteStatus]):
    """Recorded incidents with their expected outcomes, which decide whether a Chain has become better or worse."""

    KIND: ClassVar[str] = "EvalSuite"
    PLURAL: ClassVar[str] = "evalsuites"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tsuite",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Cases", ".status.cases.total", "integer", "Number of cases."),
        Column("Samples", ".spec.samples", "integer", "Number of runs of each case."),
        Column("Last run", ".status.lastRun", description="EvalRun that finished last."),
        Column("Verdict", ".status.lastVerdict", description="Verdict of the EvalRun that finished last."),
        AGE,
        Column("Description", ".spec.description", description="Purpose of the suite.", wide=True),
        Column(
            "Scoring",
            '.status.conditions[?(@.type=="Scoring")].reason',
            description="Whether investigations are scored, and why not. Empty without scoring.",
            wide=True,
        ),
        MESSAGE_COLUMN,
    )

    kind: Literal["EvalSuite"] = "EvalSuite"
    spec: EvalSuiteSpec
    status: EvalSuiteStatus = EvalSuiteStatus()
