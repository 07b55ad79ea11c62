"""Tests an authenticating proxy at the direct port over mutual TLS, without a Kubernetes API."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web

from embedded_kubeapi.pki import Authority
from integration.http.doors import ROUTES
from tarsy.http.admission.tls import CertificateError
from tarsy.http.authentication.identity import Permission
from tarsy.http.authentication.web_ui_proxy import PageProxySettings
from tarsy.http.authentication.web_ui_session import ROUTES as SESSION
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.server import HttpServer, HttpSettings
from tarsy.kube.client import ApiError
from unit.http.api import FakeKube, services

ANN = {"X-Remote-User": "ann", "X-Remote-Group": "on-call"}
TIMELINE = "/namespaces/shop/investigations/i1/timeline"
MADE = f"{TIMELINE}?configMap=made"


class Cluster(FakeKube):
    """Lets people of a group read, one token write, and says by which authority it knows its users."""

    def __init__(self) -> None:
        super().__init__(
            {"t": {"username": "ann"}, "b": {"username": "bob"}}, lambda spec: "on-call" in spec.get("groups", ())
        )
        self.client_authority = Authority("users")
        self.made: list[str] = []

    async def find(self, kind: str, namespace: str | None, name: str) -> dict[str, Any] | None:
        if kind == "ConfigMap":
            return {"data": {"client-ca-file": self.client_authority.certificate.decode()}}
        return await super().find(kind, namespace, name)

    async def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        if obj["kind"] == "ConfigMap":
            self.made.append(self.lent[-1])
            return obj
        return await super().create(obj)


async def converse(ask: CheckedRequest) -> web.StreamResponse:
    ask.untimed()
    socket = web.WebSocketResponse()
    await socket.prepare(ask.request)
    await socket.send_str(ask.caller.username)
    await socket.close()
    return socket


SOCKET = Route("GET", "/ws", "converse", "Says who asks", converse, permission=Permission("list", "investigations"))


class Bed:
    """A server with a certificate, and who comes to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cluster = folder, Cluster()
        self.proxies, self.serving = Authority("proxies"), Authority("serving")
        pair = self.serving.issue("api", names=["localhost"])
        (folder / "tls.crt").write_bytes(pair.certificate)
        (folder / "tls.key").write_bytes(pair.key)
        (folder / "proxies.crt").write_bytes(self.proxies.certificate)
        proxy = PageProxySettings(folder / "proxies.crt", ("sign-in-proxy",))
        self.settings = HttpSettings(host="127.0.0.1", port=0, record_port=None, tls=folder, page_proxy=proxy)
        self.port = 0

    def server(self, settings: HttpSettings | None = None) -> HttpServer:
        return HttpServer(settings or self.settings, (*ROUTES, *SESSION, SOCKET), services(cast(Any, self.cluster)))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Bed"]:
        server = self.server()
        running = asyncio.create_task(server.run())
        try:
            async with asyncio.timeout(60):
                await server.serving()
                self.port = server.port
                yield self
        finally:
            running.cancel()
            await asyncio.wait([running])

    def tls(self, authority: Authority | None = None, name: str = "sign-in-proxy") -> ssl.SSLContext:
        """A client that has a certificate of an authority, or none."""
        context = ssl.create_default_context(cadata=self.serving.certificate.decode())
        if authority is not None:
            pair = authority.issue(name)
            certificate, key = self.folder / "client.crt", self.folder / "client.key"
            certificate.write_bytes(pair.certificate)
            key.write_bytes(pair.key)
            context.load_cert_chain(certificate, key)
        return context

    async def ask(
        self, tls: ssl.SSLContext, path: str, method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Status and body of an answer, on a connection of its own."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as http:
            url = f"https://localhost:{self.port}/api/v1{path}"
            async with http.request(method, url, headers={**ANN, **sent}, ssl=tls) as answer:
                return answer.status, await answer.json()

    @property
    def origin(self) -> str:
        return f"https://localhost:{self.port}"


@pytest.fixture
async def bed(tmp_path: Path) -> AsyncIterator[Bed]:
    async with Bed(tmp_path).running() as bed:
        yield bed


async def test_a_person_whom_the_proxy_names_reads_what_their_groups_may(bed: Bed) -> None:
    tls = bed.tls(bed.proxies)
    status, who = await bed.ask(tls, TIMELINE)
    assert (status, who["username"], who["groups"]) == (200, "ann", ["on-call", "system:authenticated"])
    assert (await bed.ask(tls, TIMELINE, X_Remote_Group="visitors"))[0] == 403
    status, session = await bed.ask(tls, "/session")
    assert (status, session["byProxy"], session["hasToken"]) == (200, True, False)


async def test_headers_of_anybody_else_are_not_believed(bed: Bed) -> None:
    for tls in (bed.tls(), bed.tls(bed.proxies, "another-name")):
        assert (await bed.ask(tls, "/session"))[0] == 401
        assert (await bed.ask(tls, TIMELINE, Authorization="Bearer t"))[0] == 403, "ann, but not on call"
    for authority in (bed.cluster.client_authority, Authority("proxies")):
        with pytest.raises((aiohttp.ClientError, OSError)):
            await bed.ask(bed.tls(authority), "/session")


async def test_what_is_written_needs_the_persons_own_token_and_our_own_page(bed: Bed) -> None:
    bed.cluster.allowed = lambda _: True
    tls = bed.tls(bed.proxies)
    status, body = await bed.ask(tls, MADE, "POST", Origin=bed.origin)
    assert status == 403 and "does not forward your Kubernetes token" in body["error"]["message"]
    for origin in ({}, {"Origin": "https://elsewhere.example"}):
        assert (await bed.ask(tls, MADE, "POST", Authorization="Bearer t", **origin))[0] == 403
    assert (await bed.ask(tls, MADE, "POST", Authorization="Bearer b", Origin=bed.origin))[0] == 401
    assert bed.cluster.made == []
    assert (await bed.ask(tls, MADE, "POST", Authorization="Bearer t", Origin=bed.origin))[0] == 201
    assert bed.cluster.made == ["t"]


async def test_a_websocket_is_of_whom_the_proxy_names_where_our_own_page_opens_it(bed: Bed) -> None:
    url, tls = f"https://localhost:{bed.port}/api/v1/ws", bed.tls(bed.proxies)
    async with aiohttp.ClientSession() as http:
        async with http.ws_connect(url, headers=ANN, origin=bed.origin, ssl=tls) as socket:
            assert await socket.receive_str() == "ann"
        for given, origin, status in (
            (tls, None, 403),
            (tls, "https://elsewhere.example", 403),
            (bed.tls(), bed.origin, 401),
        ):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(url, headers=ANN, origin=origin, ssl=given)
            assert refused.value.status == status


@pytest.mark.parametrize("away", [False, True])
async def test_a_door_whose_proxy_could_be_anybody_is_not_opened(tmp_path: Path, away: bool) -> None:
    bed = Bed(tmp_path)
    bed.cluster.client_authority = bed.proxies
    if away:
        bed.cluster.away = True
        bed.cluster.find = _unreachable  # type: ignore[method-assign]
        async with bed.running():  # nobody could say; whoever asks is refused until somebody can
            assert (await bed.ask(bed.tls(bed.proxies), TIMELINE))[0] == 503
        return
    with pytest.raises(ExceptionGroup) as failed:
        async with asyncio.timeout(60):
            await bed.server().run()
    assert failed.group_contains(CertificateError, match="is the client CA of the cluster")


async def test_a_proxy_without_tls_of_our_own_is_refused_in_words(tmp_path: Path) -> None:
    bed = Bed(tmp_path)
    with pytest.raises(ExceptionGroup) as failed:
        async with asyncio.timeout(60):
            await bed.server(replace(bed.settings, tls=None)).run()
    assert failed.group_contains(CertificateError, match="--page-proxy-ca requires --http-tls")


async def _unreachable(*_: Any) -> None:
    raise ApiError(0, "Unreachable", "the Kubernetes API could not be reached")
