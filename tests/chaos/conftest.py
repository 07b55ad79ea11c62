"""The machine and the tenants of the end-to-end tests."""

from e2e.conftest import bare_tenant, machine

__all__ = ["bare_tenant", "machine"]
