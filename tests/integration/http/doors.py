"""Serves both ports of one server on a Kubernetes API, with the shipped RBAC and a route that returns the caller."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import yaml

import rights
from apis import LocalApi
from tarsy.http.authentication.access import AccessReviews
from tarsy.http.authentication.identity import Permission
from tarsy.http.failures import as_caller_said
from tarsy.http.live.hub import Hub
from tarsy.http.models import Query, View
from tarsy.http.namespaces import NamespaceReader
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.server import HttpServer, HttpSettings
from tarsy.http.services import Services
from tarsy.kube.client import ApiError, KubeClient
from tarsy.record.judging.shown_confidence import HIGH_FLOOR
from tarsy.store.reading.reads import Reads
from tarsy_dev.objects import manifest, put
from tarsy_dev.record_api import install_record_api

SECONDS = 60.0
SYSTEM = "tarsy-system"
OPERATOR = f"system:serviceaccount:{SYSTEM}:tarsy-operator"
SHIPPED = ("serviceaccount", "clusterrole", "people", "record-access", "evidence-reader")


class Who(View):
    """Whom the door let in."""

    username: str
    uid: str
    groups: tuple[str, ...]
    extra: dict[str, tuple[str, ...]]
    namespace_uid: str


class Made(Query):
    """What to make."""

    config_map: str


async def who(ask: CheckedRequest) -> Who:
    caller = ask.caller
    return Who(
        username=caller.username,
        uid=caller.uid,
        groups=caller.groups,
        extra=dict(caller.extra),
        namespace_uid=ask.namespace_uid,
    )


async def make(ask: CheckedRequest) -> Who:
    meta = {"name": ask.query(Made).config_map, "namespace": ask.namespace}
    try:
        await ask.as_caller().create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    except ApiError as error:
        raise as_caller_said(error) from None
    return await who(ask)


TIMELINE = "/namespaces/{namespace}/investigations/{name}/timeline"
READ = Permission("get", "investigations", "timeline")
ROUTES = (
    Route("GET", TIMELINE, "getWho", "Who asks", who, permission=READ, response=Who, aggregated=True),
    Route("POST", TIMELINE, "make", "Makes one", make, permission=READ, query=Made, response=Who, status=201),
)


@dataclass
class Doors:
    """Both doors, open."""

    api: LocalApi
    admin: KubeClient
    server: HttpServer
    http: aiohttp.ClientSession

    async def direct(
        self, namespace: str, token: str | None = None, *, method: str = "GET", **more: Any
    ) -> tuple[int, dict[str, Any]]:
        """Status and body of the route at the direct door."""
        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **more.pop("headers", {})}
        url = f"http://127.0.0.1:{self.server.port}/api/v1/namespaces/{namespace}/investigations/i1/timeline"
        async with self.http.request(method, url, headers=headers, **more) as answer:
            return answer.status, await answer.json()

    async def record(self, namespace: str, tls: ssl.SSLContext, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Status and body of the route at the port of the aggregated door, past the Kubernetes API."""
        url = f"https://127.0.0.1:{self.server.record_port}{aggregated(namespace)}"
        async with self.http.get(url, headers=headers, ssl=tls, server_hostname="localhost") as answer:
            return answer.status, await answer.json()

    async def account(self, namespace: str, name: str) -> str:
        """A token of a new ServiceAccount."""
        meta = {"name": name, "namespace": namespace}
        await put(self.admin, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        return await self.admin.create_token(namespace, name)

    async def bind(self, namespace: str, role: str, subject: dict[str, str]) -> None:
        """Gives a ClusterRole to somebody in a namespace."""
        bound = rights.binding(f"{role}-{subject['name']}", namespace, "ClusterRole", role, subject)
        await rights.put_rights(self.admin, [bound])


def aggregated(namespace: str) -> str:
    """The path of the route behind the Kubernetes API."""
    return f"/apis/record.tarsy.dev/v1alpha1/namespaces/{namespace}/investigations/i1/timeline"


def client_tls(certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """A client that does not look whom it talks to, with a certificate or without."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context


def certificate_of(kubeconfig: Path, folder: Path) -> tuple[Path, Path]:
    """The client certificate and key in a kubeconfig, as files in `folder`."""
    user = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]
    certificate, key = folder / "person.crt", folder / "person.key"
    certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
    key.write_bytes(base64.b64decode(user["client-key-data"]))
    return certificate, key


def services(pool: asyncpg.Pool, kube: KubeClient, callers: KubeClient, live: Hub | None = None) -> Services:
    """Services that remember nothing, so that what changes is seen at once."""
    return Services(
        pool=pool,
        reads=Reads(pool, HIGH_FLOOR),
        kube=kube,
        callers=callers,
        access=AccessReviews(kube, seconds=0.0),
        namespaces=NamespaceReader(kube, seconds=0.0),
        live=live,
    )


async def install(api: LocalApi, port: int) -> None:
    """The rights of the shipped manifests, and the APIService."""
    async with await KubeClient.load(api.kubeconfig) as admin:
        await put(admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
        await rights.put_rights(admin, [obj for name in SHIPPED for obj in manifest(f"base/{name}.yaml")])
        await install_record_api(admin, port)


async def uninstall(api: LocalApi) -> None:
    """No APIService any more: it would be missed by whoever looks at all of them."""
    async with await KubeClient.load(api.kubeconfig) as admin:
        await admin.delete("APIService", None, "v1alpha1.record.tarsy.dev")


@contextlib.asynccontextmanager
async def open_doors(
    api: LocalApi,
    port: int,
    admin: KubeClient,
    pool: asyncpg.Pool,
    *,
    wait: bool = True,
    routes: Sequence[Route] = ROUTES,
    live: Hub | None = None,
) -> AsyncIterator[Doors]:
    """A server with the rights of the shipped manifests; `wait` until the Kubernetes API passes requests on to it."""
    settings = HttpSettings(host="127.0.0.1", port=0, record_port=port)
    kubeconfig = api.kubeconfig_for(OPERATOR, ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}"])
    async with (
        await KubeClient.load(kubeconfig) as kube,
        kube.without_identity() as callers,
        aiohttp.ClientSession() as http,
    ):
        server = HttpServer(settings, routes, services(pool, kube, callers, live), look_seconds=0.2)
        running = asyncio.create_task(server.run())
        try:
            async with asyncio.timeout(SECONDS):
                await server.serving()
            if wait:
                await _passed_on(admin)
            yield Doors(api, admin, server, http)
        finally:
            running.cancel()
            await asyncio.wait([running])


async def _passed_on(admin: KubeClient) -> None:
    """Waits until the Kubernetes API passes requests on."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await admin.read("/apis/record.tarsy.dev/v1alpha1")
                return
            except ApiError:
                await asyncio.sleep(0.1)
