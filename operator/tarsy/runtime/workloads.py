"""Connects runs to tool servers that are workloads of the cluster.

Decision: a worker makes nothing. What each run has of its own is made by the active controller once the run is under
way, so the worker knocks until somebody listens, for a while; a server that is still missing then degrades the run as
one that is away does. For one that is to act as an agent's ServiceAccount the worker first finds out by itself whether
the controller can have a token for it: they ask the same of the same API, so neither has to tell the other, and what
is refused is said at once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit
from uuid import UUID

from tarsy.engine.ports import Toolbox, Toolboxes
from tarsy.mcp.errors import OpenFailed
from tarsy.mcp.service_account_auth import NO_TOKENS
from tarsy.plan.model import HttpTransport, ServerPlan, WorkloadTransport
from tarsy.plan.workload import WorkloadAddress, reached, service_address

_WAIT_SECONDS = 120.0
"""How long a workload of the run may take to listen: for its node, its image and its start."""

_RETRY_SECONDS = 1.0
_CONNECT_SECONDS = 5.0


Check = Callable[[WorkloadTransport, str | None], Awaitable[None]]
"""Raises OpenFailed where a workload will not be made, because it cannot act as the ServiceAccount."""


async def _nobody(workload: WorkloadTransport, account: str | None) -> None:
    raise OpenFailed(NO_TOKENS)


class RunToolboxes:
    """Toolboxes of one run (`tarsy.engine.ports.Toolboxes`).

    Args:
        toolboxes: opens what is reached.
        run: whose they are.
        check: whether workloads can act as ServiceAccounts; without, none can.
        address: where Services are.
        wait_seconds: how long a workload of the run is waited for.
    """

    def __init__(
        self,
        toolboxes: Toolboxes,
        run: UUID,
        *,
        check: Check = _nobody,
        address: WorkloadAddress = service_address,
        wait_seconds: float = _WAIT_SECONDS,
    ) -> None:
        self._toolboxes = toolboxes
        self._run = run
        self._check = check
        self._address = address
        self._wait_seconds = wait_seconds

    @asynccontextmanager
    async def open(self, servers: Sequence[ServerPlan]) -> AsyncIterator[Toolbox]:
        """Opens the servers side by side; waits for those that are made for this run."""
        async with asyncio.TaskGroup() as group:
            plans = [group.create_task(self._reached(server)) for server in servers]
        async with self._toolboxes.open([plan.result() for plan in plans]) as toolbox:
            yield toolbox

    async def _reached(self, server: ServerPlan) -> ServerPlan:
        """A server as it is reached, once somebody listens; one that is missing as it was, with the reason."""
        workload = server.transport
        if not isinstance(workload, WorkloadTransport):
            return server
        if workload.kubeconfig:
            try:
                await self._check(workload, server.account)
            except OpenFailed as failed:
                missing = workload.model_copy(update={"missing": failed.sentence})
                return server.model_copy(update={"transport": missing})
        plan = reached(server, self._run, self._address)
        if workload.per_run and isinstance(plan.transport, HttpTransport):
            await _listening(plan.transport.url, self._wait_seconds)
        return plan


async def _listening(url: str, seconds: float) -> None:
    """Waits until somebody listens, no longer than `seconds`; opening it says what is wrong."""
    place = urlsplit(url)
    try:
        async with asyncio.timeout(seconds):
            while True:
                if await _takes_connections(place.hostname or "", place.port or 80):
                    return
                await asyncio.sleep(_RETRY_SECONDS)
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
