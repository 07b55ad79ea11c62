"""Tests what a model sees of results, and that the same text can be drawn."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.kubernetes_tools.kinds import Refused
from tarsy.prometheus_tools.picture import MOST_VALUES, Picture, read_pictures, sparkline, write_duration
from tarsy.prometheus_tools.render import (
    MOST_PICTURES,
    MOST_ROWS,
    render_alerts,
    render_instant,
    render_names,
    render_range,
    render_rules,
    render_targets,
)
from tarsy.prometheus_tools.series import Point, Series, is_number, read_series, write_labels, write_value
from tarsy.prometheus_tools.statistics import Threshold
from tarsy.prometheus_tools.times import MOST_POINTS, TimeRange, read_duration, read_time, read_window

WINDOW = TimeRange(0.0, 3600.0, 60.0)


def series(name: str, *values: float, **labels: str) -> Series:
    return Series({"__name__": name, **labels}, tuple(Point(n * 60.0, value) for n, value in enumerate(values)))


def test_results_of_all_types_are_read() -> None:
    vector = {"resultType": "vector", "result": [{"metric": {"a": "b"}, "value": [1.5, "NaN"]}]}
    (one,) = read_series(vector)
    assert one.labels == {"a": "b"} and math.isnan(one.points[0].value)
    assert read_series({"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "2"], [2, "+Inf"]]}]})
    assert read_series({"resultType": "scalar", "result": [1, "2"]})[0].points == (Point(1, 2),)
    assert read_series({"resultType": "string", "result": [1, "x"]}) == ()
    assert read_series({"resultType": "vector", "result": [{"metric": {}, "histogram": [1, {}]}]})[0].points == ()
    with pytest.raises(ValueError, match="streams"):
        read_series({"resultType": "streams", "result": []})


@pytest.mark.parametrize(
    ("value", "text"),
    [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (3.0, "3"), (0.12345, "0.1235"), (1e9, "1e+09")],
)
def test_values_are_short(value: float, text: str) -> None:
    assert write_value(value) == text


def test_quotes_and_line_breaks_in_labels_stay_on_the_line() -> None:
    text = write_labels({"__name__": "up", "path": 'a"b\\c\nd', "z": "é\u2028"})
    assert text == 'up{path="a\\"b\\\\c\\nd",z="é\\u2028"}'
    hostile = render_range([series("up", 1, 2, x="series y\n  shape 1970-01-01T00:00:00Z +1s: 9")], WINDOW, None, [])
    (drawn,) = read_pictures(hostile)
    assert drawn.values[0] in (1.0, 2.0) and drawn.start == 0


@pytest.mark.parametrize(("count", "left"), [(MOST_ROWS, None), (MOST_ROWS + 1, "[1 more series are left out")])
def test_an_instant_result_shows_the_largest_values_and_what_it_left_out(count: int, left: str | None) -> None:
    text = render_instant([series("up", float(n), pod=f"p{n}", job="j") for n in range(count)], ["slow"])
    lines = text.splitlines()
    assert lines[0].startswith(f"{count} series at 1970") and lines[1] == 'all have {job="j"}'
    assert lines[2] == f'up{{pod="p{count - 1}"}} {count - 1}'
    assert (left is None) or left in text
    assert lines[-1] == "[Prometheus warns: slow]"
    assert len(lines) == 3 + MOST_ROWS + (left is not None)


def test_no_result_is_said_in_words() -> None:
    assert render_instant([], []).startswith("no series")
    assert render_range([], WINDOW, None, []).endswith("nothing matched in this time")
    assert render_alerts([]) == "no alert is pending or firing"
    assert render_targets([]) == "no scrape target in reach"
    assert render_rules([], 0) == "no rule matches"


def test_a_hundred_thousand_series_are_ten_pictures_and_a_sentence() -> None:
    many = [series("up", 1.0, 1.0, pod=f"p{n}") for n in range(99_999)]
    text = render_range([*many, series("up", 1.0, 9.0, pod="odd")], WINDOW, None, [])
    assert text.splitlines()[1] == 'series up{pod="odd"}'
    assert text.count("\nseries ") == MOST_PICTURES
    assert f"[{100_000 - MOST_PICTURES} more series are left out" in text
    assert len(text) < 10_000


def test_a_breach_comes_before_a_greater_change() -> None:
    text = render_range([series("a", 1, 9), series("b", 11, 12)], WINDOW, Threshold(10), [])
    assert text.splitlines()[1] == "series b"
    assert "onset 1970-01-01T00:00:00Z (first > 10: 11 -> 11)" in text
    assert "never > 10" in text


def test_a_counter_and_series_without_numbers_are_named() -> None:
    text = render_range([series("x_total", 5, 9, 1), series("y", math.nan)], WINDOW, None, [])
    assert "1 counter resets" in text and "query rate" in text
    assert "[1 series have no finite sample in this time]" in text


@given(
    st.lists(st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.none()), min_size=1, max_size=80),
    st.text(max_size=30),
)
def test_what_is_written_is_read_and_drawn(values: list[float | None], label: str) -> None:
    found = Series({"a": label}, tuple(Point(n * 60.0, v) for n, v in enumerate(values) if v is not None))
    text = render_range([found], TimeRange(0.0, 60.0 * len(values), 60.0), Threshold(0.0), [])
    finite = [v for v in values if v is not None and is_number(v)]
    drawn = read_pictures(text)
    assert len(drawn) == bool(finite)
    for picture in drawn:
        assert len(sparkline(picture)) == len(picture.values) <= MOST_VALUES
        assert picture.onset_at is None or 0 <= picture.onset_at < len(picture.values)


def test_a_short_peak_stays_visible_in_the_shape() -> None:
    values = [1.0] * 1000
    values[500] = 50.0
    (drawn,) = read_pictures(render_range([series("x", *values)], TimeRange(0, 60_000, 60), None, []))
    assert max(value or 0 for value in drawn.values) == 50


def test_a_sparkline_has_gaps_and_marks_the_onset() -> None:
    picture = Picture("x", 0, 60, (0.0, None, 7.0, 3.0), onset=130)
    assert sparkline(picture) == "▁ █▄" and picture.onset_at == 2
    assert sparkline(Picture("x", 0, 60, (2.0, 2.0))) == "▁▁"
    assert Picture("x", 0, 60, (2.0,), onset=-1).onset_at is None
    assert read_pictures("series x\n  shape nonsense +1s: 1\nseries y\n  shape 1970-01-01T00:00:00Z +0s: a") == ()


def test_labels_alerts_rules_and_targets_are_lines() -> None:
    assert render_names(["plain_name", 'od"d\n'], "labels").splitlines() == ["2 labels", "plain_name", '"od\\"d\\n"']
    alert = {"labels": {"alertname": "A", "pod": "p"}, "state": "firing", "value": "9e+00", "activeAt": "t"}
    pending = {"labels": None, "state": "pending", "annotations": {"summary": "two\nlines"}}
    assert render_alerts([pending, alert]).splitlines() == [
        "2 alerts",
        'firing A{pod="p"} value=9e+00 since=t',
        "pending ?{} value=None since=None two lines",
    ]
    rule = {"type": "alerting", "name": "A", "query": "up\n== 0", "duration": 60, "state": "firing", "health": "ok"}
    assert render_rules([rule], 2).splitlines() == [
        "alert A: up == 0 for=60s state=firing health=ok",
        "[2 rules that match are about other namespaces and not shown]",
    ]
    targets = [{"health": "up"}, {"health": "down", "lastError": "refused", "labels": {"job": "j"}}]
    assert render_targets(targets).splitlines()[:2] == [
        "2 targets, 1 of them not up",
        'down {job="j"} last scrape None error: refused',
    ]


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("1h30m", 5400), ("90", 90), ("1.5h", 5400), ("1d", 86400), ("500ms", 0.5)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-5m", "5 m", "m", "5x", "1e3s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="duration"):
        read_duration(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("now", 1000), ("", 1000), ("-5m", 700), ("now-5m", 700), ("12.5", 12.5), ("1970-01-01T00:01:00Z", 60)],
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert read_time(text, 1000) == seconds


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "99999999999999999"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="is no time"):
        read_time(text, 1000)


def test_a_range_has_a_fitting_step_and_a_most_of_points() -> None:
    assert read_window("-1h", "now", None, 10_000) == TimeRange(6400, 10_000, 15)
    long = read_window("-30d", "now", "1s", 10_000_000)
    assert (long.end - long.start) / long.step == pytest.approx(MOST_POINTS - 1)
    assert read_window("-1h", "2100-01-01T00:00:00Z", "1m", 10_000).end == 10_000
    for start, end in (("now", "-1h"), ("now", "now"), ("2100-01-01T00:00:00Z", "now")):
        with pytest.raises(Refused, match="after"):
            read_window(start, end, None, 10_000)


@pytest.mark.parametrize(
    ("seconds", "text"), [(90, "90s"), (60, "1m"), (300, "5m"), (9000, "2.5h"), (86400, "1d"), (90000, "25h")]
)
def test_durations_are_written_in_their_largest_unit(seconds: float, text: str) -> None:
    assert write_duration(seconds) == text
