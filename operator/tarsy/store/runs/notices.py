"""Keeps the outbox of notices about runs: a notice is owed until it was sent or given up.

Decision: the id of a notice derives from target, run and occasion, so that it is stored once, and a receiver can
recognise a notice that is sent twice because the process died before it recorded the first delivery.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid5

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load

NoticeOccasion = Literal["started", "waits", "ended"]
THREAD_SECONDS = 86_400.0
"""A notice later than this after the last one of its thread begins a new thread."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice that is owed to one target.

    `settings` contain how to reach the target, `thread` groups notices there. `tries` includes this one; `age` is in
    seconds since the notice was stored.
    """

    id: UUID
    investigation: UUID
    target: str
    occasion: NoticeOccasion
    settings: Mapping[str, Any]
    thread: str
    tries: int
    made_at: datetime
    age: float


class Notices:
    """Stores and hands out notices.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("notices")

    async def owe(
        self,
        run: UUID,
        target: str,
        occasion: NoticeOccasion,
        settings: Mapping[str, Any],
        thread: str,
        *,
        number: int = 0,
    ) -> None:
        """Stores a notice that is owed to a target; a repetition changes nothing.

        Args:
            run: the investigation.
            target: the object and its entry.
            occasion: beginning or end of the run, or that it waits for people.
            settings: how to reach the target, without secrets.
            thread: groups notices at the target; an earlier notice of this run there decides instead.
            number: tells several notices of one occasion apart.

        Raises:
            StoreError: Postgres is unavailable or refused.
        """
        owed = self._sql["owe"](
            id=uuid5(run, f"{target}\0{occasion}" + (f"\0{number}" if number else "")),
            number=number,
            investigation=run,
            target=target,
            occasion=occasion,
            settings=dict(settings),
            thread=thread,
        )

        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*owed)

        await call(self._pool, f"store a notice of investigation {run}", write)

    async def route(self, alert_uid: str) -> tuple[str, str] | None:
        """Returns namespace and name of the AlertRoute that created an Alert; None: no route did."""

        async def read(connection: asyncpg.Connection) -> str | None:
            found: str | None = await connection.fetchval(*self._sql["route"](alert_uid=alert_uid))
            return found

        found = await call(self._pool, "read the route of an alert", read)
        if found is None:
            return None
        namespace, _, name = found.partition("/")
        return namespace, name

    async def take(self, most: int, seconds: float) -> list[Notice]:
        """Takes up to `most` due notices, which this caller has `seconds` to send."""

        async def take(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            found: list[asyncpg.Record] = await connection.fetch(*self._sql["take"](limit=most, seconds=seconds))
            return found

        return [Notice(**dict(row)) for row in await call(self._pool, "take due notices", take)]

    async def sent(self, notice: UUID) -> None:
        """Notes that a notice was delivered."""
        await self._execute("note that a notice was sent", "sent", id=notice)

    async def failed(self, notice: UUID, problem: str) -> None:
        """Gives a notice up."""
        await self._execute("note that a notice failed", "failed", id=notice, problem=problem)

    async def later(self, notice: UUID, problem: str, seconds: float) -> None:
        """Postpones a notice.

        Args:
            notice: its id.
            problem: why it was not delivered.
            seconds: until the next try.
        """
        await self._execute("postpone a notice", "later", id=notice, problem=problem, seconds=seconds)

    async def thread(self, target: str, thread: str) -> str | None:
        """Returns the message that begins a thread; None: the next notice begins it."""

        async def read(connection: asyncpg.Connection) -> str | None:
            found: str | None = await connection.fetchval(
                *self._sql["thread"](target=target, thread=thread, seconds=THREAD_SECONDS)
            )
            return found

        return await call(self._pool, "read the thread of a notice", read)

    async def keep_thread(self, target: str, thread: str, ts: str) -> None:
        """Stores the message (`ts`) that begins a thread at a target; the first one stays."""
        await self._execute(
            "note the thread of a notice", "keep_thread", target=target, thread=thread, ts=ts, seconds=THREAD_SECONDS
        )

    async def forget_threads(self) -> None:
        """Deletes threads that have expired."""
        await self._execute("forget threads of notices", "forget_threads", seconds=THREAD_SECONDS)

    async def _execute(self, what: str, statement: str, /, **values: Any) -> None:
        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql[statement](**values))

        await call(self._pool, what, write)
