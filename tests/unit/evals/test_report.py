"""The floor of coverage: below it, nothing is concluded from a replay."""

import pytest

from tarsy.evals.report import replay_report, too_little_covered
from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.recorded_run import AskedCall, AskedCalls
from tarsy.record.judging.replay import ReplayReport
from tarsy.runtime.replay import weighed
from unit.evals.cassettes import call, cassette

FOUND = Finding(summary="It is full.", confidence=Confidence.HIGH)


@pytest.mark.parametrize(("covered", "missed", "enough"), [(69, 31, False), (70, 30, True), (71, 29, True)])
def test_below_the_floor_a_finding_is_inconclusive_and_says_why(covered: int, missed: int, enough: bool) -> None:
    report = ReplayReport(rungs={"exact": covered - 2, "normalised": 1, "derived": 1, "miss": missed - 1, "live": 1})
    found = weighed(FOUND, report)
    assert (found == FOUND) is enough
    assert (too_little_covered(report) is None) is enough
    if not enough:
        assert found.confidence is Confidence.INCONCLUSIVE
        assert found.notes == (
            "The record answered 69 of 100 tool calls of this replay; below 70% nothing can be concluded from it.",
        )


def test_a_replay_that_asks_nothing_is_covered() -> None:
    assert weighed(FOUND, ReplayReport()) == FOUND


def test_tools_that_the_provider_runs_itself_are_misses() -> None:
    record = cassette(call("logs", "x", pod="a"))
    asked = AskedCall((0, 0, 1, 0), "k.logs", '{"pod":"a"}', "exact", 2)
    report = replay_report(record, AskedCalls((asked,), native=3))
    assert report.rungs == {"exact": 1, "miss": 3} and report.coverage == 0.25
