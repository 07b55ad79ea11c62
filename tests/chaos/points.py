"""Stops the writes of chosen investigations at a named point of a run (docs/design.md), without a hook in the product.

Triggers on the record ask for an advisory lock, shared, one for each point and chain. While the test holds it, the
statement stands still in the middle of its transaction, and the test sees the waiting backend in `pg_locks`. After the
process that sent it was killed, the test decides what became of it: rolled back (its backend is ended, as by a lost
connection) or committed (the lock is let go; the statement had arrived in full), which is a death right after the
commit and before anything that follows it.

A chain is named after the strategy or the agent that is tried in it; only calls of that one stop.
"""

import zlib
from enum import StrEnum
from typing import Any

import asyncpg

from e2e.waiting import until

_CLASS = 7_261_980


class Gate(StrEnum):
    """A write that can stand still."""

    BEGIN = "begin"
    MODEL_CALL_STARTED = "a"
    MODEL_CALL_FINISHED = "b"
    TOOL_CALL_STARTED = "c"
    TOOL_CALL_FINISHED = "d"
    END = "end"
    OBJECT_GONE = "gone"
    CANCEL_WISHED = "wished"
    PEOPLE_ASKED = "asked"
    PARKED = "parked"


_TABLES = {"llm_interaction": ("a", "b"), "mcp_interaction": ("c", "d")}
_INSTALL = """
CREATE TABLE chaos_gate (chain text, gate text, class integer, key integer, PRIMARY KEY (chain, gate));
CREATE FUNCTION chaos_stop(text, text) RETURNS void LANGUAGE sql AS
    'SELECT pg_advisory_xact_lock_shared(class, key) FROM chaos_gate WHERE chain = $1 AND gate = $2';
CREATE FUNCTION chaos_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE tried text[]; named text;
BEGIN
    SELECT ARRAY[e.strategy, e.display_name], i.chain INTO tried, named
    FROM execution e JOIN stage s ON s.id = e.stage JOIN investigation i ON i.id = s.investigation
    WHERE e.id = NEW.execution;
    IF named = ANY(tried) THEN
        PERFORM chaos_stop(named, TG_ARGV[0]);
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION chaos_stage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE named text;
BEGIN
    SELECT i.chain INTO named FROM investigation i WHERE i.id = NEW.investigation;
    IF (named LIKE 'synthesis%') = (NEW.kind = 'synthesis') THEN
        PERFORM chaos_stop(named, 'begin');
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION chaos_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM chaos_stop(NEW.chain, TG_ARGV[0]);
    RETURN NEW;
END $$;
CREATE FUNCTION chaos_ask() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM chaos_stop(i.chain, 'asked') FROM investigation i WHERE i.id = NEW.investigation;
    RETURN NEW;
END $$;
CREATE TRIGGER chaos_asked BEFORE INSERT ON tool_approval FOR EACH ROW EXECUTE FUNCTION chaos_ask();
CREATE TRIGGER chaos_parked BEFORE UPDATE ON investigation FOR EACH ROW
    WHEN (OLD.parked_at IS NULL AND NEW.parked_at IS NOT NULL) EXECUTE FUNCTION chaos_run('parked');
CREATE TRIGGER chaos_begin BEFORE INSERT ON stage FOR EACH ROW EXECUTE FUNCTION chaos_stage();
CREATE TRIGGER chaos_end BEFORE UPDATE ON investigation FOR EACH ROW
    WHEN (OLD.state = 'running' AND NEW.state NOT IN ('pending', 'running')) EXECUTE FUNCTION chaos_run('end');
CREATE TRIGGER chaos_gone BEFORE UPDATE ON investigation FOR EACH ROW
    WHEN (OLD.object_deleted_at IS NULL AND NEW.object_deleted_at IS NOT NULL) EXECUTE FUNCTION chaos_run('gone');
CREATE TRIGGER chaos_wished BEFORE UPDATE ON investigation FOR EACH ROW
    WHEN (OLD.desired_state <> NEW.desired_state) EXECUTE FUNCTION chaos_run('wished');
"""
_REMOVE = """
DROP FUNCTION chaos_step, chaos_stage, chaos_ask, chaos_run, chaos_stop CASCADE;
DROP TABLE chaos_gate;
"""


