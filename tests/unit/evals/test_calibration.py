"""Tests how the confidence of findings is compared with verdicts, against simulated truth."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.evals.calibration import calibrate, counted_right
from tarsy.record.finding import Confidence
from tarsy.record.judging.review import JudgedFinding, ReviewVerdict
from tarsy.record.judging.shown_confidence import ENOUGH_VERDICTS, HIGH_FLOOR

RIGHT, PARTLY, WRONG = ReviewVerdict
HIGH, LOW = Confidence.HIGH, Confidence.LOW


def verdicts(right: int, total: int, confidence: Confidence = HIGH) -> list[JudgedFinding]:
    return [JudgedFinding(confidence, RIGHT if number < right else WRONG) for number in range(total)]


def test_without_a_verdict_there_is_no_class() -> None:
    assert calibrate([]) == [] and counted_right([]) == ""


def test_partly_is_not_right_and_classes_stand_in_their_order() -> None:
    classes = calibrate([JudgedFinding(LOW, RIGHT), *verdicts(12, 20), JudgedFinding(HIGH, PARTLY)])
    assert counted_right(classes) == "High 12/21, Low 1/1"


@pytest.mark.parametrize(("total", "below"), [(19, False), (20, True), (21, True)])
def test_high_is_judged_from_twenty_verdicts_on(total: int, below: bool) -> None:
    (high,) = calibrate(verdicts(total // 2, total))
    assert ENOUGH_VERDICTS == 20 and high.below(HIGH_FLOOR) is below


@pytest.mark.parametrize(("right", "below"), [(14, True), (15, False)])
def test_the_lower_end_of_the_interval_decides_not_the_share(right: int, below: bool) -> None:
    (high,) = calibrate(verdicts(right, 20))
    assert high.below(HIGH_FLOOR) is below  # 14 of 20: 0.481 to 0.855; 15 of 20: 0.531 to 0.888


def test_a_floor_that_is_just_reached_holds() -> None:
    (high,) = calibrate(verdicts(15, 20))
    assert not high.below(high.interval.low) and high.below(high.interval.low + 1e-9)


def test_drift_needs_twenty_on_both_sides_and_a_difference_beyond_chance() -> None:
    bad, good = verdicts(4, 20), verdicts(38, 40)
    assert calibrate([*bad, *good])[0].drifted
    assert not calibrate([*bad, *good[:19]])[0].drifted
    assert not calibrate([*verdicts(17, 20), *good])[0].drifted
    assert not calibrate([*verdicts(20, 20), *verdicts(5, 40)])[0].drifted, "a chain that became better has not drifted"


@given(st.lists(st.sampled_from(list(ReviewVerdict)), max_size=80))
def test_counts_add_up(found: list[ReviewVerdict]) -> None:
    for one in calibrate(JudgedFinding(HIGH, verdict) for verdict in found):
        assert one.total == len(found) == one.recent[1] + one.before[1]
        assert one.right == found.count(RIGHT) == one.recent[0] + one.before[0]
        assert one.interval.low <= one.right / one.total <= one.interval.high


@pytest.mark.parametrize(("truth", "least", "most"), [(0.95, 0.0, 0.01), (0.75, 0.0, 0.35), (0.4, 0.99, 1.0)])
def test_simulated_chains_are_marked_by_their_truth(truth: float, least: float, most: float) -> None:
    """Of 400 chains whose High is right with a known probability, with 40 verdicts each."""
    chance = random.Random(25)
    marked = 0
    for _ in range(400):
        found = [JudgedFinding(HIGH, RIGHT if chance.random() < truth else WRONG) for _ in range(40)]
        marked += calibrate(found)[0].below(HIGH_FLOOR)
    assert least <= marked / 400 <= most


def test_the_interval_holds_the_simulated_truth_as_often_as_it_says() -> None:
    chance = random.Random(7)
    held = 0
    for _ in range(1000):
        right = sum(chance.random() < 0.7 for _ in range(30))
        interval = calibrate(verdicts(right, 30))[0].interval
        held += interval.low <= 0.7 <= interval.high
    assert held >= 930
