"""Tests the aggregated port on the wire, with changing front proxies and without a Kubernetes API."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest

from e2e.waiting import until
from embedded_kubeapi.pki import Authority
from integration.http.doors import ROUTES, aggregated, client_tls
from tarsy.http.admission.tls import CertificateError
from tarsy.http.models import View
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.server import HttpServer, HttpSettings
from unit.http.api import FakeKube, services

HOST = "tarsy-record.tarsy-system.svc"
ANN = {"X-Remote-User": "ann", "X-Remote-Group": "on-call"}


class Cluster(FakeKube):
    """A cluster that says who its front proxy is, and believes what it is told."""

    def __init__(self, authority: Authority) -> None:
        super().__init__({})
        self.names = ["front-proxy-client"]
        self.authority: Authority | None = authority
        self.bundle = ""

    async def find(self, kind: str, namespace: str | None, name: str) -> dict[str, Any] | None:
        if kind == "APIService":
            self._answers(kind)
            return {"kind": kind, "spec": {"caBundle": self.bundle}}
        if kind != "ConfigMap":
            return await super().find(kind, namespace, name)
        self._answers(kind)
        if self.authority is None:
            return None
        data = {
            "requestheader-client-ca-file": self.authority.certificate.decode(),
            "requestheader-allowed-names": json.dumps(self.names),
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        }
        return {"data": data}

    async def replace(self, obj: dict[str, Any]) -> None:
        self._answers(obj["kind"])
        self.bundle = obj["spec"]["caBundle"]


async def endless(ask: CheckedRequest) -> View:
    ask.untimed()
    await asyncio.Event().wait()
    return View()


SLOW = Route("GET", "/namespaces/{namespace}/slow", "getSlow", "Never ends", endless, response=View, aggregated=True)


class Bed:
    """A cluster, a server, and a folder for certificates."""

    def __init__(self, cluster: Cluster, server: HttpServer, http: aiohttp.ClientSession, folder: Path) -> None:
        self.cluster, self.server, self.http, self.folder = cluster, server, http, folder

    def proxy(self, authority: Authority, name: str = "front-proxy-client") -> ssl.SSLContext:
        """A client that has a certificate of this name, and believes what the cluster was told to."""
        pair = authority.issue(name)
        certificate, key = self.folder / "proxy.crt", self.folder / "proxy.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context = ssl.create_default_context(cadata=base64.b64decode(self.cluster.bundle).decode())
        context.load_cert_chain(certificate, key)
        return context

    async def ask(self, tls: ssl.SSLContext, path: str = "", headers: dict[str, str] | None = None) -> int:
        """The status of an answer; 0 where there is no connection."""
        url = f"https://127.0.0.1:{self.server.record_port}{path or aggregated('shop')}"
        connection = aiohttp.TCPConnector(force_close=True)
        try:
            async with aiohttp.ClientSession(connector=connection) as http:
                async with http.get(url, headers=headers or ANN, ssl=tls, server_hostname=HOST) as answer:
                    return answer.status
        except (aiohttp.ClientError, OSError):
            return 0

    async def health(self, tls: ssl.SSLContext) -> int:
        """The status of `/health` at the direct door; 0 where there is no connection."""
        try:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as http:
                async with http.get(f"https://localhost:{self.server.port}/health", ssl=tls) as answer:
                    return answer.status
        except (aiohttp.ClientError, OSError):
            return 0


@pytest.fixture
async def bed(tmp_path: Path) -> AsyncIterator[Bed]:
    cluster = Cluster(Authority("front-proxy"))
    settings = HttpSettings(host="127.0.0.1", port=0, record_port=0)
    server = HttpServer(settings, (*ROUTES, SLOW), services(cluster), look_seconds=0.05)
    running = asyncio.create_task(server.run())
    try:
        async with asyncio.timeout(60), aiohttp.ClientSession() as http:
            await server.serving()
            yield Bed(cluster, server, http, tmp_path)
    finally:
        running.cancel()
        await asyncio.wait([running])


def _authority(bed: Bed) -> Authority:
    assert bed.cluster.authority is not None
    return bed.cluster.authority


async def test_the_front_proxy_believes_the_certificate_it_was_told_of_and_names_the_caller(bed: Bed) -> None:
    assert await bed.ask(bed.proxy(_authority(bed))) == 200


async def test_a_certificate_of_another_name_or_authority_gets_nothing(bed: Bed) -> None:
    right, wrong = _authority(bed), Authority("front-proxy")
    assert await bed.ask(bed.proxy(right, "kube-apiserver")) == 401
    assert await bed.ask(bed.proxy(right, "kube-apiserver"), "/apis/record.tarsy.dev/v1alpha1") == 401
    assert await bed.ask(bed.proxy(wrong)) == 0
    assert await bed.ask(client_tls()) == 0


async def test_a_new_front_proxy_is_taken_and_the_old_one_put_out_with_its_connections(bed: Bed) -> None:
    old, new = _authority(bed), Authority("front-proxy")
    tls = bed.proxy(old)
    url = f"https://127.0.0.1:{bed.server.record_port}/apis/record.tarsy.dev/v1alpha1/namespaces/shop/slow"
    stream = asyncio.create_task(_status(bed.http, url, tls))
    await until("the old one is let in", lambda: bed.ask(tls))
    bed.cluster.authority = new

    async def is_out() -> bool:
        return await bed.ask(tls) == 0 and await bed.ask(bed.proxy(new)) == 200

    await until("the new one is let in, the old one not", is_out)
    async with asyncio.timeout(60):
        assert await stream != 200


async def test_a_cluster_that_has_no_front_proxy_any_more_closes_the_door_and_the_process_is_not_ready(
    bed: Bed,
) -> None:
    tls, authority = bed.proxy(_authority(bed)), _authority(bed)
    bed.cluster.authority = None

    async def closed() -> bool:
        return await bed.ask(tls) == 0 and not bed.server.aggregated_open.is_set()

    await until("the door is closed", closed)
    async with bed.http.get(f"http://127.0.0.1:{bed.server.port}/ready") as answer:
        assert answer.status == 503
    async with bed.http.get(f"http://127.0.0.1:{bed.server.port}/health") as answer:
        assert answer.status == 200
    bed.cluster.authority = authority
    await until("the door is open again", lambda: bed.ask(bed.proxy(authority)))


async def test_while_the_kubernetes_api_is_away_the_door_stays_open_and_refuses(bed: Bed) -> None:
    tls = bed.proxy(_authority(bed))
    bed.cluster.away = True

    async def refused() -> bool:
        return await bed.ask(tls) == 503

    asked = bed.cluster.asked["ConfigMap"]
    await until("callers are not let in", refused)

    async def looked_again() -> bool:
        return bed.cluster.asked["ConfigMap"] > asked + 2

    await until("the certificates were looked at in vain", looked_again)
    assert await bed.ask(tls) == 503
    bed.cluster.away = False

    async def answered() -> bool:
        return await bed.ask(tls) == 200

    await until("callers are let in again", answered)


async def test_an_authority_that_was_lost_is_told_again_and_the_door_stays_as_it_is(bed: Bed) -> None:
    told, tls = bed.cluster.bundle, bed.proxy(_authority(bed))
    bed.cluster.bundle = ""

    async def same() -> bool:
        return bed.cluster.bundle == told

    await until("it is told again", same)
    assert await bed.ask(tls) == 200


async def test_the_direct_door_speaks_tls_with_a_given_certificate_and_shows_a_new_one(tmp_path: Path) -> None:
    def give(authority: Authority) -> ssl.SSLContext:
        pair = authority.issue("api", names=["localhost"])
        (tmp_path / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / "tls.key").write_bytes(pair.key)
        return ssl.create_default_context(cadata=authority.certificate.decode())

    old, new = Authority("old"), Authority("new")
    believes_old = give(old)
    settings = HttpSettings(host="127.0.0.1", port=0, record_port=None, tls=tmp_path)
    server = HttpServer(settings, ROUTES, services(FakeKube({})), look_seconds=0.05)
    running = asyncio.create_task(server.run())
    try:
        async with asyncio.timeout(60):
            await server.serving()
        bed = Bed(Cluster(old), server, cast(Any, None), tmp_path)
        assert await bed.health(believes_old) == 200
        (tmp_path / "tls.key").write_text("half a file")
        believes_new = give(new)

        async def is_new() -> bool:
            return await bed.health(believes_new) == 200 and await bed.health(believes_old) == 0

        await until("the new certificate is shown", is_new)
        (tmp_path / "tls.key").unlink()
        await asyncio.sleep(0.2)
        assert await bed.health(believes_new) == 200
    finally:
        running.cancel()
        await asyncio.wait([running])


async def test_a_direct_door_whose_certificate_cannot_be_read_is_not_opened(tmp_path: Path) -> None:
    settings = HttpSettings(host="127.0.0.1", port=0, record_port=None, tls=tmp_path)
    server = HttpServer(settings, ROUTES, services(FakeKube({})))
    with pytest.raises(ExceptionGroup) as failed:
        async with asyncio.timeout(60):
            await server.run()
    assert failed.group_contains(CertificateError, match=r"cannot read tls\.crt and tls\.key")


async def _status(http: aiohttp.ClientSession, url: str, tls: ssl.SSLContext) -> int:
    try:
        async with http.get(url, headers=ANN, ssl=tls, server_hostname=HOST) as answer:
            return answer.status
    except (aiohttp.ClientError, OSError):
        return 0
