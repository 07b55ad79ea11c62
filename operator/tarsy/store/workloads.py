"""Runs under way whose plan has a tool server that each run has for itself.

Decision: read from the plans of what is running now, so nothing more has to be kept in the record: the answer is the
same after any crash.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load


@dataclass(frozen=True, slots=True)
class RunningServers:
    """A run under way, and the tool servers it has for itself: namespace and name of each."""

    run: UUID
    seconds_left: float
    servers: frozenset[tuple[str, str]]


class Workloads:
    """Reads them; raises StoreError when Postgres is away or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("workloads")

    async def running(self) -> Sequence[RunningServers]:
        """Those of all runs under way."""

        async def fetch(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            found: Sequence[asyncpg.Record] = await connection.fetch(self._sql["running"])
            return found

        rows = await call(self._pool, "read which tool servers runs have for themselves", fetch)
        return [
            RunningServers(row["id"], row["seconds_left"], frozenset(_own(json.loads(row["plan"])))) for row in rows
        ]


def _own(part: Any) -> Iterator[tuple[str, str]]:
    """The servers anywhere in a plan that are one for each run."""
    if isinstance(part, dict):
        if part.get("type") == "workload" and part.get("per_run") is True:
            yield part["namespace"], part["server"]
        for value in part.values():
            yield from _own(value)
    elif isinstance(part, list):
        for value in part:
            yield from _own(value)
