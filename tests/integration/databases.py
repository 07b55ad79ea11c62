"""Databases on a Postgres: a migrated template, and a copy of it for each test, which costs milliseconds."""

from uuid import uuid4

import asyncpg

from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate

TEMPLATE = "tarsy_migrated"
EMPTY = "template0"


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
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    finally:
        await connection.close()
    return address(dsn, name)
