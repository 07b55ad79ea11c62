"""Rows and bytes in Postgres per model call.

Bytes are the growth of the files (`pg_total_relation_size`: table, indexes, TOAST) between two VACUUMs, so dead rows
that later rows will take the place of are in them, as they are on a disk. Beside them the text that was to be stored,
and the write-ahead log, which is what replicas and backups carry.
"""

from dataclasses import dataclass

from tests.bench.bed import AGENT, Bed, loop_script
from tests.bench.figures import Figure, Result
from tests.bench.tool_server import ANSWER_CHARACTERS

CALLS, TOKENS = 10, 200
TABLES = "SELECT c.relname FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'tarsy'::regnamespace ORDER BY 1"
TEXT = """
    SELECT sum(octet_length(m.content)) FROM message m JOIN execution e ON e.id = m.execution
    JOIN stage s ON s.id = e.stage JOIN investigation i ON i.id = s.investigation
    WHERE i.namespace = $1 AND i.name NOT LIKE 'warm-up%'
"""


@dataclass(frozen=True, slots=True)
class _Size:
    rows: int
    bytes: int


async def run(bed: Bed, quick: bool) -> Result:
    """Sizes before and after a number of tool loops."""
    count = 3 if quick else 50
    async with bed.tenant("rows-and-bytes", loop_script(CALLS, tokens=TOKENS)) as tenant:
        await tenant.chain([AGENT])
        before, wal = await _sizes(bed), await bed.pool.fetchval("SELECT pg_current_wal_insert_lsn()::text")
        await tenant.create_many("run", count)
        await tenant.settled("run", count)
        log = await bed.pool.fetchval("SELECT pg_current_wal_insert_lsn() - $1::text::pg_lsn", wal)
        after = await _sizes(bed)
        text = await bed.pool.fetchval(TEXT, tenant.name)
    calls = count * CALLS
    grown = {
        table: _Size(size.rows - before[table].rows, size.bytes - before[table].bytes) for table, size in after.items()
    }
    how = (
        f"{count} investigations of one stage and one agent, {CALLS} model calls of {TOKENS} tokens each and "
        f"{CALLS - 1} tool calls whose answers have {ANSWER_CHARACTERS} characters. Growth between two VACUUMs, by "
        "exact counts of rows and pg_total_relation_size, divided by model calls, the rows of the "
        "investigation itself included."
    )
    figures = [
        Figure("rows per model call", sum(size.rows for size in grown.values()) / calls, "rows"),
        Figure("bytes per model call", sum(size.bytes for size in grown.values()) / calls, "bytes"),
        Figure("text of the conversation per model call", float(text) / calls, "bytes"),
        Figure("write-ahead log per model call", float(log) / calls, "bytes"),
    ]
    for table, size in grown.items():
        if size.rows or size.bytes:
            detail = {"rows": size.rows, "bytes": size.bytes}
            figures.append(Figure(f"  {table}: rows", size.rows / calls, "rows", detail=detail))
            figures.append(Figure(f"  {table}: bytes", size.bytes / calls, "bytes"))
    return Result(how, figures)


async def _sizes(bed: Bed) -> dict[str, _Size]:
    """Rows and bytes of each table, after a VACUUM."""
    found = {}
    async with bed.pool.acquire() as connection:
        tables = [row["relname"] for row in await connection.fetch(TABLES)]
        for table in tables:
            name = await connection.fetchval("SELECT quote_ident($1)", table)
            await connection.execute(f"VACUUM (ANALYZE) {name}")
            rows = await connection.fetchval(f"SELECT count(*) FROM {name}")  # noqa: S608 - a name from the catalog
            size = await connection.fetchval("SELECT pg_total_relation_size($1::text::regclass)", name)
            found[table] = _Size(rows, size)
    return found
