"""Decides whether a candidate passes a suite: its samples by case, the baseline's, and the gate.

Decision: a case counts as passed when most of its conclusive samples passed. Cases are compared in pairs with those of
the baseline, by the exact McNemar test. Only a difference that this test tells, or a broken floor, is Regressed; what
the suite cannot show is Insufficient, and an empty, shrunken or mostly inconclusive suite never passes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean

from tarsy.evals.expectations import Outcome
from tarsy.evals.statistics import (
    MOST_CASES,
    detectable_loss,
    mcnemar_exact,
    pass_all_k,
    pass_at_k,
)
from tarsy.record.judging.interval import Interval, wilson_interval
from tarsy.resources.v1alpha1.expectation import Gate

POWER = 0.8
"""Wanted probability that the comparison shows a loss."""


class Verdict(StrEnum):
    """Verdict on a candidate."""

    PASSED = "Passed"
    REGRESSED = "Regressed"
    INSUFFICIENT = "Insufficient"


@dataclass(frozen=True, slots=True)
class CaseSamples:
    """Samples of one case.

    Attributes:
        name: name of the case.
        digest: digest of recording and expectation; cases with different digests are not compared.
        passed: number of samples that passed.
        failed: number of samples that failed.
        inconclusive: number of samples that could not be judged.
        confident_wrong: number of failed samples that were confidently wrong.
        asked: number of samples that the suite asks for.
    """

    name: str
    digest: str = ""
    passed: int = 0
    failed: int = 0
    inconclusive: int = 0
    confident_wrong: int = 0
    asked: int = 1

    @property
    def conclusive(self) -> int:
        """Number of samples that were judged."""
        return self.passed + self.failed

    @property
    def outcome(self) -> Outcome:
        """Outcome of the case: that of most samples; a case with fewer than half of its samples is Inconclusive."""
        if self.conclusive == 0 or 2 * self.conclusive < self.asked:
            return Outcome.INCONCLUSIVE
        return Outcome.PASSED if 2 * self.passed > self.conclusive else Outcome.FAILED

    @property
    def flaky(self) -> bool:
        """Whether some of its samples passed and others failed."""
        return self.passed > 0 and self.failed > 0


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case in the table of a verdict; `before` None: the baseline has no case to compare it with."""

    name: str
    outcome: Outcome
    before: Outcome | None
    samples: CaseSamples
    baseline: CaseSamples | None

    @property
    def flaky(self) -> bool:
        """Whether some samples of the candidate passed and others failed."""
        return self.samples.flaky


