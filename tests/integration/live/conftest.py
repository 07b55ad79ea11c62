"""Provides the record and the scripted reviews that followers need."""

from integration.store.conftest import dsn, pool

__all__ = ["dsn", "pool"]
