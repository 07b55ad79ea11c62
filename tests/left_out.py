"""Counts the tests that `--quick` leaves out, by API and reason, so that the closing lines of a run name them.

Decision: they are dropped once all tests are collected, not skipped one by one: a quarter of the tests would otherwise
be sorted, sent to workers, set up, and reported, in order to do nothing.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

_COUNTS = pytest.StashKey[Counter[tuple[str, str]]]()


def count(config: pytest.Config, api: str, reason: str) -> None:
    """Counts one test.

    Args:
        config: of this run.
        api: the Kubernetes API that the test would have used.
        reason: why it is left out.
    """
    config.stash.setdefault(_COUNTS, Counter())[api, reason] += 1


def counted(config: pytest.Config) -> Iterator[tuple[str, str, int]]:
    """Returns API, reason and number of the tests that were left out."""
    counts = config.stash.get(_COUNTS, Counter())
    return ((api, reason, number) for (api, reason), number in counts.items())
