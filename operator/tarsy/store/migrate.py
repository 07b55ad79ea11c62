"""Migrates the schema of a database once, even when many processes start together.

The migration is one transaction under one advisory lock: that works through transaction poolers and leaves nothing half
done. An applied migration is never edited; its checksum is compared at every start.

In a rolling upgrade the old version runs beside the new one, and a rollback starts the old one again. So each migration
declares in its file (`-- oldest reader: N`) the oldest code that may use the schema after it. A migration that adds is
written so that the version before needs no change. A migration that removes comes a version after the last code that
needs the old schema, and waits until no older worker is alive. A file without a declaration is for its own version
only.

Plans are frozen in the record. A worker that does not know the newest migration of the code that made a plan leaves the
run to others for a while, unless the migration declares that it changes no plans (`-- plans: unchanged`).
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import asyncpg

from tarsy.store.database import SCHEMA, call
from tarsy.store.errors import OlderWorkers, SchemaMismatch
from tarsy.store.queries import load

_LOCK = 7_261_979_001
_FILE = re.compile(r"^(\d{4})_(\w+)\.sql$")
_READER = re.compile(r"^-- oldest reader: (\d+)$", re.MULTILINE)
_SAME_PLANS = re.compile(r"^-- plans: unchanged$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration of the schema."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the statement text, as hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def oldest_reader(self) -> int:
        """Oldest version of code that may use the schema after this migration."""
        declared = _READER.search(self.sql)
        return int(declared[1]) if declared else self.version

    @property
    def changes_plans(self) -> bool:
        """Whether code that does not know this version may be unable to read plans of code that does."""
        return _SAME_PLANS.search(self.sql) is None


@dataclass(frozen=True, slots=True)
class _Applied:
    checksum: str
    min_reader: int


@cache
def migrations() -> tuple[Migration, ...]:
    """Returns the migrations that this version ships, in order."""
    found = []
    for file in files("tarsy.store").joinpath("migrations").iterdir():
        if match := _FILE.match(file.name):
            found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.version))


def newest(steps: Sequence[Migration] | None = None) -> int:
    """Returns the version of the last migration, by default of those that this version ships."""
    return max((step.version for step in (migrations() if steps is None else steps)), default=0)


def plan_version() -> int:
    """Returns the newest migration that a worker must know to read the plans of this version."""
    return newest([step for step in migrations() if step.changes_plans])


async def migrate(pool: asyncpg.Pool, steps: Sequence[Migration] | None = None) -> tuple[int, ...]:
    """Applies missing migrations and returns their versions.

    Args:
        pool: from `open_pool`.
        steps: the migrations to bring the database to; those shipped when None.

    Raises:
        SchemaMismatch: the database is too new for this version, or an applied migration has changed.
        OlderWorkers: a missing migration removes what a live worker still uses.
        StoreError: a statement was refused (`StoreUnavailable` when Postgres is unavailable).
    """
    wanted = migrations() if steps is None else tuple(steps)
    sql = load("migrate")

    async def apply(connection: asyncpg.Connection) -> tuple[int, ...]:
        async with connection.transaction():
            await connection.execute("SET LOCAL statement_timeout = 0")
            await connection.execute(*sql["lock"](key=_LOCK), timeout=600)
            # A table that is in use is waited for but seconds, for all others wait behind: better try again later.
            await connection.execute("SET LOCAL lock_timeout = '3s'")
            await _prepare(connection)
            missing = _missing(wanted, await _applied(connection))
            for step in missing:
                await connection.execute(step.sql, timeout=600)
                noted = sql["note"](
                    version=step.version, name=step.name, checksum=step.checksum, min_reader=step.oldest_reader
                )
                await connection.execute(*noted)
            if missing and await _has_column(connection, "worker", "schema_version"):
                await _refuse_older_workers(connection, max(step.oldest_reader for step in missing))
            return tuple(step.version for step in missing)

    return await call(pool, "bring the schema up to date", apply)


async def require_current(pool: asyncpg.Pool) -> None:
    """Checks that this version may use the database as it is, without changing it.

    Raises:
        SchemaMismatch: it may not; the message contains the remedy.
        StoreError: Postgres is unavailable or refused.
    """

    async def look(connection: asyncpg.Connection) -> None:
        there = await connection.fetchval("SELECT to_regclass($1)", f"{SCHEMA}.schema_migrations")
        applied = await _applied(connection) if there else {}
        if missing := _missing(migrations(), applied):
            raise SchemaMismatch(
                f"The database schema is at version {max(applied, default=0)}, this command needs "
                f"{missing[-1].version}. Start the operator of this version once: it migrates the schema."
            )

    await call(pool, "read the schema's version", look)


async def _prepare(connection: asyncpg.Connection) -> None:
    if await connection.fetchval("SELECT to_regnamespace($1) IS NULL", SCHEMA):
        await connection.execute(f"CREATE SCHEMA {SCHEMA}")
    await connection.execute(f"SET LOCAL search_path = {SCHEMA}")
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations (version integer PRIMARY KEY, name text NOT NULL,"
        " checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    if not await _has_column(connection, "schema_migrations", "min_reader"):
        await connection.execute("ALTER TABLE schema_migrations ADD COLUMN min_reader integer NOT NULL DEFAULT 0")


async def _has_column(connection: asyncpg.Connection, table: str, column: str) -> bool:
    statement = load("migrate")["has_column"]
    return bool(await connection.fetchval(*statement(schema=SCHEMA, table=table, column=column)))


async def _applied(connection: asyncpg.Connection) -> dict[int, _Applied]:
    rows = await connection.fetch(*load("migrate")["applied"]())
    return {row["version"]: _Applied(row["checksum"], row["min_reader"]) for row in rows}


async def _refuse_older_workers(connection: asyncpg.Connection, version: int) -> None:
    """Refuses live workers that are too old; none registers until the transaction has ended."""
    await connection.execute("LOCK TABLE worker IN SHARE MODE")
    older = await connection.fetch(*load("migrate")["older_workers"](version=version))
    if older:
        shown = ", ".join(f"{row['host']} (knows {row['schema_version']})" for row in older)
        raise OlderWorkers(
            f"The database schema cannot be migrated to version {version} while workers run that do not know it: "
            f"{shown}. Stop them, or first upgrade to the version in between."
        )


def _missing(wanted: Sequence[Migration], applied: Mapping[int, _Applied]) -> list[Migration]:
    known = newest(wanted)
    needed = max((found.min_reader for version, found in applied.items() if version > known), default=0)
    if needed > known:
        raise SchemaMismatch(
            f"The database schema is at version {max(applied)} and needs code that knows version {needed} or later; "
            f"this version knows up to {known}. Run a newer one, or give this one a database of its own."
        )
    for step in wanted:
        if step.version in applied and applied[step.version].checksum != step.checksum:
            raise SchemaMismatch(
                f"Migration {step.version:04d}_{step.name} was applied to the database in another form than this "
                "operator ships. Restore the shipped file, and put the change in a new migration."
            )
    return [step for step in wanted if step.version not in applied]
