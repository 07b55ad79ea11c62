"""Fills a record with finished investigations, by SQL: millions of rows in minutes.

The rows are as a run leaves them, in number and shape, but for their texts, which mean nothing.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import asyncpg

RUNS_A_TRANSACTION = 250
_PARTS = ("input", "stages", "executions", "messages", "model_calls", "tool_calls")


async def fill(
    pool: asyncpg.Pool, namespace: str, namespace_uid: str, runs: Sequence[tuple[UUID, str]], events: int
) -> None:
    """Adds finished investigations that were published; the last of them ended just now, each other 20 s before.

    Args:
        pool: a migrated database.
        namespace: theirs.
        namespace_uid: its uid.
        runs: id and name of each.
        events: timeline events of each.
    """
    blocks = re.split(r"^-- name: (\w+)\n", Path(__file__).with_suffix(".sql").read_text(), flags=re.MULTILINE)
    sql = dict(zip(blocks[1::2], blocks[2::2], strict=True))
    async with pool.acquire() as connection:
        await connection.execute("SET statement_timeout = 0")
        await connection.execute("INSERT INTO tool_set VALUES ('tools', '[]') ON CONFLICT DO NOTHING")
        for start in range(0, len(runs), RUNS_A_TRANSACTION):
            part = runs[start : start + RUNS_A_TRANSACTION]
            ids = [run for run, _ in part]
            async with connection.transaction():
                names = [name for _, name in part]
                await connection.execute(sql["investigation"], ids, names, namespace, namespace_uid, events, start)
                for name in _PARTS:
                    await connection.execute(sql[name], ids)
                await connection.execute(sql["events"], ids, events, timeout=600)
        await connection.execute("VACUUM (ANALYZE)", timeout=3600)
        await connection.execute("RESET statement_timeout")
