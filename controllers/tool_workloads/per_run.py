"""Runs MCPServers of scope PerRun: each run under way has a workload of its own, removed when the run ends.

Watches: the record, once a second while there is such a server. Decides: which runs are under way and have such
servers in their plan, and as which ServiceAccounts their agents act; a run that waits in the queue has none yet.
Writes: a Job for each server and account, which ends at the run's deadline whatever happens, with its Service and the
Secret with its token, owned by the Job; all three are deleted when the run has ended. What was left by an operator that
died is found by its label. One that acts as an account has its token for the Kubernetes API in that Secret, which is
patched when it is half over; where there is none to be had nothing is made, and the worker finds out why in the same
way (`tarsy.runtime.workloads`).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.tool_workloads import objects
from tarsy.controllers.tool_workloads.acting import ACCOUNT, Acting, Lender, renew_at, renewal
from tarsy.controllers.tool_workloads.pod_rules import PodSettings, lacks_gateway, pod_rules
from tarsy.controllers.tool_workloads.shared import FIELD_MANAGER, new_token
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.tokens import TokenProblem
from tarsy.mcp.errors import OpenFailed
from tarsy.plan.workload import workload_name
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.store.runs.workloads import RunningServers

_log = logging.getLogger(__name__)

ROUND_SECONDS = 1.0
LOOK_SECONDS = 30.0
GRACE_SECONDS = 60
"""A Job ends so long after its run's deadline, if nobody ends it before."""

_AT_ONCE = 8
AGAIN_SECONDS = 10.0
"""After so long a token is asked for again that was refused, or that could not be put where it belongs."""

Running = Callable[[], Awaitable[Sequence[RunningServers]]]
_Place = tuple[str, str]
"""Namespace and name of a Job, its Service and its Secret."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Describes a workload of a run: its server, and the ServiceAccount that it acts as (None: none of a run)."""

    server: MCPServer
    run: UUID
    namespace: str
    seconds_left: float
    account: str | None

    @property
    def place(self) -> _Place:
        """Where it is."""
        meta = self.server.metadata
        return meta.namespace, workload_name(meta.name, self.run, self.account)


