"""Lists the failed tests that may run again alone: `--failed-to FILE` names them, for `hack/test-all.sh`.

Decision: only failures that may be their neighbours' doing. Where many tests failed, or one could not be collected, or
a worker died, something is broken, and the file stays empty: there is no second chance.
"""

from pathlib import Path

import pytest

MOST = 20
PARTS = ("setup", "call", "teardown")
_OPTION = "--failed-to"


def add_option(parser: pytest.Parser) -> None:
    """The option of a run whose failures may be run again."""
    parser.addoption(_OPTION, type=Path, help=f"Write the tests that failed to this file, if they are {MOST} at most.")


def configure(config: pytest.Config) -> None:
    """Takes note of what fails, in the process that hears of all tests."""
    path: Path | None = config.getoption(_OPTION)
    if path is not None:
        config.pluginmanager.register(Failures(path))


class Failures:
    """What failed in this run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed: dict[str, None] = {}
        self._broken = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test failed, or a fixture of it; a report of no part of a test is of a worker that died."""
        if report.failed:
            self._failed[report.nodeid] = None
            self._broken |= report.when not in PARTS

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file could not be collected."""
        self._broken |= report.failed

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Writes the file."""
        fair = exitstatus == pytest.ExitCode.TESTS_FAILED and not self._broken and len(self._failed) <= MOST
        self._path.write_text("".join(f"{test}\n" for test in self._failed) if fair else "", "utf-8")
