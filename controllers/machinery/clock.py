"""Tells the time by which objects grow old and schedules fire."""

from datetime import UTC, datetime


def wall_clock() -> datetime:
    """Returns the time of the machine."""
    return datetime.now(UTC)
