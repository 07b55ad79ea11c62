"""Forwards requests for aggregated API groups (APIService), with the caller's identity in front-proxy headers.

There is no cluster network here: a Service of type ExternalName leads to its external name, any other to 127.0.0.1 at
the APIService's port (kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer).
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import aiohttp
from aiohttp import web

from embedded_kubeapi.call import Caller
from embedded_kubeapi.errors import ApiError
from embedded_kubeapi.objects import Key, Obj, now
from embedded_kubeapi.store import Event, Store

API_SERVICES: Key = ("apiregistration.k8s.io", "apiservices")
_SERVICES: Key = ("", "services")
_CONNECT_SECONDS = 5.0
_CHECK_SECONDS = 5.0
_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "host", "content-length",
                  "authorization"))  # fmt: skip


@dataclass(frozen=True)
class FrontProxy:
    """The client certificate of the front proxy, as PEM files."""

    certificate: Path
    key: Path


class Proxy:
    """Forwards requests, and updates the condition Available of APIServices."""

    def __init__(self, store: Store, front: FrontProxy) -> None:
        self._store = store
        self._front = front
        self._session: aiohttp.ClientSession | None = None
        self._checks: set[asyncio.Task[None]] = set()
        self._trusts: dict[tuple[str | None, bool], ssl.SSLContext] = {}
        self._stop = store.listen(API_SERVICES, self._on_event)

    def groups(self) -> dict[str, list[str]]:
        """Returns the groups of aggregated servers with their versions."""
        found: dict[str, list[str]] = {}
        for service in self._remote():
            found.setdefault(service["spec"]["group"], []).append(service["spec"]["version"])
        return found

    def service_for(self, group: str, version: str) -> Obj | None:
        """Returns the APIService of an aggregated server for this group version, or None."""
        found = self._store.get(API_SERVICES, None, f"{version}.{group}")
        return found if found is not None and found["spec"].get("service") else None

    async def forward(self, service: Obj, request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        """Streams the response of the aggregated server of `service` to the caller.

        Raises:
            ApiError: 503, it cannot be reached.
        """
        headers = {key: value for key, value in request.headers.items() if not _dropped(key)}
        sent = [*headers.items(), *_identity(caller)]
        try:
            context = _Answering(await self._open(service, request.method, request.path_qs, sent, await request.read()))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._check(service)
            raise ApiError(503, "ServiceUnavailable", f"error trying to reach service: {error}") from None
        if not _is_available(service):
            self._check(service)
        async with context as answer:
            passed = [(key, value) for key, value in answer.headers.items() if key.lower() not in _HOP]
            out = web.StreamResponse(status=answer.status, headers=dict(passed))
            await out.prepare(request)
            async for chunk in answer.content.iter_any():
                await out.write(chunk)
            await out.write_eof()
            return out

    async def close(self) -> None:
        """Closes connections and cancels running checks."""
        self._stop()
        for task in self._checks:
            task.cancel()
        await asyncio.gather(*self._checks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    def check_all(self) -> None:
        """Checks the availability of all aggregated servers."""
        for service in self._remote():
            self._check(service)

    def _remote(self) -> Iterator[Obj]:
        return (service for service in self._store.objects(API_SERVICES) if service["spec"].get("service"))

    def _on_event(self, event: Event) -> None:
        changed = event.old is None or event.old["spec"] != event.obj["spec"]
        if changed or event.type == "DELETED":
            self._trusts.clear()
        if event.type != "DELETED" and changed and event.obj["spec"].get("service"):
            self._check(event.obj)

    def _check(self, service: Obj) -> None:
        task = asyncio.get_running_loop().create_task(self._check_one(service["metadata"]["name"]))
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)

    async def _check_one(self, name: str) -> None:
        service = self._store.get(API_SERVICES, None, name)
        if service is None:
            return
        path = f"/apis/{service['spec']['group']}/{service['spec']['version']}"
        status, reason, message = "True", "Passed", "all checks passed"
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                answer = await self._open(service, "GET", path, [*_identity(Caller("system:kube-aggregator"))], b"")
                answer.release()
            if answer.status >= 400:
                status, reason, message = "False", "FailedDiscoveryCheck", f"{path} answered {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError, ApiError) as error:
            status, reason, message = "False", "FailedDiscoveryCheck", f"failing or missing response: {error}"
        current = self._store.get(API_SERVICES, None, name)
        if current is not None:
            condition = {"type": "Available", "status": status, "reason": reason, "message": message,
                         "lastTransitionTime": now()}  # fmt: skip
            meta = dict(current["metadata"])
            self._store.put(API_SERVICES, {**current, "metadata": meta, "status": {"conditions": [condition]}})

    async def _open(
        self, service: Obj, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            # Compressed bodies pass as they are: a server compresses a long one only if the caller accepts it. The
            # number of connections has no limit: each watch has one as long as it lasts.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), auto_decompress=False, skip_auto_headers=["Accept-Encoding"]
            )
        spec = service["spec"]
        target = spec["service"]
        name = f"{target['name']}.{target['namespace']}.svc"
        url = f"https://{self._host(target)}:{target.get('port') or 443}{path}"
        return await self._session.request(
            method,
            url,
            headers=headers,
            data=body or None,
            ssl=self._tls(spec),
            server_hostname=name,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=_CONNECT_SECONDS),
        )

    def _host(self, target: Obj) -> str:
        found = self._store.get(_SERVICES, target["namespace"], target["name"])
        if found is None:
            raise ApiError(503, "ServiceUnavailable", f'service "{target["namespace"]}/{target["name"]}" is not there')
        return str(found["spec"].get("externalName") or "127.0.0.1")

    def _tls(self, spec: Obj) -> ssl.SSLContext:
        """Returns the context for the server of an APIService: the same for each request, or none could use the
        connection of the one before, and each would read the certificates of the system."""
        key = spec.get("caBundle"), bool(spec.get("insecureSkipTLSVerify"))
        if key not in self._trusts:
            self._trusts[key] = self._new_context(*key)
        return self._trusts[key]

    def _new_context(self, bundle: str | None, insecure: bool) -> ssl.SSLContext:
        if insecure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        else:
            context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode() if bundle else None)
        context.load_cert_chain(self._front.certificate, self._front.key)
        return context


class _Answering:
    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aenter__(self) -> aiohttp.ClientResponse:
        return self._answer

    async def __aexit__(self, *_: object) -> None:
        self._answer.close()


def _is_available(service: Obj) -> bool:
    conditions = (service.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Available" and condition["status"] == "True" for condition in conditions)


def _dropped(header: str) -> bool:
    name = header.lower()
    return name in _HOP or name.startswith(("x-remote-", "impersonate-"))


def _identity(caller: Caller) -> Iterator[tuple[str, str]]:
    yield "X-Remote-User", caller.name
    for group in caller.groups:
        yield "X-Remote-Group", group
    if caller.uid:
        yield "X-Remote-Uid", caller.uid
    for key, values in caller.extra.items():
        for value in values:
            yield f"X-Remote-Extra-{quote(key, safe='')}", value
