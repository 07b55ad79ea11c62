"""Tests what a Chain tells about the verdicts on its findings."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from tarsy.controllers.readiness.calibration import CALIBRATION_SECONDS, calibrated_status, with_calibration
from tarsy.record.finding import Confidence
from tarsy.record.judging.review import JudgedFinding, ReviewVerdict
from tarsy.resources.meta import Condition, condition
from tarsy.resources.v1alpha1 import Chain, ChainStatus
from tarsy.store.judging.calibration import ChainKey, FoundRun
from unit.controllers.builders import raw, reconcile_context

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CHAIN = Chain.model_validate(
    {
        "metadata": {"name": "pods", "namespace": "shop", "generation": 3},
        "spec": {"stages": [{"name": "look", "agents": [{"name": "one"}]}]},
    }
)


def told(right: int, total: int, confidence: Confidence = Confidence.HIGH) -> Condition:
    judged = [
        JudgedFinding(confidence, ReviewVerdict.RIGHT if number < right else ReviewVerdict.WRONG)
        for number in range(total)
    ]
    status = calibrated_status(ChainStatus(), CHAIN, judged, 0.5, NOW)
    found = condition(status.conditions, "Calibrated")
    assert found is not None and status.calibration == f"{confidence.value} {right}/{total}"
    return found


@pytest.mark.parametrize(
    ("right", "total", "status", "reason"),
    [
        (0, 19, "Unknown", "FewVerdicts"),
        (12, 20, "False", "HighUnreliable"),
        (12, 21, "False", "HighUnreliable"),
        (14, 20, "False", "HighUnreliable"),
        (15, 20, "True", "HighHolds"),
    ],
)
def test_high_is_judged_from_twenty_verdicts_on(right: int, total: int, status: str, reason: str) -> None:
    found = told(right, total)
    assert (found.status, found.reason, found.observed_generation) == (status, reason, 3)


def test_the_message_has_the_counts_the_interval_and_the_remedy() -> None:
    message = told(12, 20).message
    assert "right in 12 of 20 reviews (95 % interval 39 to 78 %), below the floor of 50 %" in message
    assert "EvalSuite" in message and "newest" not in message


def test_other_classes_are_counted_and_never_judged() -> None:
    assert told(0, 40, Confidence.LOW).reason == "FewVerdicts"


def test_a_drift_is_told() -> None:
    judged = [
        JudgedFinding(Confidence.HIGH, ReviewVerdict.WRONG if number < 16 else ReviewVerdict.RIGHT)
        for number in range(120)
    ]
    status = calibrated_status(ChainStatus(), CHAIN, judged, 0.5, NOW)
    found = condition(status.conditions, "Calibrated")
    assert found is not None and found.status == "True"
    assert "The newest are worse: 4 of 20, against 100 of 100 of those before them." in found.message


def test_without_a_verdict_nothing_is_told() -> None:
    before = calibrated_status(ChainStatus(), CHAIN, [JudgedFinding(Confidence.HIGH, ReviewVerdict.RIGHT)], 0.5, NOW)
    after = calibrated_status(before, CHAIN, [], 0.5, NOW)
    assert after.calibration is None and condition(after.conditions, "Calibrated") is None


class Judged:
    """Plays the stored verdicts: twelve of twenty findings were right, and one run shows the confidence High."""

    run = FoundRun(uuid4(), "shop", "down")

    async def judged(self, chains: Sequence[ChainKey]) -> dict[ChainKey, list[JudgedFinding]]:
        rights = [ReviewVerdict.RIGHT] * 12 + [ReviewVerdict.WRONG] * 8
        return {chain: [JudgedFinding(Confidence.HIGH, verdict) for verdict in rights] for chain in chains}

    async def high_findings(self, chain: ChainKey, limit: int) -> list[FoundRun]:
        return [self.run]


async def test_a_run_that_the_watch_has_not_told_of_is_looked_at_again() -> None:
    """A controller that has just started knows its Chains before its Investigations."""
    published: list[Any] = []
    judged: Any = Judged()

    async def record(run: UUID) -> UUID:
        return run

    store: Any = SimpleNamespace(record=record)
    context = reconcile_context(SimpleNamespace(), store, publish_again=published.append)
    for _ in range(2):
        _, seconds = await with_calibration(ChainStatus(), CHAIN, judged, context, NOW)
        assert seconds == CALIBRATION_SECONDS and not published
    status = {"conditions": [{"type": "Finished", "status": "True"}], "finding": {"confidence": "High"}}
    meta = {"uid": str(judged.run.id), "namespace": "shop"}
    context.cache.put(raw("Investigation", "down", {"alertRef": {"name": "a"}}, status, **meta))
    for _ in range(2):
        await with_calibration(ChainStatus(), CHAIN, judged, context, NOW)
    assert published == [judged.run.id], "written again once"
