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
    """A run under way, and the tool servers it has for itself: namespace and name of each, and whom it acts as."""

    run: UUID
    namespace: str
    seconds_left: float
    servers: frozenset[tuple[str, str, str | None]]


class Workloads:
    """Reads them; raises StoreError when Postgres is away or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("workloads")

    async def running(self) -> Sequence[RunningServers]:
        """Those of all runs under way."""

        async def fetch(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            found: Sequence[asyncpg.Record] = await connection.fetch(*self._sql["running"]())
            return found

        rows = await call(self._pool, "read which tool servers runs have for themselves", fetch)
        return [
            RunningServers(
                row["id"], row["namespace"], row["seconds_left"], frozenset(_own(json.loads(row["plan"])["stages"]))
            )
            for row in rows
        ]


def _own(stages: Any) -> Iterator[tuple[str, str, str | None]]:
    """The servers of a plan's stages that are one for each run; none for agents that lack the account it is to act as.

    What only answers questions about a run is not its own: each answer is a run itself.
    """
    for server in (server for stage in stages for agent in stage["agents"] for server in agent["servers"]):
        transport, account = server["transport"], server.get("account")
        if transport["type"] != "workload" or not transport["per_run"]:
            continue
        if account is not None or not transport.get("kubeconfig"):
            yield transport["namespace"], transport["server"], account
