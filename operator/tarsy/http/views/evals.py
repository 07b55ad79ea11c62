"""Models of suites and of their runs: a table of case by revision, and the samples of one run.

Decision: outcomes come from the database and not from the status of objects, so a run stays in the table after its
object has expired. A cell contains counts, and words only for what people look for: failed, regressed, flaky.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal, Self
from uuid import UUID

from pydantic import Field

from tarsy.evals.agreement import JudgeAgreement
from tarsy.evals.cases import EvalTerms, read_known_terms
from tarsy.evals.expectations import Outcome
from tarsy.evals.suite_verdict import run_verdict
from tarsy.evals.verdict import CaseRow, SuiteVerdict
from tarsy.http.models import View
from tarsy.http.views.common import NEXT_PAGE, ConditionView, dollars
from tarsy.http.views.configuration import ConfiguredView, configured_fields
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1 import Chain, EvalRun, EvalSuite
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.judging.eval_rows import EvalRunRecord, SampleDetail, StoredCell
from tarsy.store.judging.judge_calls import JudgeUsage


class PromotedChain(View):
    """A chain whose revisions must pass a suite."""

    namespace: str
    name: str
    policy: Literal["Immediate", "WhenPassed"]
    serving_revision: str | None = Field(description="Revision that new runs use. Null before the first one.")
    candidate_revision: str | None = Field(description="Revision of the current objects, where it does not serve yet.")
    promoted: bool | None = Field(description="Value of its Promoted condition. Null until the first check.")
    reason: str | None = Field(description="Reason of its Promoted condition.")
    message: str | None = Field(description="Message of its Promoted condition, with the cases that failed.")

    @classmethod
    def of(cls, chain: Chain) -> Self:
        """Converts a Chain with `spec.promotion`."""
        assert chain.spec.promotion is not None
        found = condition(chain.status.conditions, ConditionType.PROMOTED)
        return cls(
            namespace=chain.metadata.namespace,
            name=chain.metadata.name,
            policy=chain.spec.promotion.policy,
            serving_revision=chain.status.serving_revision,
            candidate_revision=chain.status.candidate_revision,
            promoted=None if found is None or found.status == "Unknown" else found.status == "True",
            reason=found.reason if found else None,
            message=found.message if found else None,
        )


class EvalSuiteItem(ConfiguredView):
    """A suite in a list."""

    description: str | None
    cases: int
    samples: int = Field(description="Number of runs of each case.")
    last_run: str | None = Field(description="Name of the EvalRun that finished last.")
    last_verdict: str | None = Field(description="Verdict of the EvalRun that finished last.")

    @classmethod
    def of(cls, suite: EvalSuite) -> Self:
        """Converts an EvalSuite."""
        return cls(
            **configured_fields(suite),
            description=suite.spec.description,
            cases=len(suite.spec.cases),
            samples=suite.spec.samples,
            last_run=suite.status.last_run,
            last_verdict=suite.status.last_verdict,
        )


class EvalSuiteList(View):
    """Suites, sorted by namespace and name."""

    items: tuple[EvalSuiteItem, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


class JudgeView(View):
    """The judge of a run: what its answers are worth, and its usage."""

    role: Literal["Gates", "Informs", "Unavailable"] | None = Field(
        description="Gates: its answers decide. Informs: they are shown. Unavailable: it was to decide, and its "
        "agreement with people could not be measured. Null until then."
    )
    sentence: str | None = Field(description="Reason for the role.")
    kappa: float | None = Field(description="Agreement with people (Cohen's kappa). Null if it is not defined.")
    answers: int = Field(description="Number of answers of people used to measure the agreement.")
    calls: int
    failed_calls: int = Field(description="Number of calls that failed or were interrupted.")
    tokens: int
    cost_usd: float | None = Field(alias="costUSD", description="Cost in US dollars. Null if unknown.")
    cost_complete: bool = Field(description="False if the cost of some calls is unknown.")

    @classmethod
    def of(cls, agreement: JudgeAgreement | None, usage: JudgeUsage) -> Self:
        """Builds it from the agreement (None: not measured yet) and the usage."""
        return cls(
            role=None if agreement is None else agreement.role,
            sentence=None if agreement is None else agreement.sentence,
            kappa=None if agreement is None else agreement.kappa,
            answers=0 if agreement is None else agreement.answers,
            calls=usage.calls,
            failed_calls=usage.failed,
            tokens=usage.tokens,
            cost_usd=dollars(usage.cost_usd),
            cost_complete=usage.cost_complete,
        )


class MeasuredRun(View):
    """An EvalRun that has begun: one column of the table."""

    namespace: str
    name: str
    uid: UUID
    chain: str
    chain_namespace: str
    revision: str = Field(description="Revision of the chain that was measured.")
    llm_provider: str | None = Field(description="LLMProvider that all agents use instead of their own.")
    baseline: str | None = Field(description="Name of the EvalRun that it is compared with.")
    same_suite: bool = Field(description="Whether it measured the suite as the suite is now.")
    verdict: str | None = Field(description="Passed, Regressed, Insufficient or Cancelled. Null before the end.")
    summary: str | None = Field(description="Reasons for the verdict.")
    power: str | None = Field(description="Smallest loss that the comparison can detect.")
    pass_rate: float | None = Field(description="Share of the conclusive cases that passed. Null if there is none.")
    pass_rate_low: float = Field(description="Lower end of the 95 % interval of the pass rate.")
    pass_rate_high: float = Field(description="Upper end of the 95 % interval of the pass rate.")
    samples: int = Field(description="Number of samples that the suite asks for.")
    samples_ended: int
    started_at: datetime
    finished_at: datetime | None
    tokens: int
    cost_usd: float | None = Field(alias="costUSD", description="Cost in US dollars. Null if unknown.")
    cost_complete: bool = Field(description="False if the cost of some samples is unknown.")
    judge: JudgeView | None = Field(description="Judge of the suite. Null if the suite had none.")

    @classmethod
    def of(
        cls,
        record: EvalRunRecord,
        terms: EvalTerms,
        found: SuiteVerdict,
        cells: Sequence[StoredCell],
        baseline: str | None,
        digest: str | None,
        judge: JudgeView | None,
    ) -> Self:
        """Builds a column.

        Args:
            record: the run as stored.
            terms: its frozen terms.
            found: the verdict that its samples give.
            cells: its samples by case.
            baseline: name of its baseline; None: it has none, or none on record.
            digest: digest of the suite as it is now.
            judge: of the suite; None: it had none.
        """
        costs = [cell.cost_usd for cell in cells if cell.cost_usd is not None]
        return cls(
            namespace=record.namespace,
            name=record.name,
            uid=record.id,
            chain=record.chain,
            chain_namespace=record.chain_namespace,
            revision=record.revision,
            llm_provider=terms.llm_provider,
            baseline=baseline,
            same_suite=record.suite_digest == digest,
            verdict=record.verdict,
            summary=record.summary,
            power=found.power if record.verdict else None,
            pass_rate=found.pass_rate,
            pass_rate_low=found.interval.low,
            pass_rate_high=found.interval.high,
            samples=terms.samples * len(terms.cases),
            samples_ended=sum(_ended(cell) for cell in cells),
            started_at=record.started_at,
            finished_at=record.finished_at,
            tokens=sum(cell.tokens for cell in cells),
            cost_usd=dollars(sum(costs, Decimal())) if costs else None,
            cost_complete=all(cell.cost_complete for cell in cells),
            judge=judge,
        )


class SuiteCell(View):
    """The samples of one case in one run."""

    asked: int = Field(description="Number of samples that the suite asks for.")
    passed: int
    failed: int
    inconclusive: int
    outcome: Outcome | None = Field(description="Outcome of the case. Null before all samples have ended.")
    flaky: bool = Field(description="Whether some samples passed and others failed.")
    regressed: bool = Field(description="Whether it passed in the baseline and fails now.")
    improved: bool = Field(description="Whether it failed in the baseline and passes now.")
    confident_wrong: int = Field(description="Number of samples with a confident finding that is wrong.")
    coverage: float | None = Field(description="Share of tool calls that the recording answered. Null without a call.")
    rungs: Mapping[str, int] = Field(
        description="Tool calls by the origin of their answers, of the samples whose investigations are on record."
    )
    tokens: int
    cost_usd: float | None = Field(alias="costUSD", description="Cost in US dollars. Null if unknown.")
    cost_complete: bool

    @classmethod
    def of(cls, row: CaseRow, cell: StoredCell, asked: int, regressed: bool, improved: bool, over: bool) -> Self:
        """Builds a cell.

        Args:
            row: the case in the verdict of the run.
            cell: its samples.
            asked: samples that the suite asks for.
            regressed: whether it passed in the baseline and fails now.
            improved: whether it failed in the baseline and passes now.
            over: whether the run has finished.
        """
        decided = over or _ended(cell) >= asked
        return cls(
            asked=asked,
            passed=cell.totals.passed,
            failed=cell.totals.failed,
            inconclusive=cell.totals.inconclusive,
            outcome=row.outcome if decided else None,
            flaky=row.flaky,
            regressed=decided and regressed,
            improved=decided and improved,
            confident_wrong=cell.totals.confident_wrong,
            coverage=cell.coverage,
            rungs=cell.rungs,
            tokens=cell.tokens,
            cost_usd=dollars(cell.cost_usd),
            cost_complete=cell.cost_complete,
        )


class SuiteCase(View):
    """One case: a row of the table."""

    name: str
    in_suite: bool = Field(description="Whether the suite still has this case.")
    cells: tuple[SuiteCell | None, ...] = Field(
        description="In the order of `runs`. Null: the run has no sample of it."
    )


class WaitingRun(View):
    """An EvalRun that has not begun."""

    namespace: str
    name: str
    chain: str
    reason: str | None = Field(description="Why it waits, as one CamelCase word.")
    message: str | None = Field(description="Why it waits, with the remedy.")

    @classmethod
    def of(cls, run: EvalRun) -> Self:
        """Converts an EvalRun."""
        found = condition(run.status.conditions, ConditionType.COMPLETE)
        return cls(
            namespace=run.metadata.namespace,
            name=run.metadata.name,
            chain=run.spec.candidate.chain_ref.name,
            reason=found.reason if found else None,
            message=found.message if found else None,
        )


class EvalSuiteView(View):
    """A suite with its newest runs as a table of case by revision."""

    suite: EvalSuiteItem
    pass_rate_min: float = Field(description="Smallest share of conclusive cases that must pass.")
    confident_wrong_max: int = Field(description="Maximum samples that may be confidently wrong.")
    chains: tuple[PromotedChain, ...] | None = Field(
        description="Chains whose revisions must pass this suite. Null if the caller may not list chains."
    )
    runs: tuple[MeasuredRun, ...] = Field(description="Columns: runs that have begun, the newest first.")
    cases: tuple[SuiteCase, ...] = Field(description="Rows, sorted by name.")
    omitted_cases: int = Field(description="Number of cases of older runs that are left out.")
    waiting: tuple[WaitingRun, ...] = Field(description="Runs that have not begun.")


class EvalCheckView(View):
    """One check of a sample."""

    name: str
    outcome: str
    sentence: str


class EvalSampleView(View):
    """One sample and its outcome."""

    case: str
    sample: int = Field(description="Number of the sample, from 0.")
    investigation: str | None = Field(description="Name of its Investigation. Null when that is not on record.")
    outcome: str | None = Field(description="Passed, Failed or Inconclusive. Null before the end.")
    checks: tuple[EvalCheckView, ...]
    confident_wrong: bool
    coverage: float | None
    tokens: int
    cost_usd: float | None = Field(alias="costUSD")
    cost_complete: bool

    @classmethod
    def of(cls, found: SampleDetail) -> Self:
        """Converts a stored sample."""
        return cls(
            case=found.case_name,
            sample=found.sample,
            investigation=found.investigation,
            outcome=found.outcome,
            checks=tuple(EvalCheckView.model_validate(dict(check)) for check in found.checks),
            confident_wrong=found.confident_wrong,
            coverage=found.coverage,
            tokens=found.tokens,
            cost_usd=dollars(found.cost_usd),
            cost_complete=found.cost_complete,
        )


class EvalRunView(View):
    """A run with a page of its samples."""

    namespace: str
    name: str
    suite: str
    phase: str | None = Field(description="Pending, Running, or the verdict.")
    conditions: tuple[ConditionView, ...]
    run: MeasuredRun | None = Field(description="Null until the run begins.")
    samples: tuple[EvalSampleView, ...] = Field(description="Sorted by case and number.")
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


def measured(
    record: EvalRunRecord,
    cells: Sequence[StoredCell],
    baseline: str | None,
    digest: str | None,
    usage: JudgeUsage,
) -> tuple[MeasuredRun, dict[str, SuiteCell]]:
    """Returns a column of the table, and its cells by case.

    Args:
        record: the run as stored.
        cells: its samples by case.
        baseline: name of its baseline; None: it has none, or none on record.
        digest: digest of the suite as it is now.
        usage: of its judge.
    """
    terms = read_known_terms(record.terms)
    agreement = None if record.agreement is None else JudgeAgreement.model_validate(record.agreement)
    found = run_verdict(terms, [cell.totals for cell in cells], agreement)
    by_name = {cell.totals.name: cell for cell in cells}
    views = {
        row.name: SuiteCell.of(
            row,
            by_name[row.name],
            terms.samples,
            row.name in found.regressed,
            row.name in found.improved,
            record.verdict is not None,
        )
        for row in found.rows
        if row.name in by_name
    }
    judge = None if terms.judge is None else JudgeView.of(agreement, usage)
    return MeasuredRun.of(record, terms, found, cells, baseline, digest, judge), views


def _ended(cell: StoredCell) -> int:
    return cell.totals.passed + cell.totals.failed + cell.totals.inconclusive
