"""Authenticates tool servers as a ServiceAccount: by kubeconfig for child processes, by bearer token for HTTP.

Decision: a kubeconfig refers to a token file instead of containing the token, so a server that prints its configuration
reveals no token, and a running server uses renewed tokens (clients read the file again, client-go once a minute). HTTP
requests get the current token when they are sent. Every issued token is reported to the connection, which redacts it
from everything that the server sends.
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
"""Seconds before a failed renewal is retried."""

SHORTEST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """Address of the Kubernetes API; `ca` is PEM (None: the system's CAs)."""

    server: str
    ca: bytes | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class AccountToken:
    """A token, and the seconds until its renewal."""

    text: str = field(repr=False)
    renew_seconds: float


class Tokens(Protocol):
    """Issues tokens of the ServiceAccounts in the namespace of a run; they expire with the run."""

    @property
    def namespace(self) -> str:
        """Namespace of the run."""
        ...

    async def for_cluster(self, account: str) -> AccountToken:
        """Issues a token for the Kubernetes API: for child processes, never for servers behind a URL.

        Raises:
            OpenFailed: There is none; the sentence says why.
        """
        ...

    async def for_server(self, account: str, audience: str) -> AccountToken:
        """Issues a token for a server, which the Kubernetes API does not accept.

        Args:
            account: Name of the ServiceAccount.
            audience: Audience of the token.

        Raises:
            OpenFailed: There is none; the sentence says why.
        """
        ...


Given = Callable[[str], None]
"""Called with every token that a server receives."""

ClusterOf = Callable[[], Awaitable[ClusterAddress]]


class BearerOf(httpx2.Auth):
    """Adds the current token to each request; the previous one if renewal fails.

    Args:
        tokens: Issues tokens.
        account: Name of the ServiceAccount.
        audience: Audience of the tokens.
        given: Called with each token.
    """

    def __init__(self, tokens: Tokens, account: str, audience: str, given: Given) -> None:
        self._tokens = tokens
        self._account = account
        self._audience = audience
        self._given = given
        self._last = ""

    async def ready(self) -> None:
        """Requests the current token.

        Raises:
            OpenFailed: No token could be issued.
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
        """Returns the current Authorization header."""
        with contextlib.suppress(OpenFailed):  # the server refuses an expired token, and the next session reports why
            await self.ready()
        return f"Bearer {self._last}"


@contextlib.asynccontextmanager
async def kubeconfig(
    folder: Path, cluster: ClusterAddress, tokens: Tokens | None, account: str | None, given: Given
) -> AsyncIterator[Path]:
    """Writes a kubeconfig into the private folder of a child, renews its token, and removes both at the end.

    Args:
        folder: Folder of the child.
        cluster: Address of the API.
        tokens: Issues tokens; None for a health check, whose kubeconfig has no credential.
        account: Name of the ServiceAccount.
        given: Called with each token.

    Raises:
        OpenFailed: No token could be issued.
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
    """Builds a kubeconfig, without the token itself.

    Args:
        cluster: Address of the API.
        namespace: Default namespace.
        token_file: File with the current token; None: no credential.
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
    """Replaces a file atomically, readable by its owner only."""
    new = path.with_name(f".{path.name}")
    new.touch(mode=0o600)
    new.write_text(text, encoding="utf-8")
    new.replace(path)
