"""The stream's tests use the same Postgres as the store's."""

from integration.store.postgres import dsn, pool, server

__all__ = ["dsn", "pool", "server"]
