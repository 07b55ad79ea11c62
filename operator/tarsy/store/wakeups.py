"""The names of the wake-ups, and who is told of them.

A wake-up carries no data: it says that the database is worth a look. It is passed on after the commit it is about,
and may be lost; every reader also polls (DESIGN section 5, "Events").
"""

from collections.abc import Callable

QUEUE_CHANNEL = "tarsy_queue"
"""Something may be claimable, or a desired state changed. No payload."""

RUN_CHANNEL = "tarsy_run"
"""A run changed; the payload is the investigation's id."""

TURN_CHANNEL = "tarsy_turn"
"""A model call may have its turn; the payload is its ticket."""

FOLLOW_CHANNEL = "tarsy_follow"
"""Somebody reads along with a run (`tarsy.stream.follow_requests`)."""

DELTA_CHANNEL = "tarsy_delta"
"""What a run's models say, as it comes (`tarsy.stream.deltas`): the one channel that carries data, none that lasts."""

NotifyFunction = Callable[[str, str], None]
"""Told the channel and the payload. Must neither block nor raise."""


def silent(channel: str, payload: str) -> None:
    """Tells nobody."""
