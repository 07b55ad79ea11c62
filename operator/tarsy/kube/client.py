"""Sends requests to the Kubernetes API: dicts in, dicts out, one class of error.

The official client loads the configuration (kubeconfig with exec plugins and OIDC, in-cluster tokens that rotate); the
requests are ours: a generated method a kind and a model class an answer cost more than they give here. Every request
has a timeout; a conflict, a missing object or a refusal is told apart by `ApiError.reason`, the API's own word.
"""

import asyncio
import builtins
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson
from kubernetes.aio import config as kube_config
from kubernetes.aio.client import ApiClient, Configuration

from tarsy.kube.configuration import NoConfiguration, load_configuration, without_credentials
from tarsy.kube.kinds import path
from tarsy.kube.response_room import ResponseRoom

REQUEST_SECONDS = 30.0
BUSY_SECONDS = 20.0
"""How long a request is made again while the API server answers 429 with Retry-After: so it does for its first
seconds with a new kind ("storage is (re)initializing", Kubernetes 1.31 and newer), and when it has too much to do."""

MAX_PAUSE_SECONDS = 5.0
"""Upper limit of one such pause, whatever Retry-After says."""

PAGE_SIZE = 500


class ApiError(Exception):
    """Raised when the Kubernetes API refused, failed, or could not be reached.

    `status` is the HTTP status (0: no answer), `reason` the API's word for it (`NotFound`, `Conflict`, `Forbidden`,
    ...; `Unreachable` when there was no answer).
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (0, 408, 429) or self.status >= 500


@dataclass(frozen=True, slots=True)
class Connection:
    """Describes a connection to the API, for libraries that connect by themselves."""

    server: str
    ca_file: str | None
    certificate_file: str | None
    key_file: str | None
    insecure: bool


class KubeClient:
    """Connects to one Kubernetes API as one identity. Use as an async context manager."""

    def __init__(self, configuration: Configuration, loader: Any = None, *, connections: int = 64) -> None:
        """Takes a loaded configuration, what loaded it where tokens come from a plugin, and the maximum connections."""
        self._configuration = configuration
        self._loader = loader
        self._connections = connections
        self._lent: str | None = None
        self._refreshing = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    async def load(cls, kubeconfig: str | Path | None = None, context: str | None = None) -> "KubeClient":
        """Makes a client from `kubeconfig`, else from the pod's ServiceAccount, else from the default kubeconfig.

        Raises:
            ApiError: no configuration could be loaded; the message says where was looked.
        """
        try:
            return cls(*await load_configuration(kubeconfig, context))
        except NoConfiguration as error:
            raise ApiError(0, "NoConfiguration", str(error)) from None

    async def __aenter__(self) -> Self:
        # The generated client knows how to make the TLS context of a configuration; it is asked for that only.
        api = ApiClient(self._configuration)
        try:
            connector = aiohttp.TCPConnector(ssl=api.rest_client.ssl_context, limit=self._connections)
        finally:
            await api.close()  # type: ignore[no-untyped-call]
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),  # no answer's cookie goes along with another caller's token
            json_serialize=lambda value: orjson.dumps(value).decode(),
            headers={"User-Agent": "tarsy"},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session:
            await self._session.close()

    async def connection(self) -> Connection:
        """Returns the address and credentials of this client."""
        cfg = self._configuration
        return Connection(cfg.host, cfg.ssl_ca_cert, cfg.cert_file, cfg.key_file, not cfg.verify_ssl)

    def without_identity(self) -> "KubeClient":
        """Makes an anonymous client of the same API; enter it, and give it the tokens of others by `bearing`.

        A client certificate wins over a bearer token, so a client that has one cannot act as somebody else.
        """
        return KubeClient(without_credentials(self._configuration))

    def apart(self, connections: int) -> "KubeClient":
        """Makes a client of the same identity with so many connections of its own, for streams; enter it."""
        return KubeClient(self._configuration, self._loader, connections=connections)

    def bearing(self, token: str) -> "KubeClient":
        """Shares the connections with the owner of `token`; needs an entered `without_identity` client."""
        lent = KubeClient(self._configuration)
        lent._session, lent._lent = self._session, token
        return lent

    async def token(self) -> str | None:
        """Returns the current bearer token, refreshed where the configuration declares how; None without one."""
        if self._lent is not None:
            return self._lent
        if self._loader is not None and hasattr(self._loader, "exec_plugin_expiry"):
            async with self._refreshing:  # the plugin runs only where its token is about to end
                if await self._loader.load_from_exec_plugin():
                    self._configuration.api_key["BearerToken"] = self._loader.token
        settings: Any = await self._configuration.auth_settings()
        if bearer := settings.get("BearerToken"):
            return str(bearer["value"]).split(" ", 1)[-1]
        return None

    async def get(self, kind: str, namespace: str | None, name: str) -> dict[str, Any]:
        """Reads object `name` of a kind; `namespace` is None for a cluster-scoped kind."""
        return await self.request("GET", path(kind, namespace, name))

    async def find(self, kind: str, namespace: str | None, name: str) -> dict[str, Any] | None:
        """Reads object `name` of a `kind`, or returns None if there is none; `namespace`: None if cluster-scoped."""
        try:
            return await self.get(kind, namespace, name)
        except ApiError as error:
            if error.reason == "NotFound":
                return None
            raise

    async def list(self, kind: str, namespace: str | None = None, **query: str) -> list[dict[str, Any]]:
        """Lists all objects of a kind (in a namespace); query as the API names it (`labelSelector`)."""
        return [item async for page in self.pages(kind, namespace, **query) for item in page]

    async def pages(
        self, kind: str, namespace: str | None = None, **query: str
    ) -> AsyncIterator[builtins.list[dict[str, Any]]]:
        """Lists objects as `list` does, page by page: no more than one page is in memory.

        Args:
            kind: of the objects.
            namespace: of the objects; None: all.
            query: as the API names it (`labelSelector`).
        """
        token = ""
        while True:
            page = {"limit": str(PAGE_SIZE), **query} | ({"continue": token} if token else {})
            answer = await self.request("GET", path(kind, namespace), query=page)
            version, list_kind = answer.get("apiVersion"), str(answer.get("kind", "")).removesuffix("List")
            yield [{"apiVersion": version, "kind": list_kind, **item} for item in answer.get("items") or ()]
            token = answer.get("metadata", {}).get("continue") or ""
            if not token:
                return

    async def create(self, obj: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Creates an object; its namespace is that of its metadata. A `dry_run` admits it and keeps nothing."""
        query = {"dryRun": "All"} if dry_run else None
        return await self.request("POST", path(obj["kind"], obj["metadata"].get("namespace")), query=query, body=obj)

    async def patch(
        self,
        kind: str,
        namespace: str | None,
        name: str,
        body: Mapping[str, Any],
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        manager: str | None = None,
    ) -> dict[str, Any]:
        """Merges `body` into an object or its subresource (JSON merge patch).

        Args:
            kind: of the object.
            namespace: of the object; None for a cluster-scoped kind.
            name: of the object.
            body: the patch.
            subresource: such as `status`; None: the object itself.
            dry_run: admits the change and keeps nothing of it.
            manager: field manager of the change; None: this program.
        """
        target = path(kind, namespace, name, subresource)
        query = {**({"dryRun": "All"} if dry_run else {}), **({"fieldManager": manager} if manager else {})}
        return await self.request("PATCH", target, query=query, body=body, content_type="application/merge-patch+json")

    async def apply(self, obj: Mapping[str, Any], *, manager: str = "tarsy") -> dict[str, Any]:
        """Applies an object server-side, taking ownership of its fields."""
        metadata = obj["metadata"]
        target = path(obj["kind"], metadata.get("namespace"), metadata["name"])
        query = {"fieldManager": manager, "force": "true"}
        return await self.request("PATCH", target, body=obj, query=query, content_type="application/apply-patch+yaml")

    async def replace(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Replaces an object; with a resourceVersion in its metadata, only the version that was read."""
        metadata = obj["metadata"]
        return await self.request("PUT", path(obj["kind"], metadata.get("namespace"), metadata["name"]), body=obj)

    async def delete(
        self,
        kind: str,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Deletes an object; one that does not exist is no error.

        Args:
            kind: of the object.
            namespace: of the object; None for a cluster-scoped kind.
            name: of the object.
            uid: deletes only the object with this uid.
            resource_version: deletes only this state of it; any other is a `Conflict`.
        """
        wanted = {"uid": uid, "resourceVersion": resource_version}
        body: dict[str, Any] = {"propagationPolicy": "Background"}
        if preconditions := {key: value for key, value in wanted.items() if value}:
            body["preconditions"] = preconditions
        try:
            await self.request("DELETE", path(kind, namespace, name), body=body)
        except ApiError as error:
            if error.reason != "NotFound" and (error.reason != "Conflict" or resource_version):
                raise

    async def create_token(self, namespace: str, service_account: str, *, seconds: int = 3600) -> str:
        """Requests a token of a ServiceAccount by its namespace and name, valid for `seconds` (TokenRequest)."""
        answer = await self.request_token(namespace, service_account, {"expirationSeconds": seconds})
        return str(answer["status"]["token"])

    async def request_token(self, namespace: str, service_account: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a TokenRequest with this `spec` for a ServiceAccount by its namespace and name."""
        target = path("ServiceAccount", namespace, service_account, "token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return await self.request("POST", target, body=body)

    async def version(self) -> tuple[int, int]:
        """Reads the API server's version, such as (1, 30)."""
        answer = await self.request("GET", "/version")
        return int(answer["major"]), int("".join(c for c in answer["minor"] if c.isdigit()))

    async def request(
        self,
        method: str,
        target: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        room: ResponseRoom | None = None,
    ) -> dict[str, Any]:
        """Sends a request, again while the server is busy, and returns the object of its response.

        Args:
            method: of HTTP.
            target: the path.
            query: its parameters.
            body: the object to send, as JSON.
            content_type: of the body; decides how a PATCH is applied.
            accept: media type of the response; it must be JSON.
            room: bytes that this and other responses may have together; None: no limit.

        Raises:
            ApiError: the server refused, answered something else, or could not be reached.
            ResponseTooLarge: the response exceeds the room.
        """
        headers = {"Accept": accept}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = orjson.dumps(body)
        until = asyncio.get_running_loop().time() + BUSY_SECONDS
        while True:
            async with self._sent(
                method,
                target,
                query=query,
                data=data,
                headers=dict(headers),
                timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
            ) as answer:
                content = await (answer.read() if room is None else room.read(answer))
            pause = _pause(answer)
            if pause is None or asyncio.get_running_loop().time() + pause > until:
                return _answer(f"{method} {target}", answer.status, answer.reason, content)
            await asyncio.sleep(pause)

    async def read(self, target: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Sends a GET for any path, such as one of an aggregated API, and returns the response."""
        return await self.request("GET", target, query=query)

    @contextlib.asynccontextmanager
    async def streaming(
        self, target: str, query: Mapping[str, str] | None = None, *, accept: str, silence_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Streams a response that goes on: a watch, or server-sent events.

        Args:
            target: the path.
            query: its parameters.
            accept: the media type that is asked for.
            silence_seconds: without one byte for so long the connection is given up.

        Raises:
            ApiError: it was refused, could not be reached, or broke off.
        """
        patience = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_SECONDS, sock_read=silence_seconds)
        async with self._sent("GET", target, query=query, headers={"Accept": accept}, timeout=patience) as answer:
            if answer.status >= 300:
                _answer(f"GET {target}", answer.status, answer.reason, await answer.read())
            yield answer.content.iter_any()

    @contextlib.asynccontextmanager
    async def _sent(
        self,
        method: str,
        target: str,
        *,
        timeout: aiohttp.ClientTimeout,
        headers: dict[str, str],
        query: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends one request as this client's identity; failures are ApiErrors, also while the response is read."""
        if self._session is None:
            raise RuntimeError("KubeClient is an async context manager: enter it before a request")
        cfg = self._configuration
        try:
            if token := await self.token():
                headers["Authorization"] = f"Bearer {token}"
            async with self._session.request(
                method,
                # Joined by hand: some gateways serve the API below a path.
                cfg.host.rstrip("/") + target,
                params=query,
                data=data,
                headers=headers,
                timeout=timeout,
                proxy=cfg.proxy,
                server_hostname=cfg.tls_server_name,
                allow_redirects=False,
            ) as answer:
                yield answer
        except (TimeoutError, aiohttp.ClientError, OSError, kube_config.ConfigException) as error:
            text = str(error) or type(error).__name__
            raise ApiError(0, "Unreachable", f"the Kubernetes API could not be reached: {text}") from error


def _pause(answer: aiohttp.ClientResponse) -> float | None:
    """Reads the seconds until a rejected request is to be repeated; None: it was processed, or none are given."""
    after = answer.headers.get("Retry-After", "")
    busy = answer.status == 429 and after.isascii() and after.isdigit()
    return min(float(after), MAX_PAUSE_SECONDS) if busy else None


def _answer(what: str, code: int, phrase: str | None, content: bytes) -> dict[str, Any]:
    """Parses a response.

    Raises:
        ApiError: it tells of a failure, or it is no answer of a Kubernetes API (a proxy's page).
    """
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        found = None
    if code < 300 and isinstance(found, dict):
        return found
    said = found if isinstance(found, dict) else {}
    reason = str(said.get("reason") or phrase or "Error") if code >= 300 else "NoKubernetesAnswer"
    message = str(said.get("message") or f"{what}: HTTP status {code}, without a response of the Kubernetes API")
    raise ApiError(code if code >= 300 else 0, reason, message)