@dataclass(frozen=True, slots=True)
class SuiteVerdict:
    """Verdict with its reasons.

    Attributes:
        verdict: the decision.
        reasons: sentences that explain it, the decisive ones first.
        rows: one row for each case of the suite, by name.
        regressed: names of cases that passed in the baseline and fail now.
        improved: names of cases that failed in the baseline and pass now.
        pass_rate: share of conclusive cases that passed; None: there is none.
        interval: 95 % interval of the pass rate.
        p_value: of the paired comparison; None: nothing was compared.
        pass_at: mean estimate that at least one of all samples of a case passes; None: there is no conclusive case.
        pass_all: mean estimate that all samples of a case pass; None: there is no conclusive case.
        power: sentence about the loss that the suite can show.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    rows: tuple[CaseRow, ...]
    regressed: tuple[str, ...]
    improved: tuple[str, ...]
    pass_rate: float | None
    interval: Interval
    p_value: float | None
    pass_at: float | None
    pass_all: float | None
    power: str
    flaky: tuple[str, ...] = field(default=())


def decide(
    candidate: Sequence[CaseSamples], baseline: Sequence[CaseSamples] | None, gate: Gate, cases: Collection[str]
) -> SuiteVerdict:
    """Decides the verdict on a candidate.

    Args:
        candidate: its samples by case.
        baseline: samples of the baseline by case; None: there is none, only the floors of the gate apply.
        gate: of the suite.
        cases: names of all cases that the suite has.
    """
    ours = {case.name: case for case in candidate if case.name in cases}
    rows = _rows(ours, {case.name: case for case in baseline or ()}, cases)
    judged = [row for row in rows if row.outcome is not Outcome.INCONCLUSIVE]
    passed = sum(row.outcome is Outcome.PASSED for row in judged)
    rate = passed / len(judged) if judged else None
    pairs = [row for row in judged if row.before in (Outcome.PASSED, Outcome.FAILED)]
    regressed = _changed(pairs, Outcome.PASSED, Outcome.FAILED)
    improved = _changed(pairs, Outcome.FAILED, Outcome.PASSED)
    p_value = mcnemar_exact(len(regressed), len(improved)) if pairs else None
    worse = p_value is not None and len(regressed) > len(improved) and p_value <= gate.alpha
    loss = detectable_loss(len(pairs), alpha=gate.alpha, power=POWER) if 0 < len(pairs) <= MOST_CASES else None
    lacking = [
        *_gaps(rows, ours, baseline, cases),
        *_unclear(rows, gate),
        *_blind(loss, len(pairs), baseline is not None, gate),
    ]
    broken = _floors(rate, passed, len(judged), rows, gate)
    compared = [_regression(regressed, improved, p_value, gate)] if worse else []
    if compared or (broken and not lacking):
        verdict, first, then = Verdict.REGRESSED, [*compared, *broken], lacking
    elif lacking:
        verdict, first, then = Verdict.INSUFFICIENT, lacking, broken
    else:
        verdict, first, then = Verdict.PASSED, [_success(passed, len(judged), regressed, baseline is not None)], []
    return SuiteVerdict(
        verdict=verdict,
        reasons=(*first, *then),
        rows=tuple(rows),
        regressed=regressed,
        improved=improved,
        pass_rate=rate,
        interval=wilson_interval(len(judged), passed),
        p_value=p_value,
        pass_at=fmean(pass_at_k(_n(row), row.samples.passed, _n(row)) for row in judged) if judged else None,
        pass_all=fmean(pass_all_k(_n(row), row.samples.passed, _n(row)) for row in judged) if judged else None,
        power=_power(loss, len(pairs), baseline is not None),
        flaky=tuple(row.name for row in rows if row.flaky),
    )


def _rows(ours: dict[str, CaseSamples], theirs: dict[str, CaseSamples], cases: Collection[str]) -> list[CaseRow]:
    rows = []
    for name in sorted(cases):
        samples, before = ours.get(name, CaseSamples(name)), theirs.get(name)
        same = before is not None and before.digest == samples.digest
        rows.append(
            CaseRow(name, samples.outcome, before.outcome if before is not None and same else None, samples, before)
        )
    return rows


def _changed(pairs: Sequence[CaseRow], before: Outcome, now: Outcome) -> tuple[str, ...]:
    return tuple(row.name for row in pairs if row.before is before and row.outcome is now)


def _gaps(
    rows: Sequence[CaseRow],
    ours: dict[str, CaseSamples],
    baseline: Sequence[CaseSamples] | None,
    cases: Collection[str],
) -> list[str]:
    """Reports cases and samples that are missing: such a suite says less than it seems to."""
    if not cases:
        return ["The suite has no case."]
    found = []
    missing = [row.name for row in rows if row.name not in ours]
    if missing:
        found.append(f"{_count(missing, 'case')} of the suite {_were(missing)} not run: {_list(missing)}.")
    short = [
        row.name
        for row in rows
        if row.name in ours and row.samples.conclusive + row.samples.inconclusive < row.samples.asked
    ]
    if short:
        found.append(f"{_count(short, 'case')} {_have(short)} fewer samples than the suite asks for: {_list(short)}.")
    gone = sorted({case.name for case in baseline or ()} - set(cases))
    if gone:
        found.append(
            f"The suite has shrunken: {_count(gone, 'case')} of the baseline {_are(gone)} not in it any more: "
            f"{_list(gone)}. Restore {'it' if len(gone) == 1 else 'them'}, or measure the baseline again."
        )
    return found


def _unclear(rows: Sequence[CaseRow], gate: Gate) -> list[str]:
    unclear = [row.name for row in rows if row.outcome is Outcome.INCONCLUSIVE]
    if not rows or len(unclear) <= gate.inconclusive_max * len(rows):
        return []
    return [
        f"{len(unclear)} of {len(rows)} cases are inconclusive, at most {gate.inconclusive_max:.0%} may be: "
        f"{_list(unclear)}."
    ]


def _blind(loss: float | None, pairs: int, compared: bool, gate: Gate) -> list[str]:
    asked = gate.detectable_loss_max
    if asked is None or not compared or (loss is not None and loss <= asked) or pairs > MOST_CASES:
        return []
    sees = "no loss at all" if loss is None else f"only a loss of {loss:.0%} or more"
    return [
        f"The comparison of {pairs} cases shows {sees} with a power of {POWER:.0%}, and {asked:.0%} is asked for; add "
        "cases, or raise detectableLossMax."
    ]


def _floors(rate: float | None, passed: int, judged: int, rows: Sequence[CaseRow], gate: Gate) -> list[str]:
    broken = []
    if rate is not None and rate < gate.pass_rate_min:
        failed = [row.name for row in rows if row.outcome is Outcome.FAILED]
        broken.append(
            f"{passed} of {judged} cases passed ({rate:.0%}), at least {gate.pass_rate_min:.0%} must; failed: "
            f"{_list(failed)}."
        )
    wrong = sum(row.samples.confident_wrong for row in rows)
    if wrong > gate.confident_wrong_max:
        where = [row.name for row in rows if row.samples.confident_wrong]
        broken.append(
            f"{_count(range(wrong), 'sample')} {_are(range(wrong))} confidently wrong, at most "
            f"{gate.confident_wrong_max} may be: {_list(where)}."
        )
    return broken


def _regression(regressed: Sequence[str], improved: Sequence[str], p_value: float | None, gate: Gate) -> str:
    return (
        f"{_count(regressed, 'case')} newly {'fails' if len(regressed) == 1 else 'fail'} and {len(improved)} newly "
        f"{'passes' if len(improved) == 1 else 'pass'} (exact McNemar test, p = {p_value:.3g}, alpha = "
        f"{gate.alpha:g}): {_list(regressed)}."
    )


def _success(passed: int, judged: int, regressed: Sequence[str], compared: bool) -> str:
    text = f"{passed} of {judged} cases passed."
    if not compared:
        return f"{text} There is no baseline to compare with."
    if regressed:
        return f"{text} {_count(regressed, 'case')} newly failed, which may be chance: {_list(regressed)}."
    return f"{text} No case that passed in the baseline fails."


def _power(loss: float | None, pairs: int, compared: bool) -> str:
    if not compared:
        return "Without a baseline, only the floors of the gate are checked."
    if pairs > MOST_CASES:
        return f"The power of more than {MOST_CASES:,} paired cases is not computed."
    if loss is None:
        return f"With {pairs} paired cases, the comparison cannot show a loss of any size."
    return f"With {pairs} paired cases, the comparison shows a loss of {loss:.0%} with a power of {POWER:.0%}."


def _n(row: CaseRow) -> int:
    return row.samples.conclusive


def _count(items: Sequence[object], what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"


def _were(items: Sequence[object]) -> str:
    return "was" if len(items) == 1 else "were"


def _are(items: Sequence[object]) -> str:
    return "is" if len(items) == 1 else "are"


def _have(items: Sequence[object]) -> str:
    return "has" if len(items) == 1 else "have"


def _list(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
