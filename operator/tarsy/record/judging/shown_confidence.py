"""Writes the confidence of a finding as people read it.

Decision: the word of the agents is neither raised nor lowered. Where people found so few findings of a Chain with
confidence High right that it is not Calibrated, the word is shown with its count, and the reader decides.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from tarsy.record.finding import Confidence
from tarsy.record.judging.interval import wilson_interval
from tarsy.record.judging.review import JudgedFinding, ReviewVerdict

ENOUGH_VERDICTS: Final = 20
"""Verdicts from which on a class of confidence is judged."""

HIGH_FLOOR: Final = 0.5
"""Smallest lower end of the interval of High, where the administrator sets none."""


@dataclass(frozen=True, slots=True)
class HighVerdicts:
    """Verdicts of people on the findings of a Chain with confidence High.

    Attributes:
        right: number of verdicts Right.
        total: number of verdicts.
        floor: smallest lower end of the 95 % interval of the share of right ones.
    """

    right: int
    total: int
    floor: float = HIGH_FLOOR

    @classmethod
    def of(cls, judged: Iterable[JudgedFinding], floor: float) -> Self:
        """Counts the verdicts on findings with confidence High.

        Args:
            judged: findings of a Chain, of any confidence.
            floor: smallest lower end of the interval.
        """
        high = [one.verdict is ReviewVerdict.RIGHT for one in judged if one.confidence is Confidence.HIGH]
        return cls(sum(high), len(high), floor)

    @property
    def unreliable(self) -> bool:
        """Whether the Chain is not Calibrated: enough verdicts, and the interval begins below the floor."""
        return self.total >= ENOUGH_VERDICTS and wilson_interval(self.total, self.right).low < self.floor


def shown_confidence(confidence: Confidence, high: HighVerdicts | None) -> str:
    """Returns a confidence for people, such as `High (12 of 20 right)`.

    Args:
        confidence: of the finding.
        high: verdicts on the findings of its Chain with confidence High; None: not counted.
    """
    if confidence is not Confidence.HIGH or high is None or not high.unreliable:
        return confidence.value
    return f"{confidence.value} ({high.right} of {high.total} right)"


def doubted_confidence(confidence: Confidence, high: HighVerdicts | None) -> str | None:
    """Returns a confidence for people if it is not the word alone, such as `High (12 of 20 right)`; None: it is.

    Args:
        confidence: of the finding.
        high: verdicts on the findings of its Chain with confidence High; None: not counted.
    """
    shown = shown_confidence(confidence, high)
    return None if shown == confidence.value else shown
