"""What a process counts."""

import pytest

from tarsy.observe.counters import DECLARED, SWEPT_RUNS, Counters


def test_counters_are_told_from_the_start_as_prometheus_reads_them() -> None:
    counters = Counters()
    assert f"# TYPE {SWEPT_RUNS} counter\n{SWEPT_RUNS} 0\n" in counters.text()

    counters.add(SWEPT_RUNS)
    counters.add(SWEPT_RUNS, 2)

    assert f"\n{SWEPT_RUNS} 3\n" in counters.text()
    assert counters.text().count("# HELP") == len(DECLARED)


def test_what_nobody_declared_is_not_counted() -> None:
    with pytest.raises(KeyError):
        Counters().add("tarsy_surprises_total")
