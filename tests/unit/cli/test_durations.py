"""Spans of time as people write them."""

import pytest

from tarsy.app.durations import seconds_of, seconds_or_forever


@pytest.mark.parametrize(
    ("span", "seconds"), [("30s", 30), ("5m", 300), ("2h", 7200), ("7d", 604_800), ("1w", 604_800)]
)
def test_a_span_is_a_number_with_its_unit(span: str, seconds: float) -> None:
    assert seconds_of(span) == seconds


@pytest.mark.parametrize("span", ["", "7", "d", "0d", "-1d", "1y", "1d2h", "7 d"])
def test_what_is_no_span_is_refused_with_an_example(span: str) -> None:
    with pytest.raises(ValueError, match="such as 7d"):
        seconds_of(span)


def test_for_ever_is_no_number_of_seconds() -> None:
    assert seconds_or_forever("forever") is None
    assert seconds_or_forever("90d") == 7_776_000
    with pytest.raises(ValueError, match="such as 7d"):
        seconds_or_forever("never")
