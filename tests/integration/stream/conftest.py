"""The stream's tests use the same fixtures as the store's."""

from integration.store.conftest import dsn, pool

__all__ = ["dsn", "pool"]
