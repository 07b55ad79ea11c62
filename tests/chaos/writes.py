"""Notes which process wrote which row of the record, and when: by triggers, and the name that each connection bears."""

from datetime import datetime

import asyncpg

_RECORD = (
    "investigation",
    "lease",
    "stage",
    "execution",
    "message",
    "tool_set",
    "llm_interaction",
    "mcp_interaction",
    "timeline_event",
)
_INSTALL = """
CREATE TABLE chaos_write (who text, what text, at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION chaos_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos_write (who, what) VALUES (current_setting('application_name'), TG_OP || ' ' || TG_TABLE_NAME);
    RETURN NULL;
END $$;
"""
_TRIES = 5
_REMOVE = "DROP FUNCTION chaos_note CASCADE; DROP TABLE chaos_write;"


async def install(connection: asyncpg.Connection) -> None:
    """From now on all writes are noted."""
    await connection.execute(_INSTALL)
    for table in _RECORD:
        await connection.execute(
            f"CREATE TRIGGER chaos_note AFTER INSERT OR UPDATE OR DELETE ON {table}"
            " FOR EACH ROW EXECUTE FUNCTION chaos_note()"
        )


async def remove(connection: asyncpg.Connection) -> None:
    """Forgets everything; a worker that writes meanwhile may lock the tables in another order."""
    for left in reversed(range(_TRIES)):
        try:
            await connection.execute(_REMOVE)
            return
        except asyncpg.DeadlockDetectedError:
            if not left:
                raise


async def written(connection: asyncpg.Connection, pid: int, since: datetime | None = None) -> list[str]:
    """What the worker with this process id has written, since a time of Postgres' clock where one is given."""
    rows = await connection.fetch(
        "SELECT what FROM chaos_write WHERE who = $1 AND ($2::timestamptz IS NULL OR at > $2) ORDER BY at",
        f"tarsy worker {pid}",
        since,
    )
    return [row["what"] for row in rows]
