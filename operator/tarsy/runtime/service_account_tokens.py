"""Requests the ServiceAccount tokens of a run's agents when they are needed, and renews them before they expire.

Decision: this is the one place where a worker's token meets an audience. What the Kubernetes API takes is given to this
project's own children (`for_cluster`) and, by the active controller, to workloads in the run's namespace and in the
library's (`check_workload` finds out whether it does); to nobody else: `for_server` refuses every audience that the API
server names as its own, and a token that came out for another audience than was asked for. A run that is resumed asks
for new tokens, bound to the same Secret; nothing of them is in the record.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from tarsy.engine.ports import Toolbox
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.tokens import Issued, TokenProblem, issue, secret_name
from tarsy.mcp.errors import OpenFailed
from tarsy.mcp.service_account_auth import NO_ACCOUNT, AccountToken, ClusterAddress, ClusterOf
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.plan.library import LIBRARY_NAMESPACE
from tarsy.plan.model import ServerPlan, WorkloadTransport
from tarsy.plan.workload import why_not_lent
from tarsy.runtime.workloads import RunToolboxes

FRESH = 0.75
"""After this part of its life a token is asked for anew (the kubelet does at 0.8)."""


@dataclass(frozen=True, slots=True)
class _Held:
    issued: Issued
    asked: float

    def left(self, now: float, part: float = 1.0) -> float:
        """Seconds of this part of its life that are left."""
        return self.asked + self.issued.seconds * part - now


class RunTokens:
    """The tokens of one run (`tarsy.mcp.service_account_auth.Tokens`).

    Args:
        client: the Kubernetes API.
        run: uid of the Investigation or ChatMessage.
        namespace: the run's, and of the ServiceAccounts.
        library: the library's namespace.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        client: KubeClient,
        run: UUID,
        namespace: str,
        library: str = LIBRARY_NAMESPACE,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._library = library
        self._secret = secret_name(str(run))
        self._namespace = namespace
        self._clock = clock
        self._held: dict[tuple[str, str | None], _Held] = {}
        self._asking = asyncio.Lock()

    @property
    def namespace(self) -> str:
        """The run's namespace."""
        return self._namespace

    async def for_cluster(self, account: str) -> AccountToken:
        """A token for the Kubernetes API, for a child of this process.

        Raises:
            OpenFailed: there is none; the sentence says why.
        """
        async with self._asking:
            return self._token(await self._good(account, None))

    async def for_server(self, account: str, audience: str) -> AccountToken:
        """A token for a server that is reached by a URL; never one that the Kubernetes API takes.

        Raises:
            OpenFailed: there is none; the sentence says why.
        """
        async with self._asking:
            own = (await self._good(account, None)).issued.audiences
            if not own:
                raise OpenFailed("the Kubernetes API does not say which audiences are its own, so servers get no token")
            if audience in own:
                raise OpenFailed(
                    f"its tokenAudience {audience} is one of the Kubernetes API's own, and such a token is never sent "
                    "to a server; set the audience that the server itself checks"
                )
            held = await self._good(account, audience)
            if held.issued.audiences != {audience}:
                del self._held[account, audience]
                raise OpenFailed(f"the Kubernetes API gave no token for the audience {audience} alone")
            return self._token(held)

    async def check_workload(self, workload: WorkloadTransport, account: str | None) -> None:
        """Nothing, where the controller can give a workload of the run a token of the account.

        It asks the Kubernetes API for the same; what it gets here goes nowhere.

        Raises:
            OpenFailed: the controller will make no such workload; the sentence says why.
        """
        if account is None:
            raise OpenFailed(NO_ACCOUNT)
        if why := why_not_lent(workload.server, workload.namespace, self._namespace, self._library):
            raise OpenFailed(why)
        await self.for_cluster(account)

    def _token(self, held: _Held) -> AccountToken:
        return AccountToken(held.issued.text, max(0.0, held.left(self._clock(), FRESH)))

    async def _good(self, account: str, audience: str | None) -> _Held:
        """A token that is fresh, or, while the API is away, one that is still good."""
        held, now = self._held.get((account, audience)), self._clock()
        if held is not None and held.left(now, FRESH) > 0:
            return held
        try:
            held = _Held(await issue(self._client, self._namespace, account, self._secret, audience), now)
        except TokenProblem as problem:
            raise OpenFailed(problem.message) from problem
        except ApiError as error:
            if held is not None and held.left(now) > 0:
                return held
            raise OpenFailed(
                f"the Kubernetes API gave no token of ServiceAccount {self._namespace}/{account}: {error.message}"
            ) from error
        self._held[account, audience] = held
        return held


class ActingToolboxes:
    """Opens toolboxes whose servers act as ServiceAccounts of a run (`tarsy.engine.ports.Toolboxes`, by `of_run`).

    Args:
        toolboxes: opens them.
        client: the Kubernetes API.
        library: the library's namespace.
    """

    def __init__(self, toolboxes: McpToolboxes, client: KubeClient, library: str = LIBRARY_NAMESPACE) -> None:
        self._toolboxes = toolboxes
        self._client = client
        self._library = library

    def open(self, servers: Sequence[ServerPlan]) -> AbstractAsyncContextManager[Toolbox]:
        """Opens servers that belong to no run; those that act as somebody are nobody's then."""
        return self._toolboxes.open(servers)

    def of_run(self, run: UUID, namespace: str) -> RunToolboxes:
        """Returns the opener of the servers of one run's agents.

        Args:
            run: uid of the Investigation or ChatMessage.
            namespace: its namespace.
        """
        tokens = RunTokens(self._client, run, namespace, self._library)
        return RunToolboxes(self._toolboxes.of(tokens), run, check=tokens.check_workload)


def cluster_of(client: KubeClient) -> ClusterOf:
    """Says where the Kubernetes API is, as this process sees it; who it is itself is not told."""

    async def find() -> ClusterAddress:
        known = await client.connection()
        try:
            ca = await asyncio.to_thread(Path(known.ca_file).read_bytes) if known.ca_file else None
        except OSError as error:
            raise OpenFailed(f"the certificates of the Kubernetes API cannot be read: {error.strerror}") from error
        return ClusterAddress(known.server, ca, known.insecure)

    return find
