"""Databases on a Postgres: a migrated template, and a copy of it for each test.

Decision: a database is copied file by file, which costs a fraction of writing it to the log, and dropped after its
test: hundreds of them would fill the disk's cache, and autovacuum would visit every one.
"""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
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
    return dsn.rsplit("/", 1)[0] + f"/{database}"


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
        await connection.execute(f"DROP DATABASE {database.rpartition('/')[2]} WITH (FORCE)")
    finally:
        await connection.close()
