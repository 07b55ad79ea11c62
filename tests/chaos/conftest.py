"""The machine and the tenants of the end-to-end tests, a fleet of processes, and how much of it a run shall bear.

Each proof is small unless TARSY_CHAOS is `full`: `make chaos-kill CHAOS=full`. Where the Kubernetes API takes no part,
a proof is not made again on a real one, unless it is asked for by name: `make chaos-limits API=real`.
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


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker of these tests."""
    config.addinivalue_line("markers", "record_only: the Kubernetes API takes no part in what is shown")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out what would be shown twice."""
    if CHAOS in os.environ:
        return
    for item in items:
        if item.get_closest_marker("record_only") and "[real" in item.name:
            item.add_marker(pytest.mark.skip(reason="shown on the embedded API; the API takes no part in it"))


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
