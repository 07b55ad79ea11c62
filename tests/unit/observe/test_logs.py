"""Tests that the logs of one test are not those of the next."""

import io
import logging
from collections.abc import Generator
from pathlib import Path

import pytest

from tarsy.observe import logs

CONFTEST = Path(__file__).parents[2] / "conftest.py"


def _around_a_test(config: pytest.Config) -> Generator[None, object, object]:
    hooks = config.hook.pytest_runtest_protocol.get_hookimpls()
    return next(hook.function() for hook in hooks if Path(hook.function.__code__.co_filename) == CONFTEST)


@pytest.mark.parametrize("name", [None, *logs.QUIETER])
def test_a_test_that_configures_logs_hides_no_line_from_the_next(
    request: pytest.FixtureRequest, name: str | None
) -> None:
    logger = logging.getLogger(name)
    before = logger.level
    around = _around_a_test(request.config)
    next(around)
    logs.configure(json=True, level="ERROR", stream=io.StringIO())
    assert logger.level > before
    with pytest.raises(StopIteration):
        next(around)
    assert logger.level == before
