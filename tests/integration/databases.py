"""Databases on a Postgres: a migrated template, and a copy of it, emptied after each test and used again.

Decision: a copy costs forty milliseconds of a core with its end, and nine hundred tests want one; to delete what a test
left costs five. A test that changed the schema or a setting, or wrote much, gets its copy dropped instead.
"""

import base64
import contextlib
import hashlib
import hmac
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg

from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate

MEMORY = Path("/dev/shm")
ROOM = 4 << 30
"""Bytes that must be free there: a server and its log take a few hundred million at most."""
PREFIX = "tarsy-test-"
SETTINGS = {"deadlock_timeout": "100ms", "autovacuum": "off", "max_wal_size": "128MB"}
TEMPLATE = "tarsy_migrated"
EMPTY = "template0"
MUCH = 2 << 20
"""Bytes by which a database may grow, its dead rows included, before it is not used again."""
END_OTHERS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
STATE = """
SELECT string_agg(part, ' ') FROM (
  SELECT count(*) || '/' || max(xmin::text::bigint) FROM pg_class WHERE oid >= 16384 UNION ALL
  SELECT count(*) || '/' || max(xmin::text::bigint) FROM pg_attribute WHERE attrelid >= 16384 UNION ALL
  SELECT count(*) || '/' || max(xmin::text::bigint) FROM pg_proc WHERE oid >= 16384 UNION ALL
  SELECT count(*) || '/' || max(xmin::text::bigint) FROM pg_constraint WHERE oid >= 16384 UNION ALL
  SELECT count(*) || '/' || max(xmin::text::bigint) FROM pg_trigger WHERE oid >= 16384 UNION ALL
  SELECT count(*)::text FROM pg_namespace UNION ALL
  SELECT count(*)::text FROM pg_db_role_setting UNION ALL
  SELECT md5(string_agg(m::text, ' ' ORDER BY version)) FROM tarsy.schema_migrations m
) AS parts (part)
"""
"""What a test may have changed but rows: every change of a schema writes a row of these catalogs."""
DELETE_ALL = """
DO $$
DECLARE name regclass;
BEGIN
  SET LOCAL session_replication_role = replica;  -- no order of tables, no trigger
  FOR name IN SELECT oid FROM pg_class WHERE relnamespace = 'tarsy'::regnamespace AND relkind = 'r'
    AND relname <> 'schema_migrations'
  LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
  PERFORM setval(oid, 1, false) FROM pg_class WHERE relnamespace = 'tarsy'::regnamespace AND relkind = 'S';
END $$
"""


@contextlib.contextmanager
def data_folder() -> Iterator[Path]:
    """A new folder for a server's files, removed at the end: in memory where there is room for it.

    A database is three hundred files, and on a disk it is their creation that takes longest.
    """
    if MEMORY.is_dir():
        remove_abandoned(MEMORY)
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=MEMORY if roomy else None) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "data"


def remove_abandoned(memory: Path) -> None:
    """Removes the folders of test runs that were killed: of servers that are no more, and hour-old ones without one."""
    for folder in memory.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            pid_file = folder / "data" / "postmaster.pid"
            if pid_file.exists():
                abandoned = not Path("/proc", pid_file.read_text().splitlines()[0]).exists()
            else:
                abandoned = time.time() - folder.stat().st_mtime > 3600
            if abandoned:
                shutil.rmtree(folder)


def address(dsn: str, database: str) -> str:
    """The address of another database on the same server."""
    return urlsplit(dsn)._replace(path=f"/{database}").geturl()


async def make_template(dsn: str) -> None:
    """Makes the migrated template, where there is none yet."""
    connection = await asyncpg.connect(dsn)
    try:
        if not await connection.fetchval("SELECT true FROM pg_database WHERE datname = $1", TEMPLATE):
            await connection.execute(f"CREATE DATABASE {TEMPLATE}")
    finally:
        await connection.close()
    pool = await open_pool(address(dsn, TEMPLATE), max_size=1)
    await migrate(pool)
    await pool.close()


async def create_database(dsn: str, template: str = TEMPLATE) -> str:
    """The address of a new database."""
    name = f"test_{uuid4().hex}"
    connection = await asyncpg.connect(dsn)
    try:
        copied = "STRATEGY FILE_COPY" if connection.get_server_version().major >= 15 else ""
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} {copied}")
    finally:
        await connection.close()
    return address(dsn, name)


async def drop_database(dsn: str, database: str) -> None:
    """Drops the database at an address that `create_database` returned, whoever is connected to it."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"DROP DATABASE {urlsplit(database).path[1:]} WITH (FORCE)")
    finally:
        await connection.close()


async def hash_once(dsn: str) -> None:
    """Stores the password of a server of our own hashed once: its 192 random bits need no more, and asyncpg hashes it
    as often as the server says, 4,096 times by default, for each connection."""
    password, salt = urlsplit(dsn).password or "", secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 1)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    parts = [base64.b64encode(part).decode() for part in (salt, stored, hmac.digest(salted, b"Server Key", "sha256"))]
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("ALTER ROLE postgres PASSWORD 'SCRAM-SHA-256$1:{}${}:{}'".format(*parts))
    finally:
        await connection.close()


class Databases:
    """Gives each test a database that nobody else uses and that holds nothing.

    Args:
        dsn: the address of a server with the migrated template.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._states: dict[str, tuple[str, int]] = {}
        self._emptied: list[str] = []

    async def take(self) -> str:
        """Returns the address of a database."""
        if self._emptied:
            return self._emptied.pop()
        url = await create_database(self._dsn)
        connection = await asyncpg.connect(url)
        try:
            self._states[url] = await _state(connection)
        finally:
            await connection.close()
        return url

    async def give_back(self, url: str) -> None:
        """Ends all connections to a database, and empties it for the next test or drops it."""
        if await self._can_empty(url):
            self._emptied.append(url)
        else:
            del self._states[url]
            await drop_database(self._dsn, url)

    async def _can_empty(self, url: str) -> bool:
        state, size = self._states[url]
        try:
            connection = await asyncpg.connect(url)
        except (OSError, asyncpg.PostgresError):
            return False
        try:
            await connection.execute(END_OTHERS)
            now, large = await _state(connection)
            if now != state or large > size + MUCH:
                return False
            await connection.execute(DELETE_ALL)
            return True
        except asyncpg.PostgresError:
            return False
        finally:
            await connection.close()


async def _state(connection: asyncpg.Connection) -> tuple[str, int]:
    row = await connection.fetchrow(f"SELECT ({STATE}), pg_database_size(current_database())")
    return str(row[0]), int(row[1])
