"""The event loop of the long-running processes: uvloop's where it is installed, else Python's own.

Decision: nothing needs uvloop, so it is no dependency of the package but part of the image: measured with the whole
product it takes a fifth off the CPU of a model call. Commands that end soon have Python's own loop.
"""

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import cast

NewLoop = Callable[[], asyncio.AbstractEventLoop]


def fastest() -> NewLoop | None:
    """What makes the fastest loop that is installed; None for Python's own."""
    try:
        return cast(NewLoop, import_module("uvloop").new_event_loop)
    except ImportError:
        return None
