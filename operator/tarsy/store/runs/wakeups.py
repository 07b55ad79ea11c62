"""Defines the channels of wake-ups.

A wake-up carries no data: it makes readers query the database. It is sent after the commit of a change and may be lost,
so every reader also polls.
"""

from collections.abc import Callable

QUEUE_CHANNEL = "tarsy_queue"
"""A run may be claimable. The payload is `CLAIMABLE` if that is all; without one, a desired state may have changed."""

CLAIMABLE = "claimable"
"""Payload of wake-ups that concern claims only: heartbeats need not read the desired states again."""

RUN_CHANNEL = "tarsy_run"
"""A run changed; the payload is the investigation's id."""

TURN_CHANNEL = "tarsy_turn"
"""A waiting model call may get a slot; the payload is its ticket."""

FOLLOW_CHANNEL = "tarsy_follow"
"""A reader follows a run (`tarsy.stream.follow_requests`)."""

DELTA_CHANNEL = "tarsy_delta"
"""Text that models of a run are writing (`tarsy.stream.deltas`): the only channel with data, which is not stored."""

NotifyFunction = Callable[[str, str], None]
"""Takes channel and payload. Must neither block nor raise."""


def silent(channel: str, payload: str) -> None:
    """Sends no wake-up."""
