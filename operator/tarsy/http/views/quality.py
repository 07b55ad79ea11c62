"""Models of the report on the quality of findings: verdicts of people, outcomes of incidents, and evaluations."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.usage import UsageDay
from tarsy.record.finding import Confidence
from tarsy.record.reading.usage_report import FindingCount, MeasuredSuite


class VerdictCounts(View):
    """Numbers of findings by the verdict of people, the least favourable one of each finding."""

    right: int = 0
    partly: int = 0
    wrong: int = 0

    @classmethod
    def of(cls, found: Iterable[FindingCount]) -> Self:
        """Sums up counts; those without a verdict are left out."""
        sums = _sums((one.verdict, one.findings) for one in found)
        return cls(right=sums["Right"], partly=sums["Partly"], wrong=sums["Wrong"])


class ConfidenceVerdicts(VerdictCounts):
    """Verdicts on the findings that claim one confidence."""

    confidence: Confidence


class OutcomeCounts(View):
    """Numbers of findings by what became of their incident."""

    settled: int = 0
    changed_and_settled: int = 0
    recurred: int = 0

    @classmethod
    def of(cls, found: Iterable[FindingCount]) -> Self:
        """Sums up counts; those without an outcome are left out."""
        sums = _sums((one.outcome, one.findings) for one in found)
        return cls(settled=sums["Settled"], changed_and_settled=sums["ChangedAndSettled"], recurred=sums["Recurred"])


class ReviewReport(View):
    """Verdicts of people."""

    days: tuple[VerdictCounts, ...] = Field(description="By the day on which the investigation ended.")
    by_confidence: tuple[ConfidenceVerdicts, ...] = Field(description="In the whole period, High first.")


class EvalResult(View):
    """Result of a finished EvalRun."""

    namespace: str
    suite: str
    run: str
    chain: str
    finished_at: datetime
    verdict: str
    samples: int
    passed: int


class EvalReport(View):
    """Results of finished EvalRuns."""

    items: tuple[EvalResult, ...] = Field(description="The newest first.")
    more: bool = Field(description="Whether there are older ones in the period.")

    @classmethod
    def of(cls, found: Sequence[MeasuredSuite], limit: int) -> Self:
        """Converts results, one more than the limit at most."""
        fields = EvalResult.model_fields
        items = tuple(EvalResult(**{name: getattr(one, name) for name in fields}) for one in found[:limit])
        return cls(items=items, more=len(found) > limit)


class QualityView(View):
    """Quality of findings over whole days."""

    time_zone: str
    days: tuple[UsageDay, ...] = Field(description="Days in chronological order; the last one has not ended.")
    findings: tuple[int, ...] = Field(description="Investigations that ended with a finding, on each day.")
    outcomes: tuple[OutcomeCounts, ...] = Field(
        description="What became of their incidents, by the day on which the investigation ended."
    )
    reviews: ReviewReport | None = Field(description="Null if the caller may not list reviews.")
    evaluations: EvalReport | None = Field(description="Null if the caller may not list EvalRuns.")


def review_report(found: Sequence[FindingCount], days: int) -> ReviewReport:
    """Sums up verdicts by day and by confidence.

    Args:
        found: counts of findings.
        days: number of days.
    """
    by_confidence = []
    for confidence in Confidence:
        counts = VerdictCounts.of(one for one in found if one.confidence == confidence.value)
        if counts != VerdictCounts():
            by_confidence.append(ConfidenceVerdicts(confidence=confidence, **counts.model_dump()))
    by_day = _by_day(found, days)
    return ReviewReport(days=tuple(map(VerdictCounts.of, by_day)), by_confidence=tuple(by_confidence))


def outcome_counts(found: Sequence[FindingCount], days: int) -> tuple[OutcomeCounts, ...]:
    """Sums up outcomes by day.

    Args:
        found: counts of findings.
        days: number of days.
    """
    return tuple(map(OutcomeCounts.of, _by_day(found, days)))


def finding_counts(found: Sequence[FindingCount], days: int) -> tuple[int, ...]:
    """Sums up findings by day.

    Args:
        found: counts of findings.
        days: number of days.
    """
    return tuple(sum(one.findings for one in of_day) for of_day in _by_day(found, days))


def _sums(counts: Iterable[tuple[str | None, int]]) -> Counter[str | None]:
    """Returns the number of findings by a word that they have, 0 for a word that none has."""
    sums: Counter[str | None] = Counter()
    for word, findings in counts:
        sums[word] += findings
    return sums


def _by_day(found: Sequence[FindingCount], days: int) -> list[list[FindingCount]]:
    by_day: list[list[FindingCount]] = [[] for _ in range(days)]
    for one in found:
        by_day[one.day].append(one)
    return by_day
