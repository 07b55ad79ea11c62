"""Reports on a Chain whether its confidence High has been right, by the verdicts of people.

Watches: nothing of its own; the reconcile of a Chain calls it. Decides: by the stored verdicts, with the interval of
Wilson, whether High is below its floor. Writes: the condition `Calibrated` and the counts by confidence, where there is
a verdict at all, and has the statuses of runs written again that show High otherwise. It is no part of `Ready`: runs go
on.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import Enum, auto

import orjson

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.evals.calibration import calibrate, calibration_verdict, counted_right
from tarsy.record.finding import Confidence
from tarsy.record.judging.review import JudgedFinding
from tarsy.record.judging.shown_confidence import HighVerdicts, shown_confidence
from tarsy.resources.meta import Condition, ConditionStatus, set_condition
from tarsy.resources.v1alpha1 import Investigation
from tarsy.resources.v1alpha1.chain import Chain, ChainStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.judging.calibration import Verdicts

CALIBRATION_SECONDS = 60.0
"""Seconds until the verdicts on the findings of a Chain are counted again."""

SHOWING_SECONDS = 5.0
"""Seconds until further statuses are written that show the confidence High otherwise."""

SHOWN_RUNS = 1000
"""Newest runs of a Chain with confidence High whose statuses follow its verdicts."""

SHOWN_AT_ONCE = 200
"""Statuses that one look has written again at most."""

_STATUS: dict[bool | None, ConditionStatus] = {True: "True", False: "False", None: "Unknown"}


async def with_calibration(
    status: ChainStatus, chain: Chain, verdicts: Verdicts, context: ReconcileContext, now: datetime
) -> tuple[ChainStatus, float]:
    """Adds the counts and the condition `Calibrated` to the status of a Chain.

    Args:
        status: the status without them.
        chain: the Chain.
        verdicts: the stored verdicts.
        context: of the reconcile.
        now: the current time.

    Returns:
        The status, and the seconds until the next look.

    Raises:
        StoreError: Postgres is unavailable.
    """
    key, floor = (chain.metadata.namespace, chain.metadata.name), context.settings.calibration_floor
    found = (await verdicts.judged([key])).get(key, [])
    high = HighVerdicts.of(found, floor)
    shown = shown_confidence(Confidence.HIGH, high)
    status, of_chain = calibrated_status(status, chain, found, floor, now), Key(chain.KIND, *key)
    # The first look of a process compares all statuses, for a verdict may have come while none ran.
    if (high.total or of_chain in context.shown_high) and context.shown_high.get(of_chain) != shown:
        left = await _show(chain, shown, verdicts, context)
        if left is _Left.MORE:
            return status, SHOWING_SECONDS
        if left is _Left.NOTHING:
            context.shown_high[of_chain] = shown
    return status, CALIBRATION_SECONDS


class _Left(Enum):
    """Says which statuses a look has left as they are."""

    NOTHING = auto()
    MORE = auto()
    """Those above what one look has written again."""

    UNSEEN = auto()
    """Those of objects that the watch has not told of: it has just begun, for the record knows which are deleted."""


async def _show(chain: Chain, shown: str, verdicts: Verdicts, context: ReconcileContext) -> _Left:
    """Has the statuses of runs written again that show the confidence High otherwise.

    Args:
        chain: of the runs.
        shown: the confidence High as people read it.
        verdicts: finds the runs.
        context: of the reconcile.

    Raises:
        StoreError: Postgres is unavailable.
    """
    written, left = 0, _Left.NOTHING
    for run in await verdicts.high_findings((chain.metadata.namespace, chain.metadata.name), SHOWN_RUNS):
        key = Key(Investigation.KIND, run.namespace, run.name)
        document = context.cache.finished(key)
        if context.cache.version(key) is None:
            left = _Left.UNSEEN
        raw = orjson.loads(document) if document is not None else {}
        if raw.get("metadata", {}).get("uid") != str(run.id):
            continue
        finding = raw["status"].get("finding") or {}
        if (finding.get("shownConfidence") or finding.get("confidence")) == shown:
            continue
        if written == SHOWN_AT_ONCE:
            return _Left.MORE
        record = await context.store.reads.record(run.id)
        if record is not None:
            context.publish_again(record)
            written += 1
    return left


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
    found = calibration_verdict(classes, floor)
    told = Condition(
        type=kind,
        status=_STATUS[found.calibrated],
        reason=found.reason,
        message=found.message,
        observed_generation=chain.metadata.generation,
    )
    changed = {"conditions": set_condition(status.conditions, told, now), "calibration": counted_right(classes)}
    return status.model_copy(update=changed)
