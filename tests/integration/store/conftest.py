"""Every test of the store gets a database of its own on a real Postgres."""

from integration.store.postgres import dsn, pool, server

__all__ = ["dsn", "pool", "server"]
