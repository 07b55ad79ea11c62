"""The machine and the tenants of the end-to-end tests, a fleet of processes, and how much of it a run shall bear.

Each proof is small unless TARSY_CHAOS is `full`: `make chaos-kill CHAOS=full`.
"""

import os
from collections.abc import AsyncIterator, Iterator

import pytest

from chaos.fleet import Fleet, running_fleet
from e2e.conftest import bare_tenant, machine
from e2e.machine import Machine

__all__ = ["bare_tenant", "machine"]

CHAOS = "TARSY_CHAOS"
"""Set by the targets of the Makefile: `small` or `full`."""


@pytest.fixture(scope="session")
def full() -> bool:
    """Whether this is the proof by hand, which takes its time."""
    return os.environ.get(CHAOS) == "full"


@pytest.fixture(scope="module")
def zygote(machine: Machine) -> Iterator[Fleet]:
    """The fleet of a file's tests."""
    with running_fleet(machine) as fleet:
        yield fleet


@pytest.fixture
async def fleet(zygote: Fleet, machine: Machine) -> AsyncIterator[Fleet]:
    """A fleet of nobody yet, on a machine whose own operator is stopped."""
    await machine.stop_operator()
    yield zygote
    await zygote.disband()
