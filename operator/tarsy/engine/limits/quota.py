"""Decides how a run goes on when a quota of its namespace has no room for its next model call.

A run that has begun concludes early, with what it has, as one whose own budget is reached. Only where the quota says
Queue, and its next period begins within the time that the run may wait, it waits for that without a worker.
"""

from datetime import UTC, datetime

from tarsy.engine.limits.budget import BudgetSpent
from tarsy.engine.limits.budget_stop import note_exceeded
from tarsy.engine.run_context import RunContext
from tarsy.record.history import BudgetExceeded, BudgetLimit
from tarsy.record.quota import QuotaRefused
from tarsy.record.waiting import RunWaits, Wait, WaitReason


async def without_room(refused: QuotaRefused, world: RunContext, *, may_wait: bool) -> RunWaits | BudgetSpent:
    """Returns what is raised instead of making a model call; the end of a run's spending is on record then.

    Args:
        refused: by a quota.
        world: the run's ports.
        may_wait: whether the call is worth waiting for.
    """
    refusal = refused.refusal
    seconds = (refusal.ends_at - datetime.now(UTC)).total_seconds()
    waits = may_wait and refusal.on_exceeded == "Queue" and not refusal.fits_never and not world.concluding
    if waits and seconds <= world.waiting.seconds and world.waiting.full is None:
        until = f"It goes on at {refusal.ends_at:%Y-%m-%d %H:%M} UTC."
        return RunWaits(Wait(WaitReason.QUOTA, refusal.ends_at, f"{refusal.cause} {until}"))
    exceeded = BudgetExceeded(BudgetLimit.QUOTA, str(refused))
    await note_exceeded(world, exceeded)
    return BudgetSpent(exceeded)
