"""Prepares the connection to one tool server: a child process or an HTTP endpoint, with diagnostics.

A child process gets exactly the declared environment, plus PATH and an empty HOME, which is its working directory and
is removed afterwards, and a kubeconfig if it is declared (`tarsy.mcp.service_account_auth`). So it sees no variable and
no file of this process. HTTP requests go to the declared URL directly, never through a proxy of the environment.
"""

import os
import re
import shutil
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from mcp.client import Transport
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer

from tarsy.mcp.connection_errors import ended, not_runnable, not_started
from tarsy.mcp.errors import OpenFailed
from tarsy.mcp.http_calls import Endpoint, HttpCalls, http_session
from tarsy.mcp.http_failures import LARGEST_ANSWER
from tarsy.mcp.sdk_http import Wire
from tarsy.mcp.server_process import Command
from tarsy.mcp.service_account_auth import NO_ACCOUNT, NO_TOKENS, BearerOf, ClusterOf, Given, Tokens, kubeconfig
from tarsy.mcp.sse_transport import sse
from tarsy.mcp.stdio_transport import Tail, child
from tarsy.outbound.address_check import Of
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import HttpTransport, ServerPlan, StdioTransport, Value, WorkloadTransport
from tarsy.plan.place import Place

NO_STDIO = (
    "stdio commands do not run in operator or worker pods; give it a workload of its own (spec.run), or "
    "put the server behind streamable HTTP"
)
NOT_REACHED = "it is a workload of the cluster, which is reachable only within a run"
URL_REFUSED = "its URL is not allowed: "
_SHORTEST_SECRET = 4
_SCHEMES = {"basic", "bearer", "token"}
_TELLING = re.compile(r"auth|cookie|credential|key|pass|secret|token", re.IGNORECASE)

HostResolver = Callable[[Value], Awaitable[str]]
ReachableHosts = Callable[[ServerPlan], MCPServer]


@dataclass(frozen=True, slots=True)
class Policy:
    """Permissions and dependencies of connections to tool servers.

    Args:
        resolve: Returns a declared value, read from its Secret or ConfigMap if it names one.
        tls: TLS context that verifies HTTPS servers.
        allow_stdio: Whether child processes are allowed; False in a cluster.
        destinations: Permitted destinations of URLs.
        reach: Replaces the declared transport of every server by a server in this process.
        cluster: Returns the address of the Kubernetes API, for servers with a kubeconfig.
        tokens: Issues tokens of the ServiceAccounts of a run; None outside of runs, for health checks.
        sdk_calls: Whether tools over streamable HTTP are called through the SDK, instead of by a request of our own.
    """

    resolve: HostResolver
    tls: ssl.SSLContext
    allow_stdio: bool = False
    destinations: Destinations = field(default_factory=Destinations)
    reach: ReachableHosts | None = None
    cluster: ClusterOf | None = None
    tokens: Tokens | None = None
    sdk_calls: bool = False


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """A transport that is not entered yet (or a server in this process), with its secrets and diagnostics."""

    transport: Transport | MCPServer
    secrets: Sequence[str]
    last_words: Callable[[], str]
    ending: Callable[[], str] = str
    """Returns how the command exited, or what was wrong with its output; empty if neither is known."""
    calls: HttpCalls | None = None
    """Calls tools without the SDK, in the session that the SDK opened; None if only the SDK can."""

    def redact(self, text: str) -> str:
        """Replaces values of Secrets, and values whose names suggest secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "[redacted]")
        return text


@asynccontextmanager
async def connect_server(
    server: ServerPlan, policy: Policy, on_end: Callable[[], None]
) -> AsyncIterator[ServerConnection]:
    """Prepares the connection to a server.

    Args:
        server: The server, as planned.
        policy: Permissions and dependencies.
        on_end: Called when the server has ended the connection.

    Raises:
        OpenFailed: The server is not permitted, its command does not exist, or a value could not be resolved.
    """
    if policy.reach is not None:
        yield ServerConnection(policy.reach(server), (), str)
        return
    match server.transport:
        case StdioTransport():
            if not policy.allow_stdio:
                raise OpenFailed(NO_STDIO)
            async with _child(server, server.transport, policy, on_end) as made:
                yield made
        case HttpTransport():
            if why := policy.destinations.why_not(server.transport.url, server.ref.namespace):
                raise OpenFailed(f"{URL_REFUSED}{why}")
            async with _endpoint(server, server.transport, policy, on_end) as made:
                yield made
        case WorkloadTransport():
            raise OpenFailed(server.transport.missing or NOT_REACHED)


class _Judge(Of):
    """Adds to a refusal that the URL is not allowed."""

    def why_not(self, host: str, address: str, *, alias: bool = False) -> str | None:
        """Returns why connections to an address of a host are not allowed; None if they are.

        Args:
            host: Host of the URL.
            address: One of its addresses.
            alias: Whether the name is an alias of another.
        """
        why = super().why_not(host, address, alias=alias)
        return f"{URL_REFUSED}{why}" if why else None


@asynccontextmanager
async def _endpoint(
    server: ServerPlan, transport: HttpTransport, policy: Policy, on_end: Callable[[], None]
) -> AsyncIterator[ServerConnection]:
    place = Place.of(transport.url)
    url = place.url
    token = await _token(transport, policy)
    headers, secrets = await _resolved((*transport.headers, *token), policy)
    bearer = await _bearer(server, transport, policy, secrets.append)
    judge = _Judge(policy.destinations, server.ref.namespace)
    tls = await _trusted(transport, policy)
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(http_session(place, judge, tls, min(10.0, server.init_seconds)))
        wire = Wire(http)
        client = await stack.enter_async_context(
            httpx2.AsyncClient(
                headers={"accept-encoding": "identity"} | headers,
                auth=bearer,
                transport=wire,
                timeout=httpx2.Timeout(None),
                trust_env=False,
            )
        )
        if transport.type == "sse":
            yield ServerConnection(sse(url, client, on_end), secrets, str)
            return
        way = streamable_http_client(url, http_client=client, max_sse_event_size=LARGEST_ANSWER)
        if policy.sdk_calls:
            yield ServerConnection(way, secrets, str)
            return
        authorize = bearer.header if bearer else None
        endpoint = Endpoint(place, http, headers, authorize, lambda: wire.session_id)
        async with aclosing(HttpCalls(endpoint)) as calls:
            yield ServerConnection(way, secrets, str, calls=calls)


async def _token(transport: HttpTransport, policy: Policy) -> tuple[Value, ...]:
    if transport.bearer_token is None:
        return ()
    token = await _text(transport.bearer_token, policy)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise OpenFailed("its bearer token contains characters that a header cannot contain; check the Secret")
    return (Value(name="Authorization", value=f"Bearer {token}"),)


async def _bearer(server: ServerPlan, transport: HttpTransport, policy: Policy, given: Given) -> BearerOf | None:
    """Returns the authentication as the agent's ServiceAccount, with its first token; None if none is declared."""
    if transport.token_audience is None:
        return None
    if policy.tokens is None:
        raise OpenFailed(NO_TOKENS)
    if server.account is None:
        raise OpenFailed(NO_ACCOUNT)
    bearer = BearerOf(policy.tokens, server.account, transport.token_audience, given)
    await bearer.ready()
    return bearer


