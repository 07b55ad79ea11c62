"""Tests how often findings were right, on a terminal and for programs."""

import json
from typing import Any

import pytest

from tarsy.cli.reports.calibration import list_calibration
from tarsy.http.views.calibration import CalibrationList, ChainCalibration
from tarsy.record.finding import Confidence
from tarsy.record.judging.review import JudgedFinding, ReviewVerdict
from unit.cli.people.doors import FakeDoor

RIGHT, WRONG = ReviewVerdict.RIGHT, ReviewVerdict.WRONG


def chain(name: str, *verdicts: tuple[Confidence, int, int], floor: float = 0.5) -> ChainCalibration:
    """A Chain with right and wrong findings by confidence; the wrong ones are the newest."""
    judged = [
        JudgedFinding(confidence, verdict)
        for confidence, right, wrong in verdicts
        for verdict in [WRONG] * wrong + [RIGHT] * right
    ]
    return ChainCalibration.of("library", name, judged, floor)


def page(*items: ChainCalibration, more: str | None = None) -> CalibrationList:
    return CalibrationList(floor=0.5, items=items, next=more)


async def lines(capsys: pytest.CaptureFixture[str], *pages: CalibrationList) -> list[str]:
    door = FakeDoor({"/namespaces/shop/calibration": [*pages]}, [])
    assert await list_calibration(door, "shop", "text") == 0
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


async def test_each_confidence_has_its_count_interval_and_drift(capsys: pytest.CaptureFixture[str]) -> None:
    few = chain("few\x1b[2J", (Confidence.HIGH, 2, 0), (Confidence.LOW, 0, 1))
    worse = chain("worse", (Confidence.HIGH, 40, 20))
    told = await lines(capsys, page(few, more="next"), page(worse))
    assert told[0] == "CHAIN CONFIDENCE RIGHT SHARE 95 % INTERVAL NEWEST BEFORE CALIBRATED"
    assert told[1] == "library/few[2J High 2 of 2 100% 34 to 100% 2 of 2 - Unknown"
    assert told[2] == "Low 0 of 1 0% 0 to 79% 0 of 1 -"
    assert told[3] == "library/worse High 40 of 60 67% 54 to 77% 0 of 20 (worse) 40 of 40 True"
    assert told[4] == "library/worse" and "The newest are worse: 0 of 20, against 40 of 40" in " ".join(told[5:])


async def test_a_chain_that_is_not_calibrated_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    told = await lines(capsys, page(chain("bad", (Confidence.HIGH, 12, 8)), chain("good", (Confidence.HIGH, 20, 0))))
    assert told[1].endswith("False") and told[2].endswith("True")
    assert "Do not rely on High" in " ".join(told[4:]) and "library/good" not in told[3:]


async def test_without_a_verdict_it_leads_to_the_queue(capsys: pytest.CaptureFixture[str]) -> None:
    assert await lines(capsys, page()) == ["No finding in namespace shop has a verdict: `kubectl tarsy reviews`."]


async def test_programs_get_all_pages_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [page(chain("a", (Confidence.HIGH, 1, 0)), more="next"), page(chain("b", (Confidence.HIGH, 1, 0)))]
    assert await list_calibration(FakeDoor({"/namespaces/shop/calibration": pages}, []), "shop", "json") == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [one["chain"] for one in told["items"]] == ["a", "b"] and told["continue"] is None
