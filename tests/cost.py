"""Reports CPU seconds by test file: `--cost FILE` writes them, the most expensive file first.

Wall time depends on what else a machine does; CPU seconds do so much less. A file's seconds are those of the process
that ran its tests and of every process started there: servers, programs, Postgres, also those still running. The first
test of a worker pays for what the session shares. Where there is no /proc, only processes that have ended count.
"""

import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

_OPTION = "--cost"
_NAME = "cost"
_COLLECTION = "(collection)"
_DISTRIBUTION = "(distribution to workers)"
_BEGINNING = "(beginning of a worker)"
_END = "(end of the session)"


def add_option(parser: pytest.Parser) -> None:
    """Adds the option that names the file of the report."""
    parser.addoption(_OPTION, type=Path, help="Write CPU seconds by test file to this file.")


def configure(config: pytest.Config) -> None:
    """Registers the measurement where the option is given."""
    path: Path | None = config.getoption(_OPTION)
    if path is not None:
        config.pluginmanager.register(Costs(path), _NAME)


def collected(config: pytest.Config) -> None:
    """Ends the account of collection, in a process that has workers from here on."""
    if costs := _of(config):
        costs.distribute()


def begin(config: pytest.Config) -> None:
    """Begins the account of a worker that was forked."""
    if costs := _of(config):
        costs.begin()


def spent(config: pytest.Config) -> dict[str, float]:
    """Returns what a worker measured, at its end."""
    return costs.end() if (costs := _of(config)) else {}


def add(config: pytest.Config, seconds: dict[str, float]) -> None:
    """Adds what a worker measured; one that died has nothing to say."""
    if costs := _of(config):
        costs.add(seconds)


def _of(config: pytest.Config) -> "Costs | None":
    found = config.pluginmanager.get_plugin(_NAME)
    assert found is None or isinstance(found, Costs)
    return found


class Costs:
    """CPU seconds of a process that runs tests, or of all workers in the process that hears of them."""

    def __init__(self, path: Path) -> None:
        """Starts with collection.

        Args:
            path: of the report.
        """
        self._path = path
        self._distributes = False
        self._spent: Counter[str] = Counter()
        self._before = 0.0
        self._of = _COLLECTION

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Begins the account of a file with its first test."""
        if (file := item.nodeid.partition("::")[0] + _api(item.nodeid)) != self._of:
            self._close(file)
        return (yield)

    def pytest_sessionfinish(self) -> None:
        """Writes the report."""
        self._close(_END)
        self._path.write_text(report(self._spent), "utf-8")

    def distribute(self) -> None:
        """Counts only this process from here on: workers count themselves."""
        self._close(_DISTRIBUTION)
        self._distributes = True
        self._before = self._now()

    def begin(self) -> None:
        """Forgets what the parent measured: a forked process has used no time yet."""
        self._distributes = False
        self._spent.clear()
        self._before, self._of = 0.0, _BEGINNING

    def end(self) -> dict[str, float]:
        """Returns what was measured."""
        self._close(_END)
        return dict(self._spent)

    def add(self, seconds: dict[str, float]) -> None:
        """Adds what a worker measured."""
        self._spent.update(seconds)

    def _close(self, following: str) -> None:
        now = self._now()
        self._spent[self._of] += now - self._before
        self._before, self._of = now, following

    def _now(self) -> float:
        return sum(os.times()[:2]) if self._distributes else cpu_seconds()


def report(spent: Counter[str]) -> str:
    """Returns the report: CPU seconds and the file they belong to, a line each, and the sum."""
    lines = [f"{seconds:8.1f} {name}" for name, seconds in spent.most_common()]
    return "\n".join([*lines, f"{sum(spent.values()):8.1f} (all)", ""])


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and of its descendants, those that ended and those that run."""
    times = os.times()
    return sum(times[:4]) + sum(_running_descendants())


def _running_descendants() -> list[float]:
    parents: dict[int, tuple[int, float]] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of a program is in parentheses and may contain anything.
            fields = entry.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        parents[int(entry.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])) / tick
    found, wanted = [], {os.getpid()}
    while wanted:
        wanted = {pid for pid, (parent, _) in parents.items() if parent in wanted}
        found += [parents[pid][1] for pid in wanted]
    return found


def _api(nodeid: str) -> str:
    return next((f" [{kind}]" for kind in ("real", "embedded", "newer") if f"[{kind}" in nodeid), "")
