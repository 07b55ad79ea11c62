"""Captures logs of tests at the root logger only.

Decision: pytest looks through all loggers, twice for each part of each test, for those that do not propagate. The
SDKs of models make many loggers, and the search took seven of six hundred CPU seconds. None of ours, nor of what
we log with, does without the root.
"""

import logging

from _pytest.logging import catching_logs


def configure() -> None:
    """Replaces how pytest attaches its handlers."""
    catching_logs.__enter__ = _attach  # type: ignore[assignment, method-assign]


def _attach(capture: catching_logs[logging.Handler]) -> logging.Handler:
    root = logging.getLogger()
    root.addHandler(capture.handler)
    capture.attached_loggers.append(root)
    if capture.level is not None:
        capture.handler.setLevel(capture.level)
        capture.orig_level = root.level
        root.setLevel(min(root.level, capture.level))
    return capture.handler
