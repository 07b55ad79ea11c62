"""Tests of the distribution to workers (tests/distribution.py): brief reports lose nothing, a file stays together."""

import os
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
CONFTEST = Path(__file__).parents[1] / "conftest.py"
OUTCOMES = """
    import pytest

    @pytest.fixture
    def broken(): raise RuntimeError("no server")

    @pytest.fixture
    def untidy():
        yield
        raise RuntimeError("left something")

    def test_passes(): pass

    def test_fails(): assert False, "is wrong"

    def test_has_no_server(broken): pass

    def test_leaves_something(untidy): pass

    @pytest.mark.skip(reason="not here")
    def test_is_skipped(): pass

    @pytest.mark.xfail
    def test_is_known(): assert False

    @pytest.mark.heavy("many times")
    def test_is_left_out(): pass
"""
TOGETHER = """
    import pytest

    RAN = []

    @pytest.mark.parametrize("case", range(5))
    def test_one_process(case): RAN.append(case)

    def test_all_were_here(): assert sorted(RAN) == [0, 1, 2, 3, 4]
"""


@pytest.fixture
def checkout(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A checkout without tests, whose workers find the modules of this one."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (pytester.mkdir("tests") / "conftest.py").write_text(CONFTEST.read_text())
    pytester.makeini("[pytest]\naddopts = --strict-markers --disable-plugin-autoload -p xdist\nmarkers = newer_api")
    return pytester


def test_every_outcome_of_a_worker_is_told(checkout: pytest.Pytester) -> None:
    checkout.makepyfile(**{"tests/unit/test_it": OUTCOMES, "tests/unit/test_other": TOGETHER})
    result = checkout.runpytest_subprocess("-n", "2", "--no-loadscope-reorder", "--quick")
    result.assert_outcomes(passed=8, failed=1, errors=2, skipped=1, xfailed=1)
    left_out = "*1 heavy (many times): make test-all runs it"
    result.stdout.fnmatch_lines_random(["*is wrong*", "*no server*", "*left some*", "*1 not here", left_out])


@pytest.mark.heavy("workers of its own; brief reports are beside it")
def test_who_asks_for_durations_hears_of_fixtures(checkout: pytest.Pytester) -> None:
    checkout.makepyfile(**{"tests/unit/test_it": OUTCOMES})
    result = checkout.runpytest_subprocess("-n", "1", "--durations=0", "-vv")
    result.stdout.fnmatch_lines_random(["*setup*test_passes*", "*teardown*test_passes*"])
