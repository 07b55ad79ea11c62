"""The machine and the tenants of the end-to-end tests, a fleet of processes, and how much of it a run shall bear.

Each proof is small unless TARSY_CHAOS is `full`: `make chaos-kill CHAOS=full`.
"""

import os
from collections.abc import AsyncIterator

import pytest

from chaos.fleet import Fleet
from e2e.conftest import bare_tenant, machine
from e2e.machine import Machine

__all__ = ["bare_tenant", "machine"]

CHAOS = "TARSY_CHAOS"
"""Set by the targets of the Makefile: `small` or `full`."""


@pytest.fixture(scope="session")
def full() -> bool:
    """Whether this is the proof by hand, which takes its time."""
    return os.environ.get(CHAOS) == "full"


@pytest.fixture
async def fleet(machine: Machine) -> AsyncIterator[Fleet]:
    """A fleet of nobody yet, on a machine whose own operator is stopped."""
    await machine.stop_operator()
    fleet = Fleet(machine)
    try:
        yield fleet
    finally:
        await fleet.disband()
