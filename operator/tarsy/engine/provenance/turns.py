"""Runs the short steps of a search on the event loop, and the rest in a thread.

To start a thread and to be woken by it costs as much as the search of some short texts, which nearly all calls need.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

LONGEST_STEP = 3_000.0
"""Microseconds of a step that is taken on the event loop, at most."""

LONGEST_TURN = 0.002
"""Seconds after which no further step is taken on the event loop."""

Step = tuple[float, Callable[[], None]]
"""A step, with an upper bound of its duration in microseconds."""


async def take_steps(steps: Sequence[Step]) -> None:
    """Takes steps one after the other, those that would hold up the event loop in a thread.

    Args:
        steps: in their order.
    """
    until = time.perf_counter() + LONGEST_TURN
    for place, (microseconds, take) in enumerate(steps):
        if microseconds > LONGEST_STEP or time.perf_counter() > until:
            await asyncio.to_thread(_take_all, steps[place:])
            return
        take()


def _take_all(steps: Sequence[Step]) -> None:
    for _, take in steps:
        take()