class RunWorkloads:
    """Keeps the workloads of runs.

    Args:
        client: the Kubernetes API.
        cache: where MCPServers are known.
        running: the runs under way that have servers for themselves.
        library: the library's namespace.
        settings: of the pods.
        clock: monotonic seconds.
        wall: seconds since 1970.
    """

    def __init__(
        self,
        client: KubeClient,
        cache: Cache,
        running: Running,
        library: str,
        settings: PodSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._cache = cache
        self._running = running
        self._lender = Lender(client, library)
        self._settings = settings
        self._clock = clock
        self._wall = wall
        self._made: dict[_Place, float | None] = {}  # and when its token is to be renewed, on the wall's clock
        self._later: dict[_Place, float] = {}  # when a token is asked for again
        self._left: set[_Place] = set()
        self._looked: dict[str, float] = {}

    async def round(self) -> None:
        """Creates missing workloads and deletes those of ended runs.

        Raises:
            StoreError: Postgres is away or refuses.
        """
        namespaces = {server.metadata.namespace for server in self._per_run()} | {
            place[0] for place in self._made.keys() | self._left
        }
        if not namespaces:
            return
        wanted = {one.place: one for run in await self._running() for one in self._of(run)}
        self._later = {place: until for place, until in self._later.items() if place in wanted}
        await self._find_what_was_left(namespaces)
        await _side_by_side(
            [self._make(wanted[place]) for place in wanted.keys() - self._made.keys() if not self._waits(place)]
            + [self._renew(wanted[place]) for place in wanted.keys() & self._made.keys() if self._is_due(place)]
            + [self._end(*place) for place in (self._made.keys() | self._left) - wanted.keys()]
        )

    def _of(self, run: RunningServers) -> Iterator[_Wanted]:
        for namespace, name, account in run.servers:
            server = self._cache.get(MCPServer, namespace, name)
            if server is None or server.spec.run is None or server.spec.run.scope != "PerRun":
                continue
            if account is None or server.spec.run.kubeconfig:
                yield _Wanted(server, run.run, run.namespace, run.seconds_left, account)

    def _waits(self, place: _Place) -> bool:
        return self._later.get(place, 0.0) > self._clock()

    def _is_due(self, place: _Place) -> bool:
        when = self._made[place]
        return when is not None and when <= self._wall() and not self._waits(place)

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
                _log.warning("Jobs of tool servers in namespace %s could not be listed: %s", namespace, error)
                continue
            self._left |= {(namespace, job["metadata"]["name"]) for job in jobs if _is_ours(job)}

    async def _make(self, wanted: _Wanted) -> None:
        """Creates the missing objects of a workload, as after a crash; without its token nothing is created."""
        server, run, account = wanted.server, wanted.run, wanted.account
        namespace, name = wanted.place
        assert server.spec.run is not None
        job = await self._client.find("Job", namespace, name)
        secret = await self._client.find("Secret", namespace, name)
        acting = None
        if account is not None:
            if not (_is_of(job, server.metadata.uid) and _is_of(secret, job["metadata"]["uid"] if job else "")):
                taken = f"a Job or Secret {namespace}/{name} exists and does not belong to it; delete it"
                return self._put_off(wanted, f"has no ServiceAccount token: {taken}")
            if secret is None and (acting := await self._lent(wanted, account)) is None:
                return None
        if job is None:
            seconds = int(wanted.seconds_left) + GRACE_SECONDS
            by = objects.owned_by(server)
            rules = await pod_rules(self._client, self._settings, server)
            if lacks_gateway(server, rules):
                return self._put_off(wanted, "has no workload: the image of its gateway is unknown")
            made = objects.job(server, server.spec.run, by, run, seconds, rules, account)
            job = await self._client.create(made)
            _log.info("Job %s/%s created for run %s", namespace, name, run)
        by = objects.owner({"apiVersion": "batch/v1", "kind": "Job", "metadata": job["metadata"]})
        await self._client.apply(objects.service(server, by, run, account), manager=FIELD_MANAGER)
        if secret is None:
            secret = await self._client.create(objects.secret(server, by, new_token(), run, acting))
        self._done(wanted, None if account is None else renew_at(secret))

    async def _renew(self, wanted: _Wanted) -> None:
        """Replaces a token that has passed half of its lifetime."""
        namespace, name = wanted.place
        acting = await self._lent(wanted, wanted.account or "")
        if acting is None:
            return
        try:
            secret = await self._client.patch("Secret", namespace, name, renewal(acting))
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            del self._made[namespace, name]  # somebody deleted it; it is made anew
        else:
            self._done(wanted, renew_at(secret))
            _log.info("the token of Job %s/%s was renewed", namespace, name)

    def _done(self, wanted: _Wanted, renew: float | None) -> None:
        self._made[wanted.place] = renew
        self._later.pop(wanted.place, None)

    async def _lent(self, wanted: _Wanted, account: str) -> Acting | None:
        """Returns its credentials; None where they are refused."""
        meta = wanted.server.metadata
        self._later[wanted.place] = self._clock() + AGAIN_SECONDS
        try:
            return await self._lender.lend(
                meta.name, meta.namespace, wanted.run, wanted.namespace, account, self._wall()
            )
        except (TokenProblem, OpenFailed) as problem:
            self._put_off(wanted, f"has no ServiceAccount token: {problem}")
            return None

    def _put_off(self, wanted: _Wanted, why: str) -> None:
        self._later[wanted.place] = self._clock() + AGAIN_SECONDS
        _log.warning("%s of run %s %s", wanted.server, wanted.run, why)

    async def _end(self, namespace: str, name: str) -> None:
        for kind in ("Secret", "Service", "Job"):
            await self._client.delete(kind, namespace, name)
        self._made.pop((namespace, name), None)
        self._left.discard((namespace, name))
        _log.info("Job %s/%s deleted: its run has ended", namespace, name)


def _is_of(found: Mapping[str, Any] | None, owner: str | None) -> bool:
    """Checks whether an object, if it exists, is owned by `owner` (a uid)."""
    return found is None or any(ref.get("uid") == owner for ref in found["metadata"].get("ownerReferences") or ())


def _is_ours(job: Mapping[str, Any]) -> bool:
    """Checks that a Job's name matches its labels and annotation: no other Job is deleted."""
    meta = job["metadata"]
    found = meta.get("labels") or {}
    try:
        run = UUID(found.get(objects.RUN_LABEL, ""))
    except ValueError:
        return False
    account = (meta.get("annotations") or {}).get(ACCOUNT)
    return bool(meta["name"] == workload_name(found.get(objects.SERVER_LABEL, ""), run, account))


async def _side_by_side(work: Sequence[Awaitable[None]]) -> None:
    """Runs several writes at once; failed ones are retried in the next round."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(step: Awaitable[None]) -> None:
        async with places:
            try:
                await step
            except ApiError as error:
                _log.warning("a tool server of a run could not be created or deleted; retrying: %s", error)

    async with asyncio.TaskGroup() as group:
        for step in work:
            group.create_task(one(step))
