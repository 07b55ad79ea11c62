"""Models of calibration: how often findings of Chains were right, by the confidence that they claimed."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field

from tarsy.evals.calibration import ClassCalibration, calibrate, calibration_verdict
from tarsy.http.models import View
from tarsy.http.views.common import NEXT_PAGE
from tarsy.record.judging.review import JudgedFinding


class CountView(View):
    """Findings that people found right, of those with a verdict."""

    right: int = Field(description="Number of findings with the verdict Right.")
    total: int = Field(description="Number of findings with a verdict.")


class ConfidenceCalibration(View):
    """Verdicts on the findings of a Chain with one confidence."""

    confidence: str = Field(description="High, Medium, Low or Inconclusive.")
    right: int = Field(description="Number of findings with the verdict Right.")
    total: int = Field(description="Number of findings with a verdict.")
    low: float = Field(description="Lower end of the 95 % interval (Wilson) of the share of right findings.")
    high: float = Field(description="Upper end of that interval.")
    recent: CountView = Field(description="The newest 20 of them.")
    before: CountView = Field(description="All older ones.")
    drifted: bool = Field(description="Whether the newest are worse than the older ones by more than chance.")

    @classmethod
    def of(cls, found: ClassCalibration) -> Self:
        """Converts the verdicts on one confidence."""
        recent, before = (CountView(right=right, total=total) for right, total in (found.recent, found.before))
        return cls(
            confidence=found.confidence.value,
            right=found.right,
            total=found.total,
            low=round(found.interval.low, 4),
            high=round(found.interval.high, 4),
            recent=recent,
            before=before,
            drifted=found.drifted,
        )


class ChainCalibration(View):
    """Verdicts on the findings of a Chain, of all namespaces that use it. The newest 1,000 count."""

    namespace: str = Field(description="Namespace of the Chain.")
    chain: str
    calibrated: bool | None = Field(
        description="Whether High can be relied on. Null while fewer than 20 findings with confidence High have a "
        "verdict."
    )
    reason: str = Field(description="Reason of the condition Calibrated of the Chain.")
    message: str = Field(description="Message of the condition Calibrated of the Chain.")
    classes: tuple[ConfidenceCalibration, ...] = Field(description="By confidence, High first.")

    @classmethod
    def of(cls, namespace: str, chain: str, judged: Iterable[JudgedFinding], floor: float) -> Self:
        """Converts the verdicts on the findings of a Chain.

        Args:
            namespace: of the Chain.
            chain: its name.
            judged: its findings with their verdicts, of each confidence the newest first.
            floor: smallest lower end of the interval of High.
        """
        classes = calibrate(judged)
        found = calibration_verdict(classes, floor)
        return cls(
            namespace=namespace,
            chain=chain,
            calibrated=found.calibrated,
            reason=found.reason,
            message=found.message,
            classes=tuple(map(ConfidenceCalibration.of, classes)),
        )


class CalibrationList(View):
    """Chains with a verdict on their findings, by namespace and name."""

    floor: float = Field(description="Smallest lower end of the interval of High. Below it, High is shown with counts.")
    items: tuple[ChainCalibration, ...]
    next: str | None = Field(alias="continue", default=None, description=NEXT_PAGE)
