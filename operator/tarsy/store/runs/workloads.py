"""Reads which runs in progress have tool servers of their own.

Decision: the servers are read from the plans of runs in progress, so that no further state is stored and the result is
the same after any crash.
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
    """A run in progress and its own tool servers: namespace, name and account of each."""

    run: UUID
    namespace: str
    seconds_left: float
    servers: frozenset[tuple[str, str, str | None]]


class Workloads:
    """Reads runs with tool servers of their own; raises StoreError when Postgres is unavailable or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("workloads")

    async def running(self) -> Sequence[RunningServers]:
        """Returns all runs in progress that have tool servers of their own."""

        async def fetch(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            found: Sequence[asyncpg.Record] = await connection.fetch(*self._sql["running"]())
            return found

        rows = await call(self._pool, "read the tool servers of runs", fetch)
        return [
            RunningServers(
                row["id"], row["namespace"], row["seconds_left"], frozenset(_own(json.loads(row["plan"])["stages"]))
            )
            for row in rows
        ]


def _own(stages: Any) -> Iterator[tuple[str, str, str | None]]:
    """Yields the per-run servers of the stages of a plan; none for agents without the account that the server acts as.

    Servers that only answer questions are left out: each answer is a run itself.
    """
    for server in (server for stage in stages for agent in stage["agents"] for server in agent["servers"]):
        transport, account = server["transport"], server.get("account")
        if transport["type"] != "workload" or not transport["per_run"]:
            continue
        if account is not None or not transport.get("kubeconfig"):
            yield transport["namespace"], transport["server"], account
