"""Tests how recorded changes of conditions become the health of an object over time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tarsy.http.routes.health_over_time import period_of
from tarsy.http.views.health_over_time import ObjectHealthView, Period, object_health
from tarsy.record.reading.condition_transition import ABSENT, ConditionTransition
from tarsy.record.reading.object_history import ObjectIdentity
from tarsy.resources.meta import Condition

NOW = datetime(2026, 11, 28, 3, 0, tzinfo=UTC)
DAY = Period(NOW, timedelta(hours=1), 24)


def _ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def _change(hours: float, status: str, was: str | None = None, type_: str = "Ready") -> ConditionTransition:
    place = ObjectIdentity("shop-1", "shop", "MCPServer", "tools", "uid-1")
    said = (f"{type_}Is{status}", f"{type_} is {status}.")
    return ConditionTransition(place, type_, _ago(hours), status, was, *said, address="http://tools:8080", id=1)


def _told(now: list[tuple[str, str, float]], *changes: ConditionTransition) -> ObjectHealthView:
    conditions = tuple(
        Condition(type=type_, status=status, reason="Now", message="It is so now.", last_transition_time=_ago(hours))  # type: ignore[arg-type]
        for type_, status, hours in now
    )
    item: dict[str, Any] = {
        "kind": "MCPServer",
        "namespace": "shop",
        "name": "tools",
        "uid": "uid-1",
        "health": "Ready",
        "reason": "",
        "message": "",
        "since": None,
    }
    return object_health(item, conditions, changes, DAY)


def _row(view: ObjectHealthView) -> list[tuple[int, str]]:
    assert sum(one.cells for one in view.history) == 24
    return [(one.cells, one.health) for one in view.history]


def test_an_object_that_stays_ready_is_one_row_of_cells_and_no_transition() -> None:
    view = _told([("Ready", "True", 100)], _change(100, "True", "Unknown"))
    assert (_row(view), view.transitions, view.last_problem) == ([(24, "Ready")], 0, None)
    assert (view.history[0].since, view.history[0].reason) == (_ago(100), "ReadyIsTrue")


def test_a_short_problem_fills_its_cell_and_tells_when_and_why() -> None:
    view = _told(
        [("Ready", "True", 100), ("Available", "True", 4.4)],
        _change(100, "True"),
        _change(100, "True", type_="Available"),
        _change(4.5, "False", "True", "Available"),
        _change(4.4, "True", "False", "Available"),
    )
    assert _row(view) == [(19, "Ready"), (1, "Degraded"), (4, "Ready")]
    cell = view.history[1]
    assert (cell.since, cell.type, cell.reason) == (_ago(4.5), "Available", "AvailableIsFalse")
    assert (cell.message, cell.address, cell.transitions) == ("Available is False.", "http://tools:8080", 2)
    assert view.transitions == 2 and view.last_problem is not None
    assert (view.last_problem.at, view.last_problem.address) == (_ago(4.5), "http://tools:8080")


def test_not_ready_is_worse_than_degraded_and_lasts_over_cells() -> None:
    view = _told(
        [("Ready", "False", 2.5), ("Available", "False", 5)], _change(30, "True"), _change(2.5, "False", "True")
    )
    assert _row(view) == [(19, "Ready"), (2, "Degraded"), (3, "NotReady")]


def test_a_problem_within_one_second_is_shown() -> None:
    view = _told([("Ready", "True", 2)], _change(9, "True"), _change(2, "False", "True"), _change(2, "True", "False"))
    assert _row(view)[-3:] == [(7, "Ready"), (1, "NotReady"), (1, "Ready")]


def test_an_object_that_was_created_has_nothing_recorded_before_and_unknown_for_a_moment_is_no_cell() -> None:
    view = _told([("Ready", "True", 2.9)], _change(2.91, "Unknown"), _change(2.9, "True", "Unknown"))
    assert _row(view) == [(21, "NotRecorded"), (3, "Ready")]
    assert view.transitions == 1
    assert _row(_told([])) == [(24, "NotRecorded")]


def test_what_was_before_the_first_change_that_is_kept_is_known_by_its_status() -> None:
    view = _told([("Ready", "True", 1.5)], _change(1.5, "True", "False"))
    assert _row(view) == [(22, "NotReady"), (1, "NotReady"), (1, "Ready")]
    assert (view.history[0].since, view.history[0].reason) == (None, "")
    assert view.last_problem is None


def test_a_condition_that_the_object_no_longer_has_decides_nothing() -> None:
    view = _told(
        [("Ready", "True", 30)], _change(30, "True"), _change(10, "True", None, "ToolsChanged"),
        _change(5, ABSENT, "True", "ToolsChanged"),
    )  # fmt: skip
    assert _row(view) == [(14, "Ready"), (5, "Degraded"), (5, "Ready")]


def test_the_object_itself_is_right_where_nothing_is_recorded_or_a_clock_was_ahead() -> None:
    assert _row(_told([("Ready", "False", 3)])) == [(21, "NotRecorded"), (3, "NotReady")]
    # The controller before wrote True by a clock that was two hours ahead of the one that writes now.
    view = _told([("Ready", "False", 5)], _change(30, "True"), _change(3, "True", "True"))
    assert _row(view) == [(21, "Ready"), (3, "NotReady")]


@pytest.mark.parametrize(
    ("hours", "minutes", "cells"), [(1, 60, 1), (24, 60, 24), (25, 360, 5), (167, 360, 28), (168, 360, 28)]
)
def test_periods_are_in_hours_up_to_a_day_and_in_quarters_of_days_beyond(hours: int, minutes: int, cells: int) -> None:
    period = period_of(hours, NOW)
    assert (period.cell, period.cells, period.until) == (timedelta(minutes=minutes), cells, NOW)
    assert period.since == NOW - timedelta(minutes=minutes) * cells
