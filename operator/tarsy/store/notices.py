"""The outbox of what people are told about runs: rows that are owed until they were sent, or given up.

Decision: a row is one target, run and occasion, and its id is made of them, so owing it twice is owing it once and a
receiver that is sent it twice (the process died before it could note that it was sent) knows it by its id.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid5

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load

NoticeOccasion = Literal["started", "ended"]
THREAD_SECONDS = 86_400.0
"""What comes later than this after the last of an incident begins a thread of its own (reference section 1.19)."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What is owed to one target: `settings` say how it is reached, `thread` is what belongs together there.

    `tries` counts this one; `age` is the seconds since it was owed.
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
    """The outbox.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("notices")

    async def owe(
        self, run: UUID, target: str, occasion: NoticeOccasion, settings: Mapping[str, Any], thread: str
    ) -> None:
        """Notes that a target is to be told; again is once.

        Args:
            run: the investigation.
            target: names it: the object and its entry.
            occasion: of what.
            settings: how it is reached, without any secret.
            thread: what belongs together there.

        Raises:
            StoreError: Postgres is away or refused.
        """
        owed = self._sql["owe"](
            id=uuid5(run, f"{target}\0{occasion}"),
            investigation=run,
            target=target,
            occasion=occasion,
            settings=dict(settings),
            thread=thread,
        )

        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*owed)

        await call(self._pool, f"note whom to tell of investigation {run}", write)

    async def route(self, alert_uid: str) -> tuple[str, str] | None:
        """Namespace and name of the AlertRoute that made an Alert, as the intake wrote it down; None: none did."""

        async def read(connection: asyncpg.Connection) -> str | None:
            found: str | None = await connection.fetchval(*self._sql["route"](alert_uid=alert_uid))
            return found

        found = await call(self._pool, "read which route made an alert", read)
        if found is None:
            return None
        namespace, _, name = found.partition("/")
        return namespace, name

    async def take(self, most: int, seconds: float) -> list[Notice]:
        """What is due now, for `seconds` this caller's to send."""

        async def take(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            found: list[asyncpg.Record] = await connection.fetch(*self._sql["take"](limit=most, seconds=seconds))
            return found

        return [Notice(**dict(row)) for row in await call(self._pool, "take notices that are due", take)]

    async def sent(self, notice: UUID) -> None:
        """It was taken by its target."""
        await self._execute("note that a notice was sent", "sent", id=notice)

    async def failed(self, notice: UUID, problem: str) -> None:
        """It is given up."""
        await self._execute("note that a notice failed", "failed", id=notice, problem=problem)

    async def later(self, notice: UUID, problem: str, seconds: float) -> None:
        """It is tried again then."""
        await self._execute("put a notice off", "later", id=notice, problem=problem, seconds=seconds)

    async def thread(self, target: str, thread: str) -> str | None:
        """The message under which it is put; None: it begins one."""

        async def read(connection: asyncpg.Connection) -> str | None:
            found: str | None = await connection.fetchval(
                *self._sql["thread"](target=target, thread=thread, seconds=THREAD_SECONDS)
            )
            return found

        return await call(self._pool, "read the thread of a notice", read)

    async def keep_thread(self, target: str, thread: str, ts: str) -> None:
        """Notes the message that was sent; the first of a thread stays the one that others are put under."""
        await self._execute(
            "note the thread of a notice", "keep_thread", target=target, thread=thread, ts=ts, seconds=THREAD_SECONDS
        )

    async def forget_threads(self) -> None:
        """Deletes those that nothing is put under any more."""
        await self._execute("forget threads of notices", "forget_threads", seconds=THREAD_SECONDS)

    async def _execute(self, what: str, statement: str, /, **values: Any) -> None:
        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql[statement](**values))

        await call(self._pool, what, write)
