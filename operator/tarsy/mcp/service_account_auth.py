"""Tool servers that act as a ServiceAccount: what a child process and a request get of it.

Decision: a kubeconfig names the token's file instead of holding the token, so a server that shows its configuration
shows none, and a renewed token applies to a server that runs (clients read the file anew, client-go once a minute). A
request of an HTTP server gets its token when it is sent, for the same reason. Every token ever given is told to the
link, which takes it out of all that the server says.
"""

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio
import httpx2

from tarsy.mcp.errors import OpenFailed

_log = logging.getLogger(__name__)

NO_ACCOUNT = (
    "it acts as the ServiceAccount of the agent that uses it, and that agent has none: set spec.serviceAccountName of "
    "the Agent"
)
NO_TOKENS = "it acts as the ServiceAccount of an agent, but this process issues no tokens"
RETRY_SECONDS = 10.0
"""How soon a token is asked for again that could not be renewed."""

SHORTEST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """Where the Kubernetes API is; `ca` in PEM form (None: the system's authorities)."""

    server: str
    ca: bytes | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class AccountToken:
    """A token, and in how many seconds to ask for the next one."""

    text: str = field(repr=False)
    renew_seconds: float


class Tokens(Protocol):
    """Tokens of the ServiceAccounts of one run's namespace; they end with the run."""

    @property
    def namespace(self) -> str:
        """The run's namespace."""
        ...

    async def for_cluster(self, account: str) -> AccountToken:
        """One for the Kubernetes API: for this project's own children, never for what is reached by a URL.

        Raises:
            OpenFailed: There is none; the sentence says why.
        """
        ...

    async def for_server(self, account: str, audience: str) -> AccountToken:
        """One for a server, which the Kubernetes API does not take.

        Raises:
            OpenFailed: There is none; the sentence says why.
        """
        ...


Given = Callable[[str], None]
"""Is told of every token that is given to a server."""

ClusterOf = Callable[[], Awaitable[ClusterAddress]]


class BearerOf(httpx2.Auth):
    """Signs each request with the token of that moment; while there is no new one, with the one before.

    Args:
        tokens: Gives tokens.
        account: Whose.
        audience: For whom.
        given: Is told of each.
    """

    def __init__(self, tokens: Tokens, account: str, audience: str, given: Given) -> None:
        self._tokens = tokens
        self._account = account
        self._audience = audience
        self._given = given
        self._last = ""

    async def ready(self) -> None:
        """Gets the first token.

        Raises:
            OpenFailed: There is none.
        """
        token = await self._tokens.for_server(self._account, self._audience)
        if token.text != self._last:
            self._given(token.text)
            self._last = token.text

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Signs one request (`httpx2.Auth`)."""
        request.headers["Authorization"] = await self.header()
        yield request

    async def header(self) -> str:
        """Returns the Authorization header of this moment."""
        with contextlib.suppress(OpenFailed):  # the server refuses an old one, and the session's successor says why
            await self.ready()
        return f"Bearer {self._last}"


@contextlib.asynccontextmanager
async def kubeconfig(
    folder: Path, cluster: ClusterAddress, tokens: Tokens | None, account: str | None, given: Given
) -> AsyncIterator[Path]:
    """A kubeconfig in a child's private folder, whose token is renewed until the end, and which is removed then.

    Args:
        folder: The child's.
        cluster: Where the API is.
        tokens: Gives tokens; None for a look at a server, which gets a kubeconfig that is nobody's.
        account: Whose tokens.
        given: Is told of each token.

    Raises:
        OpenFailed: There is no token.
    """
    path, secret = folder / "kubeconfig", folder / "token"
    if tokens is None:
        _write(path, configuration(cluster, "default", None))
        yield path
        return
    if account is None:
        raise OpenFailed(NO_ACCOUNT)
    token = await tokens.for_cluster(account)
    given(token.text)
    _write(secret, token.text)
    _write(path, configuration(cluster, tokens.namespace, secret))
    keeping = asyncio.create_task(_keep(secret, token, tokens, account, given), name="token")
    try:
        yield path
    finally:
        keeping.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({keeping})
        for file in (secret, path):
            file.unlink(missing_ok=True)


async def _keep(secret: Path, token: AccountToken, tokens: Tokens, account: str, given: Given) -> None:
    pause = token.renew_seconds
    while True:
        await asyncio.sleep(pause)
        try:
            new = await tokens.for_cluster(account)
            given(new.text)
            _write(secret, new.text)
            pause = max(new.renew_seconds, SHORTEST_SECONDS)
        except (OpenFailed, OSError) as error:
            _log.warning("cannot renew the token of a tool server: %s", error)
            pause = RETRY_SECONDS


def configuration(cluster: ClusterAddress, namespace: str, token_file: Path | None) -> str:
    """A kubeconfig, which holds no token.

    Args:
        cluster: Where the API is.
        namespace: What commands are about that name none.
        token_file: Holds the token, at each moment; None for a kubeconfig that is nobody's.
    """
    place: dict[str, object] = {"server": cluster.server}
    if cluster.insecure:
        place["insecure-skip-tls-verify"] = True
    elif cluster.ca is not None:
        place["certificate-authority-data"] = base64.b64encode(cluster.ca).decode()
    name = "tarsy"
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": place}],
            "users": [{"name": name, "user": {"tokenFile": str(token_file)} if token_file else {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        }
    )


def _write(path: Path, text: str) -> None:
    """Replaces a file in one step, readable by its owner only."""
    new = path.with_name(f".{path.name}")
    new.touch(mode=0o600)
    new.write_text(text, encoding="utf-8")
    new.replace(path)
