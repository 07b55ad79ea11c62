"""Tests when a confidence is shown with its count."""

import pytest

from tarsy.evals.calibration import calibrate
from tarsy.record.finding import Confidence
from tarsy.record.judging.interval import wilson_interval
from tarsy.record.judging.review import JudgedFinding, ReviewVerdict
from tarsy.record.judging.shown_confidence import HighVerdicts, doubted_confidence, shown_confidence


@pytest.mark.parametrize(
    ("right", "total", "shown"),
    [
        (0, 0, "High"),
        (0, 19, "High"),
        (12, 19, "High"),
        (12, 20, "High (12 of 20 right)"),
        (14, 20, "High (14 of 20 right)"),
        (15, 20, "High"),
        (12, 21, "High (12 of 21 right)"),
        (0, 1000, "High (0 of 1000 right)"),
    ],
)
def test_high_stands_with_its_count_if_enough_verdicts_are_below_the_floor(right: int, total: int, shown: str) -> None:
    assert shown_confidence(Confidence.HIGH, HighVerdicts(right, total)) == shown
    assert doubted_confidence(Confidence.HIGH, HighVerdicts(right, total)) == (None if shown == "High" else shown)


def test_a_floor_that_is_just_reached_shows_no_count() -> None:
    low = wilson_interval(20, 12).low
    assert shown_confidence(Confidence.HIGH, HighVerdicts(12, 20, low)) == "High"
    assert shown_confidence(Confidence.HIGH, HighVerdicts(12, 20, low + 1e-9)) == "High (12 of 20 right)"


@pytest.mark.parametrize("confidence", [one for one in Confidence if one is not Confidence.HIGH])
def test_other_words_and_an_unknown_count_are_shown_as_they_are(confidence: Confidence) -> None:
    assert shown_confidence(confidence, HighVerdicts(0, 20)) == confidence.value
    assert shown_confidence(Confidence.HIGH, None) == "High"


def test_the_count_is_shown_exactly_when_the_chain_is_not_calibrated() -> None:
    for total in (19, 20, 21, 60):
        for right in range(total + 1):
            verdicts = [ReviewVerdict.RIGHT] * right + [ReviewVerdict.WRONG] * (total - right)
            (high,) = calibrate(JudgedFinding(Confidence.HIGH, one) for one in verdicts)
            counted = shown_confidence(Confidence.HIGH, HighVerdicts(right, total)) != "High"
            assert counted is high.below(0.5), (right, total)
