"""Tells on a Chain whether its confidence High has been right, by the verdicts of people.

Watches: nothing of its own; the reconcile of a Chain calls it. Decides: by the stored verdicts, with the interval of
Wilson, whether High is below its floor. Writes: the condition `Calibrated` and the counts by confidence, where there is
a verdict at all. It is no part of `Ready`: runs go on.
"""

from collections.abc import Iterable
from datetime import datetime

from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.evals.calibration import ClassCalibration, calibrate, counted_right
from tarsy.record.finding import Confidence
from tarsy.record.review import JudgedFinding
from tarsy.record.shown_confidence import ENOUGH_VERDICTS
from tarsy.resources.meta import Condition, ConditionStatus, set_condition
from tarsy.resources.v1alpha1.chain import Chain, ChainStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.reviews import Reviews

CALIBRATION_SECONDS = 60.0
"""Seconds until the verdicts on the findings of a Chain are counted again."""

_STATUS: dict[str, ConditionStatus] = {"HighHolds": "True", "HighUnreliable": "False"}


async def with_calibration(
    status: ChainStatus, chain: Chain, reviews: Reviews, context: ReconcileContext, now: datetime
) -> ChainStatus:
    """Adds the counts and the condition `Calibrated` to the status of a Chain.

    Args:
        status: the status without them.
        chain: the Chain.
        reviews: the stored verdicts.
        context: of the reconcile.
        now: the current time.

    Raises:
        StoreError: Postgres is unavailable.
    """
    found = await reviews.judged(chain.metadata.namespace, chain.metadata.name)
    return calibrated_status(status, chain, found, context.settings.calibration_floor, now)


def calibrated_status(
    status: ChainStatus,
    chain: Chain,
    judged: Iterable[JudgedFinding],
    floor: float,
    now: datetime,
) -> ChainStatus:
    """Returns the status with what verdicts amount to.

    Args:
        status: the status without it.
        chain: the Chain.
        judged: its findings with their verdicts, the newest first.
        floor: smallest lower end of the interval of High.
        now: the current time.
    """
    classes = calibrate(judged)
    kind = ConditionType.CALIBRATED
    if not classes:
        kept = tuple(one for one in status.conditions if one.type != kind)
        return status.model_copy(update={"conditions": kept, "calibration": None})
    reason, message = calibration_verdict(classes, floor)
    told = _STATUS.get(reason, "Unknown")
    condition = Condition(
        type=kind, status=told, reason=reason, message=message, observed_generation=chain.metadata.generation
    )
    changed = {"conditions": set_condition(status.conditions, condition, now), "calibration": counted_right(classes)}
    return status.model_copy(update=changed)


def calibration_verdict(classes: Iterable[ClassCalibration], floor: float) -> tuple[str, str]:
    """Returns reason and message of the condition.

    Args:
        classes: the verdicts by confidence.
        floor: smallest lower end of the interval of High.
    """
    high = next((one for one in classes if one.confidence is Confidence.HIGH), None)
    if high is None or high.total < ENOUGH_VERDICTS:
        total = 0 if high is None else high.total
        few = f"{total} findings with confidence High have a verdict; it is judged from {ENOUGH_VERDICTS} on."
        return ("FewVerdicts", few)
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
        return ("HighUnreliable", below)
    return ("HighHolds", f"{counts}.{drift}")
