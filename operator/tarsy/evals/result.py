"""Defines the result of a measured suite as a file: what programs read, and the baseline of a later measurement."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from tarsy.evals.agreement import JudgeRole
from tarsy.evals.expectations import Outcome
from tarsy.evals.verdict import CaseSamples, SuiteVerdict, Verdict

FORMAT: Final = "tarsy.dev/eval-result/v1"
MAX_BYTES: Final = 64 << 20
"""Maximum size of a result that is read as a baseline."""


class ResultError(ValueError):
    """A file is no result that can be compared with; the message names the file and the remedy."""


class _Part(BaseModel):
    """A part of a result. Fields of newer versions are ignored."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


Count = Annotated[int, Field(ge=0)]


class CheckResult(_Part):
    """One check of a sample."""

    name: str
    outcome: Outcome
    sentence: str


class SampleResult(_Part):
    """One run of a case: its outcome, what it found and what it cost.

    `cost_usd` is None where the cost is not known completely, `coverage` where the run called no tool. `citations` are
    those of the finding, of which `held` are supported by a result of the run. `spent_usd` is the known and estimated
    cost, which a budget counts.
    """

    outcome: Outcome
    confident_wrong: bool = False
    failure: str | None = None
    confidence: str | None = None
    summary: str = ""
    checks: tuple[CheckResult, ...] = ()
    coverage: float | None = None
    model_calls: Count = 0
    tool_calls: Count = 0
    citations: Count = 0
    held: Count = 0
    tokens: Count = 0
    cost_usd: Decimal | None = None
    spent_usd: Decimal = Decimal(0)
    seconds: float = 0.0


class CaseResult(_Part):
    """Samples of one case. `asked` is the number that the suite asks for; a reached budget leaves fewer."""

    name: str
    digest: str
    chain: str
    plan_hash: str
    asked: Count
    samples: tuple[SampleResult, ...] = ()

    def counted(self) -> CaseSamples:
        """Returns the numbers that a verdict is made of."""
        return CaseSamples(
            self.name,
            self.digest,
            passed=sum(one.outcome is Outcome.PASSED for one in self.samples),
            failed=sum(one.outcome is Outcome.FAILED for one in self.samples),
            inconclusive=sum(one.outcome is Outcome.INCONCLUSIVE for one in self.samples),
            confident_wrong=sum(one.confident_wrong for one in self.samples),
            asked=self.asked,
        )


class VerdictResult(_Part):
    """The verdict with its reasons and statistics."""

    verdict: Verdict
    reasons: tuple[str, ...]
    pass_rate: float | None
    interval: tuple[float, float]
    p_value: float | None
    pass_at_k: float | None
    pass_all_k: float | None
    power: str
    regressed: tuple[str, ...]
    improved: tuple[str, ...]
    flaky: tuple[str, ...]


class Totals(_Part):
    """Sums over all samples. `cost_usd` is a lower bound unless `cost_complete`; None: no cost is known."""

    samples: Count = 0
    tokens: Count = 0
    cost_usd: Decimal | None = None
    cost_complete: bool = False
    confident_wrong: Count = 0
    citations: Count = 0
    held: Count = 0


class JudgeResult(_Part):
    """The judge of the suite: what its answers are worth (`tarsy.evals.agreement`), and its usage."""

    role: JudgeRole
    sentence: str
    kappa: float | None = None
    answers: Count = 0
    calls: Count = 0
    failed_calls: Count = 0
    tokens: Count = 0
    cost_usd: Decimal | None = None
    cost_complete: bool = True


class EvalResult(_Part):
    """A measured suite."""

    format: Literal["tarsy.dev/eval-result/v1"] = FORMAT
    suite_digest: str
    verdict: VerdictResult
    totals: Totals
    judge: JudgeResult | None = None
    cases: tuple[CaseResult, ...]


def make_result(
    suite_digest: str, cases: Sequence[CaseResult], verdict: SuiteVerdict, judge: JudgeResult | None = None
) -> EvalResult:
    """Returns the result of a measured suite.

    Args:
        suite_digest: of the suite.
        cases: with their samples.
        verdict: on them.
        judge: of the suite; None: it has none.
    """
    told = VerdictResult(
        verdict=verdict.verdict,
        reasons=verdict.reasons,
        pass_rate=verdict.pass_rate,
        interval=(verdict.interval.low, verdict.interval.high),
        p_value=verdict.p_value,
        pass_at_k=verdict.pass_at,
        pass_all_k=verdict.pass_all,
        power=verdict.power,
        regressed=verdict.regressed,
        improved=verdict.improved,
        flaky=verdict.flaky,
    )
    return EvalResult(suite_digest=suite_digest, verdict=told, totals=totals_of(cases), judge=judge, cases=tuple(cases))


def totals_of(cases: Sequence[CaseResult]) -> Totals:
    """Sums the samples of cases."""
    samples = [sample for case in cases for sample in case.samples]
    costs = [sample.cost_usd for sample in samples if sample.cost_usd is not None]
    return Totals(
        samples=len(samples),
        tokens=sum(sample.tokens for sample in samples),
        cost_usd=sum(costs, Decimal(0)) if costs else None,
        cost_complete=len(costs) == len(samples),
        confident_wrong=sum(sample.confident_wrong for sample in samples),
        citations=sum(sample.citations for sample in samples),
        held=sum(sample.held for sample in samples),
    )


def write_result(result: EvalResult) -> str:
    """Returns the file of a result."""
    told = result.model_dump(mode="json", by_alias=True)
    return orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n"


def read_baseline(data: bytes, name: str, suite: Sequence[tuple[str, str]]) -> tuple[CaseSamples, ...]:
    """Reads a result as the baseline of a suite.

    Args:
        data: content of the file.
        name: of the file, for errors.
        suite: name and digest of each case of the suite.

    Raises:
        ResultError: it is no result, or none of its cases is the same as in the suite.
    """
    if len(data) > MAX_BYTES:
        raise ResultError(f"{name}: {len(data):,} bytes; a baseline has at most {MAX_BYTES:,}")
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ResultError(f"{name}: is no JSON ({error}); {_REMEDY}") from None
    said = found.get("format") if isinstance(found, dict) else None
    if said != FORMAT:
        raise ResultError(f"{name}: format: is {str(said)[:60]!r}, must be {FORMAT!r}; {_REMEDY}")
    try:
        result = EvalResult.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ResultError(f"{name}: {where}: {first['msg']}; {_REMEDY}") from None
    known = set(suite)
    # A judge that decides marks the digests (`tarsy.evals.cases.FrozenJudge.marked`).
    if known and not any((case.name, case.digest.partition("+")[0]) in known for case in result.cases):
        raise ResultError(
            f"{name}: is a result of another suite: no case of it has the recording and expectation of a case of this "
            f"suite. Measure the baseline again with these cases"
        )
    return tuple(case.counted() for case in result.cases)


_REMEDY = "write a baseline with `tarsy eval run ... --out json=FILE`"
