"""Defines the activity of a configuration object in recorded runs."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class HourOfObject:
    """Calls, executions or runs of an object that began `hour` hours ago and have ended; 0 is the hour until now."""

    kind: str
    namespace: str
    name: str
    hour: int
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True)
class RunOfObject:
    """A run whose plan was made from an object."""

    id: UUID
    namespace: str
    name: str
    chain_namespace: str
    chain: str
    state: str
    accepted_at: datetime
    finished_at: datetime | None
