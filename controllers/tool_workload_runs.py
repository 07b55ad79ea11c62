"""MCPServers of scope PerRun: each run under way has a workload of its own, and one that has ended has none.

Watches: the record, once a second while there is such a server. Decides: which runs are under way and have such
servers in their plan; a run that waits in the queue has none yet. Writes: a Job for each, which ends at the run's
deadline whatever happens, with its Service and the Secret with its token, owned by the Job; all three are deleted when
the run has ended. What was left by an operator that died is found by its label.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from tarsy.controllers import tool_workload_objects as objects
from tarsy.controllers.cache import Cache
from tarsy.controllers.tool_workload import FIELD_MANAGER, new_token
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.workload import workload_name
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.store.workloads import RunningServers

log = logging.getLogger(__name__)

ROUND_SECONDS = 1.0
LOOK_SECONDS = 30.0
GRACE_SECONDS = 60
"""A Job ends so long after its run's deadline, if nobody ends it before."""

AT_ONCE = 8

Running = Callable[[], Awaitable[Sequence[RunningServers]]]
_Place = tuple[str, str]
"""Namespace and name of a Job, its Service and its Secret."""


class RunWorkloads:
    """Keeps the workloads of runs.

    Args:
        client: the Kubernetes API.
        cache: where MCPServers are known.
        running: the runs under way that have servers for themselves.
        clock: monotonic seconds.
    """

    def __init__(
        self, client: KubeClient, cache: Cache, running: Running, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._cache = cache
        self._running = running
        self._clock = clock
        self._made: set[_Place] = set()
        self._left: set[_Place] = set()
        self._looked: dict[str, float] = {}

    async def round(self) -> None:
        """Makes what is missing, deletes what is over.

        Raises:
            StoreError: Postgres is away or refuses.
        """
        namespaces = {server.metadata.namespace for server in self._per_run()} | {
            place[0] for place in self._made | self._left
        }
        if not namespaces:
            return
        wanted: dict[_Place, tuple[MCPServer, UUID, float]] = {}
        for run in await self._running():
            for namespace, name in run.servers:
                server = self._cache.get(MCPServer, namespace, name)
                if server is not None and server.spec.run is not None and server.spec.run.scope == "PerRun":
                    wanted[namespace, workload_name(name, run.run)] = server, run.run, run.seconds_left
        await self._find_what_was_left(namespaces)
        await _side_by_side(
            [self._make(*wanted[place]) for place in wanted.keys() - self._made]
            + [self._end(*place) for place in (self._made | self._left) - wanted.keys()]
        )

    def _per_run(self) -> Sequence[MCPServer]:
        found = (self._cache.find(key) for key in self._cache.keys_of(MCPServer.KIND))
        return [
            s for s in found if isinstance(s, MCPServer) and s.spec.run is not None and s.spec.run.scope == "PerRun"
        ]

    async def _find_what_was_left(self, namespaces: set[str]) -> None:
        for namespace in namespaces:
            if self._looked.get(namespace, 0.0) > self._clock():
                continue
            self._looked[namespace] = self._clock() + LOOK_SECONDS
            try:
                jobs = await self._client.list("Job", namespace, labelSelector=objects.RUN_LABEL)
            except ApiError as error:
                log.warning("Jobs of tool servers in namespace %s could not be listed: %s", namespace, error)
                continue
            self._left |= {(namespace, job["metadata"]["name"]) for job in jobs if _is_ours(job)}

    async def _make(self, server: MCPServer, run: UUID, seconds_left: float) -> None:
        """Whatever of it is missing: an operator may have died in the middle."""
        namespace, name = server.metadata.namespace, workload_name(server.metadata.name, run)
        assert server.spec.run is not None
        job = await self._client.find("Job", namespace, name)
        if job is None:
            seconds = int(seconds_left) + GRACE_SECONDS
            wanted = objects.job(server, server.spec.run, objects.owned_by(server), run, seconds)
            job = await self._client.create(wanted)
            log.info("Job %s/%s made for run %s", namespace, name, run)
        by = objects.owner({"apiVersion": "batch/v1", "kind": "Job", "metadata": job["metadata"]})
        await self._client.apply(objects.service(server, by, run), manager=FIELD_MANAGER)
        if await self._client.find("Secret", namespace, name) is None:
            await self._client.create(objects.secret(server, by, new_token(), run))
        self._made.add((namespace, name))

    async def _end(self, namespace: str, name: str) -> None:
        for kind in ("Secret", "Service", "Job"):
            await self._client.delete(kind, namespace, name)
        self._made.discard((namespace, name))
        self._left.discard((namespace, name))
        log.info("Job %s/%s deleted: its run has ended", namespace, name)


def _is_ours(job: Mapping[str, Any]) -> bool:
    """Whether a Job's name is the one that its labels lead to: of another nothing is deleted."""
    meta = job["metadata"]
    found = meta.get("labels") or {}
    try:
        run = UUID(found.get(objects.RUN_LABEL, ""))
    except ValueError:
        return False
    return bool(meta["name"] == workload_name(found.get(objects.SERVER_LABEL, ""), run))


async def _side_by_side(work: Sequence[Awaitable[None]]) -> None:
    """Does all of it; what fails is tried again in the next round."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(step: Awaitable[None]) -> None:
        async with places:
            try:
                await step
            except ApiError as error:
                log.warning("a tool server of a run could not be made or deleted: %s", error)

    async with asyncio.TaskGroup() as group:
        for step in work:
            group.create_task(one(step))
