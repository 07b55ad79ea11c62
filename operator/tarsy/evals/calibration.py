"""Compares the confidence that findings claimed with the verdicts of people on them.

Decision: only the verdict Right counts as right. The model's word is never raised: a class that people found wrong too
often is marked, and nothing else changes. A verdict is one trial, so the interval of Wilson says how little a few
verdicts tell.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tarsy.record.finding import Confidence
from tarsy.record.judging.interval import Interval, wilson_interval
from tarsy.record.judging.review import JudgedFinding, ReviewVerdict
from tarsy.record.judging.shown_confidence import ENOUGH_VERDICTS, HighVerdicts

RECENT_VERDICTS: Final = 20
"""Newest verdicts that are compared with those before them."""


@dataclass(frozen=True, slots=True)
class ClassCalibration:
    """Verdicts on the findings of a chain that claim one confidence.

    Attributes:
        confidence: the class.
        right: number of verdicts Right.
        total: number of verdicts.
        interval: of the share of right ones, with 95 % confidence.
        recent: right ones among the newest 20, and the number of those.
        before: the same of all older ones.
    """

    confidence: Confidence
    right: int
    total: int
    interval: Interval
    recent: tuple[int, int]
    before: tuple[int, int]

    @property
    def drifted(self) -> bool:
        """Whether the newest verdicts are worse than those before by more than chance: their intervals do not meet."""
        if min(self.recent[1], self.before[1]) < RECENT_VERDICTS:
            return False
        now, then = (wilson_interval(total, right) for right, total in (self.recent, self.before))
        return now.high < then.low

    def below(self, floor: float) -> bool:
        """Whether enough verdicts show that the share of right ones may be lower than `floor`."""
        return HighVerdicts(self.right, self.total, floor).unreliable


@dataclass(frozen=True, slots=True)
class CalibrationVerdict:
    """Whether the confidence High of a Chain can be relied on.

    Attributes:
        calibrated: True or False; None: too few verdicts to tell.
        reason: one CamelCase word.
        message: sentences for people.
    """

    calibrated: bool | None
    reason: str
    message: str


def calibrate(judged: Iterable[JudgedFinding]) -> list[ClassCalibration]:
    """Counts the verdicts on the findings of a chain by confidence, High first; classes without a verdict are left out.

    Args:
        judged: the findings, the newest first.
    """
    found: dict[Confidence, list[bool]] = {}
    for one in judged:
        found.setdefault(one.confidence, []).append(one.verdict is ReviewVerdict.RIGHT)
    return [_class(confidence, found[confidence]) for confidence in Confidence if confidence in found]


def counted_right(classes: Sequence[ClassCalibration]) -> str:
    """Returns the counts of all classes in brief, such as `High 12/20, Medium 5/9`."""
    return ", ".join(f"{one.confidence.value} {one.right}/{one.total}" for one in classes)


def calibration_verdict(classes: Iterable[ClassCalibration], floor: float) -> CalibrationVerdict:
    """Decides whether the confidence High of a Chain can be relied on.

    Args:
        classes: the verdicts by confidence.
        floor: smallest lower end of the interval of High.
    """
    high = next((one for one in classes if one.confidence is Confidence.HIGH), None)
    if high is None or high.total < ENOUGH_VERDICTS:
        total = 0 if high is None else high.total
        few = f"{total} findings with confidence High have a verdict; it is judged from {ENOUGH_VERDICTS} on."
        return CalibrationVerdict(None, "FewVerdicts", few)
    low, top = round(100 * high.interval.low), round(100 * high.interval.high)
    recent, before = (f"{right} of {total}" for right, total in (high.recent, high.before))
    counts = f"Findings with confidence High were right in {high.right} of {high.total} reviews"
    counts += f" (95 % interval {low} to {top} %)"
    drift = f" The newest are worse: {recent}, against {before} of those before them." if high.drifted else ""
    if high.below(floor):
        below = (
            f"{counts}, below the floor of {round(100 * floor)} %. Do not rely on High; measure a better chain with an "
            f"EvalSuite of the reviewed cases.{drift}"
        )
        return CalibrationVerdict(False, "HighUnreliable", below)
    return CalibrationVerdict(True, "HighHolds", f"{counts}.{drift}")


def _class(confidence: Confidence, right: Sequence[bool]) -> ClassCalibration:
    recent, before = right[:RECENT_VERDICTS], right[RECENT_VERDICTS:]
    return ClassCalibration(
        confidence,
        sum(right),
        len(right),
        wilson_interval(len(right), sum(right)),
        (sum(recent), len(recent)),
        (sum(before), len(before)),
    )
