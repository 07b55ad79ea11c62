"""Tool servers that are workloads of the cluster, as a run reaches them.

Decision: a worker makes nothing. What each run has of its own is made by the active controller once the run is under
way, so the worker knocks until somebody listens, for a while; a server that is still missing then degrades the run as
one that is away does.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit
from uuid import UUID

from tarsy.engine.ports import Toolbox, Toolboxes
from tarsy.plan.model import HttpTransport, ServerPlan, WorkloadTransport
from tarsy.plan.workload import Address, reached, service_address

WAIT_SECONDS = 120.0
"""How long a workload of the run may take to listen: for its node, its image and its start."""

RETRY_SECONDS = 1.0
_CONNECT_SECONDS = 5.0


class RunToolboxes:
    """Toolboxes of one run (`tarsy.engine.ports.Toolboxes`).

    Args:
        toolboxes: opens what is reached.
        run: whose they are.
        address: where Services are.
        wait_seconds: how long a workload of the run is waited for.
    """

    def __init__(
        self,
        toolboxes: Toolboxes,
        run: UUID,
        *,
        address: Address = service_address,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._toolboxes = toolboxes
        self._run = run
        self._address = address
        self._wait_seconds = wait_seconds

    @asynccontextmanager
    async def open(self, servers: Sequence[ServerPlan]) -> AsyncIterator[Toolbox]:
        """Opens the servers side by side; waits for those that are made for this run."""
        plans = [reached(server, self._run, self._address) for server in servers]
        own = [
            plan.transport.url
            for server, plan in zip(servers, plans, strict=True)
            if isinstance(server.transport, WorkloadTransport)
            and server.transport.per_run
            and isinstance(plan.transport, HttpTransport)
        ]
        async with asyncio.TaskGroup() as group:
            for url in own:
                group.create_task(_listening(url, self._wait_seconds))
        async with self._toolboxes.open(plans) as toolbox:
            yield toolbox


async def _listening(url: str, seconds: float) -> None:
    """Waits until somebody listens, no longer than `seconds`; opening it says what is wrong."""
    place = urlsplit(url)
    try:
        async with asyncio.timeout(seconds):
            while True:
                if await _takes_connections(place.hostname or "", place.port or 80):
                    return
                await asyncio.sleep(RETRY_SECONDS)
    except TimeoutError:
        return


async def _takes_connections(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
