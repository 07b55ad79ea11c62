"""Stops the operator's writes at a boundary of a run (docs/design.md), without a hook in the product.

A trigger on the two interaction tables asks for an advisory lock, shared, one for each boundary. While the test holds
that lock, the statement stands still in the middle of its transaction, with its rows written or not yet, and the test
sees the waiting backend in `pg_locks`. After the operator was killed the test decides what became of the transaction:
rolled back (the backend is ended, as by a lost connection) or committed (the lock is let go; the statement had arrived
in full), which is a death right after the commit and before anything that follows it.
"""

from enum import IntEnum, StrEnum
from typing import Any

import asyncpg

from e2e.waiting import until

_CLASS = 7_261_979


class Boundary(IntEnum):
    """The four boundaries."""

    A_MODEL_CALL_STARTED = 1
    B_MODEL_CALL_FINISHED = 2
    C_TOOL_CALL_STARTED = 3
    D_TOOL_CALL_FINISHED = 4


class Fate(StrEnum):
    """What becomes of the transaction that the operator died in."""

    ROLLED_BACK = "rolled back"
    COMMITTED = "committed"


_INSTALL = f"""
CREATE FUNCTION chaos_stop() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({_CLASS}, TG_ARGV[0]::integer);
    RETURN NEW;
END $$;
CREATE TRIGGER chaos_a BEFORE INSERT ON llm_interaction FOR EACH ROW EXECUTE FUNCTION chaos_stop(1);
CREATE TRIGGER chaos_b BEFORE UPDATE ON llm_interaction FOR EACH ROW
    WHEN (OLD.state = 'started' AND NEW.state IN ('completed', 'failed')) EXECUTE FUNCTION chaos_stop(2);
CREATE TRIGGER chaos_c BEFORE INSERT ON mcp_interaction FOR EACH ROW EXECUTE FUNCTION chaos_stop(3);
CREATE TRIGGER chaos_d BEFORE UPDATE ON mcp_interaction FOR EACH ROW
    WHEN (OLD.state = 'started' AND NEW.state IN ('completed', 'failed')) EXECUTE FUNCTION chaos_stop(4);
"""
_REMOVE = """
DROP TRIGGER chaos_a ON llm_interaction; DROP TRIGGER chaos_b ON llm_interaction;
DROP TRIGGER chaos_c ON mcp_interaction; DROP TRIGGER chaos_d ON mcp_interaction;
DROP FUNCTION chaos_stop;
"""


class Boundaries:
    """The four gates, on a connection of the test's own (an advisory lock belongs to a connection)."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def install(self) -> None:
        """Creates the triggers."""
        await self._connection.execute(_INSTALL)

    async def remove(self) -> None:
        """Drops the triggers and lets everything go."""
        await self._connection.execute("SELECT pg_advisory_unlock_all()")
        await self._connection.execute(_REMOVE)

    async def close(self, boundary: Boundary) -> None:
        """From now on writes of this boundary stand still."""
        await self._connection.execute("SELECT pg_advisory_lock($1, $2)", _CLASS, int(boundary))

    async def reached(self, boundary: Boundary, count: int = 1, seconds: float = 60.0) -> list[int]:
        """Waits until so many writes stand still there; the backends that do."""

        async def look() -> Any:
            rows = await self._connection.fetch(
                "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = $1 AND objid = $2",
                _CLASS,
                int(boundary),
            )
            return [row["pid"] for row in rows] if len(rows) >= count else []

        return list(await until(f"{count} writes stand still at {boundary.name}", look, seconds))

    async def let_go(self, boundary: Boundary, fate: Fate) -> None:
        """Decides about the writes that stand still, and waits until they are over; the operator is dead already."""
        waiting = await self.reached(boundary)
        if fate is Fate.ROLLED_BACK:
            await self._connection.fetch("SELECT pg_terminate_backend(p) FROM unnest($1::int[]) p", waiting)
        else:
            await self._connection.execute("SELECT pg_advisory_unlock($1, $2)", _CLASS, int(boundary))

        async def over() -> bool:
            left = await self._connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1::int[]) AND state = 'active'", waiting
            )
            return left == 0

        await until(f"the writes at {boundary.name} are over", over)
        if fate is Fate.ROLLED_BACK:
            await self._connection.execute("SELECT pg_advisory_unlock($1, $2)", _CLASS, int(boundary))
