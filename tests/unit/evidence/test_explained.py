"""Tests which changes the signals of rules explain, and what that is worth in the ranking."""

from datetime import timedelta

import pytest

from tarsy.evidence.changes.change import Change, ChangeType
from tarsy.evidence.changes.explained import NOTHING, Explained, explained
from tarsy.evidence.changes.ranking import HALF_LIFE, HALF_LIFE_EXPLAINED, SIGNAL_WEIGHT, rank
from tarsy.evidence.onset import Onset
from tarsy.evidence.rules.signal import Signal
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.topology import Reach
from unit.evidence.objects import NOW

CHECKOUT, POD = ObjectKey("Deployment", "shop", "checkout"), ObjectKey("Pod", "shop", "checkout-1")
QUOTA, NODE = ObjectKey("ResourceQuota", "shop", "small"), ObjectKey("Node", "", "node-1")
SERVICE, FAR = ObjectKey("Service", "shop", "checkout"), ObjectKey("Node", "", "node-9")
GROUP = frozenset({CHECKOUT, POD})
SCOPE = {CHECKOUT: Reach(1.0), POD: Reach(1.0), QUOTA: Reach(0.7), NODE: Reach(0.7), SERVICE: Reach(0.8)}


def _change(key: ObjectKey, *fields: str, **before: float) -> Change:
    at = NOW - timedelta(**before)
    return Change(at, ChangeType.ROLLOUT, key, "changed", fields=fields)


def _explains(change: Change, *signals: Signal) -> bool:
    return explained(signals, GROUP, SCOPE.keys()).has(change)


def test_the_reason_that_a_signal_of_the_target_names_is_explained() -> None:
    signal = Signal((CHECKOUT, QUOTA), "no pods", "exceeded quota")
    assert _explains(_change(QUOTA), signal)
    assert not _explains(_change(NODE), signal)


def test_what_suffers_with_the_target_is_no_reason() -> None:
    assert not _explains(_change(SERVICE), Signal((SERVICE, POD), "no pod is ready", "Ready: False"))


def test_a_signal_of_an_object_that_reaches_the_target_is_about_the_reason() -> None:
    assert _explains(_change(NODE), Signal((NODE,), "not ready", "Ready: Unknown"))
    assert not _explains(_change(FAR), Signal((FAR,), "not ready", "Ready: Unknown"))


@pytest.mark.parametrize(
    ("path", "is_explained"),
    [
        ("app.resources.limits.memory 1Gi -> 256Mi", True),
        ("spec.template.spec.containers.resources", True),
        ("app.image checkout:1 -> resources:2", False),
        ("app.resourcesOther set to 1", False),
    ],
)
def test_a_change_of_the_field_that_a_rule_is_about_is_explained(path: str, is_explained: bool) -> None:
    signal = Signal((POD, CHECKOUT), "out of memory", "OOMKilled", fields=("resources",))
    assert _explains(_change(CHECKOUT, path), signal) is is_explained


def test_a_rule_of_no_field_explains_no_change_of_the_target_itself() -> None:
    assert not _explains(_change(CHECKOUT, "app.image 1 -> 2"), Signal((POD, CHECKOUT), "ends", "exitCode: 1"))


@pytest.mark.parametrize("hours", [0.5, 1, 3.9])
def test_an_explained_change_counts_double_and_loses_its_weight_later(hours: float) -> None:
    change, onset = _change(QUOTA, hours=hours), Onset(NOW, "the alert")
    (plain,) = rank([change], onset, SCOPE, "shop", because=NOTHING)
    (known,) = rank([change], onset, SCOPE, "shop", because=Explained([QUOTA]))
    before = timedelta(hours=hours)
    assert plain.score == pytest.approx(0.7 * 0.5 ** (before / HALF_LIFE), abs=1e-4)
    assert known.score == pytest.approx(0.7 * SIGNAL_WEIGHT * 0.5 ** (before / HALF_LIFE_EXPLAINED), abs=1e-4)
