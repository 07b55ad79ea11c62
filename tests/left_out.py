"""Counts the tests that `--quick` leaves out, by API and reason, so that the closing lines of a run name them.

Decision: they are dropped once all tests are collected, not skipped one by one: a quarter of the tests would otherwise
be sorted, sent to workers, set up, and reported, in order to do nothing.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

_NAME = "left out"
_OUTPUT = "left_out"


def configure(config: pytest.Config) -> None:
    """Registers the counts of this process."""
    config.pluginmanager.register(_LeftOut(), _NAME)


def count(config: pytest.Config, api: str, reason: str) -> None:
    """Counts one test.

    Args:
        config: of this run.
        api: the Kubernetes API that the test would have used.
        reason: why it is left out.
    """
    _of(config).counts[api, reason] += 1


def counted(config: pytest.Config) -> Iterator[tuple[str, str, int]]:
    """Returns API, reason and number of the tests that were left out, here or by the workers."""
    return ((api, reason, number) for (api, reason), number in _of(config).counts.items())


def _of(config: pytest.Config) -> "_LeftOut":
    found = config.pluginmanager.get_plugin(_NAME)
    assert isinstance(found, _LeftOut)
    return found


class _LeftOut:
    """Counts of one process; the process that reports takes over those of a worker, which are the same in all."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Sends the counts of a worker."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = [(*key, number) for key, number in self.counts.items()]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Takes over the counts of a worker that ended in order."""
        there = getattr(node, "workeroutput", {}).get(_OUTPUT, ())
        self.counts = Counter({(api, reason): number for api, reason, number in there}) or self.counts