_QUEUED = """
WITH RECURSIVE dead AS (
    SELECT application_name FROM pg_stat_activity WHERE pid = ANY($1::int[])
), queued AS (
    SELECT unnest($1::int[]) AS pid
    UNION
    SELECT a.pid FROM pg_stat_activity a JOIN queued q ON q.pid = ANY(pg_blocking_pids(a.pid))
    WHERE a.application_name IN (SELECT application_name FROM dead)
)
SELECT pid FROM queued WHERE pid <> ALL($1::int[])
"""
"""Other backends of the same processes (`application_name` contains the process id) that wait for these."""


def _key(chain: str, gate: Gate) -> int:
    return zlib.crc32(f"{chain} {gate}".encode()) % 1_000_000_007


class Points:
    """The gates of all chains, on a connection of the test's own (an advisory lock belongs to a connection)."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def install(self, chains: tuple[str, ...]) -> None:
        """Creates the triggers; the gates of these chains can be closed."""
        await self._connection.execute(_INSTALL)
        for table, (begun, ended) in _TABLES.items():
            await self._connection.execute(
                f"CREATE TRIGGER chaos_{begun} BEFORE INSERT ON {table} FOR EACH ROW"
                f" EXECUTE FUNCTION chaos_step('{begun}');"
                f"CREATE TRIGGER chaos_{ended} BEFORE UPDATE ON {table} FOR EACH ROW"
                f" WHEN (OLD.state = 'started' AND NEW.state IN ('completed', 'failed'))"
                f" EXECUTE FUNCTION chaos_step('{ended}')"
            )
        rows = [(chain, gate.value, _CLASS, _key(chain, gate)) for chain in chains for gate in Gate]
        await self._connection.executemany("INSERT INTO chaos_gate VALUES ($1, $2, $3, $4)", rows)

    async def remove(self) -> None:
        """Drops the triggers and lets everything go."""
        await self._connection.execute("SELECT pg_advisory_unlock_all()")
        await self._connection.execute(_REMOVE)

    async def close(self, chain: str, gate: Gate) -> None:
        """From now on writes of this kind stand still."""
        await self._connection.execute("SELECT pg_advisory_lock($1, $2)", _CLASS, _key(chain, gate))

    async def waiting(self, chain: str, gate: Gate) -> list[int]:
        """The backends whose writes stand still there."""
        rows = await self._connection.fetch(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = $1 AND objid = $2",
            _CLASS,
            _key(chain, gate),
        )
        return [row["pid"] for row in rows]

    async def let_go(self, chain: str, gate: Gate, *, commit: bool) -> None:
        """Commits or rolls back the write that stands still, and waits until it is over; its process is dead already.

        Whatever else its process sent and waits for the same row (a watch and a relist find the same object deleted) is
        rolled back first: it would be written by a process that is no more.
        """
        waiting = await self.waiting(chain, gate)
        assert waiting, f"nothing stands still at {gate} of {chain}"
        await self._end([row["pid"] for row in await self._connection.fetch(_QUEUED, waiting)])
        if not commit:
            await self._end(waiting)
        await self._connection.execute("SELECT pg_advisory_unlock($1, $2)", _CLASS, _key(chain, gate))

        async def over() -> Any:
            return not await self._connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1::int[]) AND state = 'active'", waiting
            )

        await until(f"the writes at {gate} of {chain} are over", over)

    async def _end(self, backends: list[int]) -> None:
        await self._connection.fetch("SELECT pg_terminate_backend(p) FROM unnest($1::int[]) p", backends)

        async def ended() -> bool:
            left = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1::int[])"
            return not await self._connection.fetchval(left, backends)

        await until(f"the backends {backends} have ended", ended)
