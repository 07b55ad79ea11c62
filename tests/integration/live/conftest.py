"""Followers need a record, and nothing of Kubernetes but its answers about people."""

from integration.store.conftest import dsn, pool

__all__ = ["dsn", "pool"]
