"""Waits until a condition is true, within a deadline; the failure shows the last value seen.

The one place of these tests that polls; what they watch (a status, a row, a file) tells nobody when it changes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

POLL_SECONDS = 0.05


async def until(what: str, look: Callable[[], Awaitable[Any]], seconds: float = 120.0) -> Any:
    """What `look` gives as soon as it is truthy. Raises AssertionError: not within so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        found = await look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what} (last seen: {found!r})"
        await asyncio.sleep(POLL_SECONDS)
