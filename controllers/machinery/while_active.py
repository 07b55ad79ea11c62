"""Runs work that never ends by itself while this replica holds the Lease."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tarsy.kube.lease import LeaderElection

_log = logging.getLogger(__name__)
_AGAIN_SECONDS = 30.0


async def run_while_active(election: LeaderElection, work: Callable[[], Awaitable[None]], name: str) -> None:
    """Starts `work` when this replica becomes active and cancels it when it no longer is, until cancelled.

    A failure of the work ends nothing else: it is logged, and the work starts again.

    Args:
        election: whether this replica is active.
        work: is cancelled in the end.
        name: of the work, for the log.
    """
    while True:
        await election.active.wait()
        passive = asyncio.ensure_future(election.passive.wait())
        working = asyncio.ensure_future(work())
        try:
            await asyncio.wait({passive, working}, return_when=asyncio.FIRST_COMPLETED)
            if working.done() and not working.cancelled() and (error := working.exception()) is not None:
                _log.error("%s failed; starting it again in %g s", name, _AGAIN_SECONDS, exc_info=error)
                await asyncio.wait({passive}, timeout=_AGAIN_SECONDS)
        finally:
            for task in (passive, working):
                task.cancel()
            await asyncio.gather(passive, working, return_exceptions=True)
