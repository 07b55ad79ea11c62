"""Brings a database's schema to what this version needs, once, however many processes start together.

All of it is one transaction under one advisory lock: it holds through transaction poolers and leaves nothing half
done. A migration that was applied is never edited; its checksum is compared at every start.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import asyncpg

from tarsy.store.database import SCHEMA, call
from tarsy.store.errors import SchemaMismatch

_LOCK = 7_261_979_001
_FILE = re.compile(r"^(\d{4})_(\w+)\.sql$")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the statement text, as hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations() -> tuple[Migration, ...]:
    """The migrations this version ships, in order."""
    found = []
    for file in files("tarsy.store").joinpath("migrations").iterdir():
        if match := _FILE.match(file.name):
            found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.version))


async def migrate(pool: asyncpg.Pool, steps: Sequence[Migration] | None = None) -> tuple[int, ...]:
    """Applies what is missing and returns the versions applied now.

    Args:
        pool: from `open_pool`.
        steps: the migrations to bring the database to; those shipped when None.

    Raises:
        SchemaMismatch: the database is newer than this version, or an applied migration has changed.
        StoreError: a statement was refused (`StoreUnavailable` when Postgres is away).
    """
    wanted = migrations() if steps is None else tuple(steps)

    async def apply(connection: asyncpg.Connection) -> tuple[int, ...]:
        async with connection.transaction():
            await connection.execute("SET LOCAL statement_timeout = 0")
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK, timeout=600)
            await _prepare(connection)
            applied = await connection.fetch("SELECT version, name, checksum FROM schema_migrations ORDER BY version")
            missing = _missing(wanted, {row["version"]: (row["name"], row["checksum"]) for row in applied})
            for step in missing:
                await connection.execute(step.sql, timeout=600)
                await connection.execute(
                    "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)",
                    step.version,
                    step.name,
                    step.checksum,
                )
            return tuple(step.version for step in missing)

    return await call(pool, "bring the schema up to date", apply)


async def _prepare(connection: asyncpg.Connection) -> None:
    if await connection.fetchval("SELECT to_regnamespace($1) IS NULL", SCHEMA):
        await connection.execute(f"CREATE SCHEMA {SCHEMA}")
    await connection.execute(f"SET LOCAL search_path = {SCHEMA}")
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations (version integer PRIMARY KEY, name text NOT NULL,"
        " checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )


def _missing(wanted: Sequence[Migration], applied: dict[int, tuple[str, str]]) -> list[Migration]:
    known = max((step.version for step in wanted), default=0)
    newest = max(applied, default=0)
    if newest > known:
        raise SchemaMismatch(
            f"The database's schema is at version {newest}, this operator knows versions up to {known}. "
            "Run the newer operator, or give this one a database of its own."
        )
    for step in wanted:
        if step.version in applied and applied[step.version][1] != step.checksum:
            raise SchemaMismatch(
                f"Migration {step.version:04d}_{step.name} was applied to the database in another form than this "
                "operator ships. Restore the shipped file, and put the change in a new migration."
            )
    return [step for step in wanted if step.version not in applied]
