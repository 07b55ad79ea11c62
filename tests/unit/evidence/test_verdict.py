"""Tests the verdict of the rules on a target."""

import pytest

from tarsy.evidence.rules.signal import Certainty, Signal
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.verdict import NEEDED, TargetHealth, target_verdict

POD = ObjectKey("Pod", "shop", "checkout-1")
CERTAIN = Signal((POD,), "Pod checkout-1 cannot pull its image.", "not found", rule="image-not-found")
LIKELY = Signal((POD,), "Pod checkout-1 may lack memory.", "OOM", Certainty.LIKELY, "memory")


@pytest.mark.parametrize(
    ("signals", "not_read", "health", "reason"),
    [
        ([], [], TargetHealth.HEALTHY, "no rule finds a fault"),
        ([], ["Node", "StorageClass"], TargetHealth.HEALTHY, "no rule finds a fault"),
        ([], ["Pod", "Node", "Event"], TargetHealth.INCONCLUSIVE, "not read in full: Event, Pod"),
        ([LIKELY], [], TargetHealth.INCONCLUSIVE, "perhaps: Pod checkout-1 may lack memory."),
        ([CERTAIN, LIKELY], [], TargetHealth.FAULTY, "Pod checkout-1 cannot pull its image."),
        ([LIKELY, CERTAIN], [], TargetHealth.FAULTY, "Pod checkout-1 cannot pull its image."),
        ([CERTAIN], list(NEEDED), TargetHealth.FAULTY, "Pod checkout-1 cannot pull its image."),
    ],
)
def test_a_certain_fault_decides_and_silence_counts_only_where_everything_was_read(
    signals: list[Signal], not_read: list[str], health: TargetHealth, reason: str
) -> None:
    verdict = target_verdict(signals, not_read)
    assert (verdict.health, verdict.reason) == (health, reason)
