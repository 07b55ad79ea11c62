"""Provides a database of its own to every test of the store."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tarsy.store.database import open_pool


@pytest.fixture
def dsn(database_url: str) -> str:
    """The address of the database."""
    return database_url


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    """A pool with room for tests that race."""
    opened = await open_pool(dsn, min_size=1, max_size=12)
    yield opened
    await opened.close()