async def _trusted(transport: HttpTransport, policy: Policy) -> ssl.SSLContext:
    """Returns a TLS context with the declared CA only, or that of the policy without one."""
    if transport.ca is None:
        return policy.tls
    pem = await _text(transport.ca, policy)
    try:
        if not pem.strip():
            raise ValueError("no text")  # Python would trust the system's CAs instead
        return ssl.create_default_context(cadata=pem)
    except (ssl.SSLError, ValueError):
        raise OpenFailed("its tls.caFrom contains no usable PEM certificates; check the referenced object") from None


@asynccontextmanager
async def _child(
    server: ServerPlan, transport: StdioTransport, policy: Policy, on_end: Callable[[], None]
) -> AsyncIterator[ServerConnection]:
    declared, secrets = await _resolved(transport.env, policy)
    async with AsyncExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="tarsy-home-", ignore_cleanup_errors=True))
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home} | declared
        if transport.kubeconfig:
            if policy.cluster is None:
                raise OpenFailed(NO_TOKENS)
            way = kubeconfig(Path(home), await policy.cluster(), policy.tokens, server.account, secrets.append)
            environment["KUBECONFIG"] = str(await stack.enter_async_context(way))
        tail = Tail()
        started = _started(transport.command, child(_command(transport, home, environment), tail, on_end))
        yield ServerConnection(started, secrets, tail.last_words, lambda: _ending(tail))


@asynccontextmanager
async def _started(command: str, way: Transport) -> AsyncIterator[TransportStreams]:
    async with AsyncExitStack() as stack:
        try:
            streams = await stack.enter_async_context(way)
        except OSError as error:
            raise OpenFailed(not_started(command, error)) from error
        yield streams


def _ending(tail: Tail) -> str:
    if tail.code is not None:
        return ended(tail.code)
    if tail.noise:
        return "its standard output contains lines that are not JSON-RPC (write logs to standard error)"
    return ""


def _command(transport: StdioTransport, home: str, environment: dict[str, str]) -> Command:
    found = shutil.which(transport.command, path=environment["PATH"])
    if found is None:
        raise OpenFailed(not_runnable(transport.command))
    return Command(str(Path(found).absolute()), transport.args, environment, home, LARGEST_ANSWER)


async def _resolved(values: Sequence[Value], policy: Policy) -> tuple[dict[str, str], list[str]]:
    resolved: dict[str, str] = {}
    secrets: set[str] = set()
    for value in values:
        resolved[value.name] = text = await _text(value, policy)
        if value.secret is not None or _TELLING.search(value.name):
            scheme, _, credential = text.partition(" ")
            secrets |= {text, credential if scheme.lower() in _SCHEMES else text}
    return resolved, sorted((s for s in secrets if len(s) >= _SHORTEST_SECRET), key=len, reverse=True)


async def _text(value: Value, policy: Policy) -> str:
    try:
        return await policy.resolve(value)
    except Exception as error:
        raise OpenFailed(f"the value of {value.name!r} could not be resolved: {error}") from error
