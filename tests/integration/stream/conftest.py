"""Provides the fixtures of the store's tests to those of the stream."""

from integration.store.conftest import dsn, pool

__all__ = ["dsn", "pool"]
