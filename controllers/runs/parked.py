"""Ends runs that wait for people or a provider and may not continue: the run's configuration or rights are gone.

Watches: parked runs in Postgres, every 20 seconds. Decides: whether each MCPServer of the plan is still the object that
the plan was made from, whether the ServiceAccounts that its agents act as exist, and whether the author may still use
the Chain and the servers that the alert brought. Writes: the outcome into the record, with the reason.

Decision: what the cache does not have is asked for once more, for a cache that is not complete yet must end nothing. In
doubt the run waits on. A run whose own object or namespace is deleted is cancelled by that (`investigation.deleted`).
"""

import logging
from collections.abc import Iterable
from uuid import UUID

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.runs.authorization import authorization_refusal
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.tokens import why_none
from tarsy.plan.model import ObjectRef, Plan
from tarsy.record.run import Failure
from tarsy.resources.v1alpha1 import MCPServer
from tarsy.resources.v1alpha1.common import Author
from tarsy.store.runs.lifecycle import ParkedRun, Runs

_log = logging.getLogger(__name__)

PARKED_SECONDS = 20.0
"""Seconds between two looks at parked runs."""


class ParkedRuns:
    """Looks at parked runs.

    Args:
        client: the Kubernetes API, as the operator.
        cache: the objects as they were last seen.
        runs: finds and ends runs.
    """

    def __init__(self, client: KubeClient, cache: Cache, runs: Runs) -> None:
        self._client = client
        self._cache = cache
        self._runs = runs

    async def round(self, only: UUID | None = None) -> None:
        """Ends the runs that may not go on.

        Args:
            only: looks at this run alone; None: at all.

        Raises:
            ApiError: the Kubernetes API is away.
            StoreError: Postgres is away.
        """
        answers: dict[object, Failure | None] = {}
        for run in await self._runs.parked_runs(only):
            failure = await self._refusal(run, answers)
            if failure is not None and await self._runs.end_parked(run.id, failure):
                _log.info("the parked run of %s/%s was ended: %s", run.namespace, run.name, failure.message)

    async def _refusal(self, run: ParkedRun, answers: dict[object, Failure | None]) -> Failure | None:
        """Returns why a run may not go on; runs of a round share the answers."""
        plan = run.plan
        for server in planned_servers(plan):
            if server not in answers:
                answers[server] = await self._server_gone(server)
            if (failure := answers[server]) is not None:
                return failure
        for account in sorted(plan.accounts):
            if (place := (run.namespace, account)) not in answers:
                answers[place] = await self._account_gone(*place)
            if (failure := answers[place]) is not None:
                return failure
        author = Author.model_validate(dict(run.author)) if run.author else None
        used = tuple(Key(ref.kind, ref.namespace, ref.name) for ref in (plan.chain, *plan.brought))
        if (asked := (author, used)) not in answers:
            answers[asked] = await self._forbidden(author, used)
        return answers[asked]

    async def _server_gone(self, server: ObjectRef) -> Failure | None:
        seen = self._cache.get(MCPServer, server.namespace, server.name)
        if seen is not None and seen.metadata.uid == server.uid:
            return None
        found = await self._client.find(MCPServer.KIND, server.namespace, server.name)
        if found is not None and found["metadata"]["uid"] == server.uid:
            return None
        what = "was deleted" if found is None else "was deleted and created again"
        text = f"MCPServer {server.namespace}/{server.name} {what} while the run was waiting."
        return Failure("ServerDeleted", text)

    async def _account_gone(self, namespace: str, account: str) -> Failure | None:
        try:
            problem = await why_none(self._client, namespace, account)
        except ApiError as error:
            if error.transient:
                raise
            return None
        if problem is None or problem.reason != "ServiceAccountMissing":
            return None
        return Failure("AccountDeleted", f"ServiceAccount {namespace}/{account} was deleted while the run waited.")

    async def _forbidden(self, author: Author | None, used: Iterable[Key]) -> Failure | None:
        refused = await authorization_refusal(author, used, self._client, required=False)
        return Failure("RightsLost", f"While the run waited: {refused[1]}") if refused is not None else None


def planned_servers(plan: Plan) -> list[ObjectRef]:
    """The MCPServers that agents of a run use, as they were when the plan was made."""
    agents = [agent for stage in plan.stages for agent in stage.members]
    return list(dict.fromkeys(server.ref for agent in agents for server in agent.servers if server.ref.uid))
