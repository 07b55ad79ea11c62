"""CPU seconds by test file (tests/cost.py): each file pays for its own process and for those that it starts."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from cost import cpu_seconds, report

pytest_plugins = ["pytester"]
CONFTEST = Path(__file__).parents[1] / "conftest.py"
BURN = "import time\nwhile time.process_time() < 0.4: pass\n"
"""A program that takes 0.4 CPU seconds, however long that is; the system counts in hundredths."""
IDLE = "def test_idle(): pass"
BUSY = f"import subprocess, sys\ndef test_busy(): subprocess.run([sys.executable, '-c', {BURN!r}], check=True)"


@pytest.fixture
def checkout(pytester: pytest.Pytester) -> pytest.Pytester:
    """A checkout with a file that does nothing and one whose child process is busy."""
    (pytester.mkdir("tests") / "conftest.py").write_text(CONFTEST.read_text())
    pytester.makepyfile(**{"tests/unit/test_idle": IDLE, "tests/unit/test_busy": BUSY})
    pytester.makeini("[pytest]\naddopts = --strict-markers --disable-plugin-autoload\nmarkers = newer_api")
    return pytester


def _seconds(checkout: pytest.Pytester) -> dict[str, float]:
    lines = (checkout.path / "costs").read_text().splitlines()
    return {name: float(seconds) for seconds, name in (line.strip().split(" ", 1) for line in lines)}


def test_a_file_pays_for_the_processes_that_it_starts(checkout: pytest.Pytester) -> None:
    checkout.runpytest_inprocess("--cost", "costs").assert_outcomes(passed=2)
    costs = _seconds(checkout)
    assert costs["tests/unit/test_busy.py"] >= 0.3 > costs["tests/unit/test_idle.py"]


@pytest.mark.heavy("workers of its own; a process alone is beside it")
def test_files_of_workers_are_in_one_report(checkout: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    checkout.runpytest_subprocess("--workers", "1", "--cost", "costs").assert_outcomes(passed=2)
    costs = _seconds(checkout)
    assert costs["tests/unit/test_busy.py"] >= 0.3 > costs["tests/unit/test_idle.py"]
    assert {"(collection)", "(distribution to workers)"} <= set(costs)


def test_a_process_that_still_runs_counts() -> None:
    before = cpu_seconds()
    program = f"{BURN}print('busy no more', flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        assert cpu_seconds() - before >= 0.3
        child.communicate(b"\n")


def test_the_most_expensive_comes_first_and_the_sum_last() -> None:
    assert report(Counter(a=0.25, b=12.0)) == "    12.0 b\n     0.2 a\n    12.2 (all)\n"
