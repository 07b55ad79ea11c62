"""Tests that slow calls and waits for a connection are counted, and logged at intervals."""

import logging

import pytest

from tarsy.store.pressure import SLOW_SECONDS, TELL_SECONDS, Pressure


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.mark.parametrize(("seconds", "counted"), [(0.99, 0), (1.0, 1), (5.0, 1)])
def test_wait_for_a_connection_counts_from_a_second_on(seconds: float, counted: int) -> None:
    pressure = Pressure(Clock())
    pressure.waited("claim", seconds, 20)
    assert (pressure.waits, pressure.slow) == (counted, 0)


@pytest.mark.parametrize(("seconds", "counted"), [(SLOW_SECONDS - 0.01, 0), (SLOW_SECONDS, 1)])
def test_call_is_slow_from_two_seconds_on(seconds: float, counted: int) -> None:
    pressure = Pressure(Clock())
    pressure.took("claim", seconds)
    assert (pressure.waits, pressure.slow) == (0, counted)


def test_log_gets_a_line_every_few_seconds_with_the_count_of_all(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    pressure = Pressure(clock)
    for _ in range(100):
        pressure.waited("write a step", 3.25, 20)
    pressure.took("claim", 4.0)
    clock.time = TELL_SECONDS
    pressure.waited("write a step", 2.0, 20)
    told = [{"event": record.message, **vars(record)} for record in caplog.records]
    asked = ("event", "levelno", "what", "seconds", "count", "connections")
    assert [{key: line[key] for key in asked if key in line} for line in told] == [
        {
            "event": "waited for a connection",
            "levelno": logging.WARNING,
            "what": "write a step",
            "seconds": 3.2,
            "count": 1,
            "connections": 20,
        },
        {"event": "slow call to Postgres", "levelno": logging.WARNING, "what": "claim", "seconds": 4.0, "count": 1},
        {
            "event": "waited for a connection",
            "levelno": logging.WARNING,
            "what": "write a step",
            "seconds": 2.0,
            "count": 101,
            "connections": 20,
        },
    ]
