"""Tests users that an authenticating proxy names, and their permissions."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from embedded_kubeapi.pki import Authority
from tarsy.http.admission.tls import CertificateError
from tarsy.http.authentication import frontends
from tarsy.http.authentication.frontends import COOKIE, BearerFrontend
from tarsy.http.authentication.identity import Caller
from tarsy.http.authentication.web_ui_proxy import (
    PageProxy,
    PageProxySettings,
    read_page_proxy,
    require_separate_authority,
)
from tarsy.http.authentication.web_ui_session import sign_in
from tarsy.http.errors import Conflict, Forbidden, Unauthorized
from tarsy.http.route import CheckedRequest
from unit.http.api import FakeKube, services

ANN = ("X-Remote-User", "ann")
TOKEN = ("Authorization", "Bearer t")
OWN = (("Host", "tarsy.example.org"), ("Origin", "https://tarsy.example.org"))
CERTIFICATE = {"subject": ((("commonName", "sign-in-proxy"),),)}


def asking(*headers: tuple[str, str], method: str = "GET", peer: Any = CERTIFICATE) -> web.Request:
    transport = SimpleNamespace(get_extra_info=lambda name, default=None: peer if name == "peercert" else default)
    return make_mocked_request(method, "/", headers=CIMultiDict(headers), transport=transport)


def door(kube: FakeKube | None = None, *names: str, **origins: Any) -> BearerFrontend:
    proxy = PageProxy(PageProxySettings(Path("ca.crt"), names), "")
    return BearerFrontend(cast(Any, kube or FakeKube({})), proxy=proxy, **origins)


async def test_a_person_is_who_the_proxy_names_with_their_groups_and_no_token() -> None:
    groups = (("X-Remote-Group", "on-call, dev"), ("X-Remote-Group", "ops"))
    caller = await door().caller(asking(ANN, *groups))
    assert caller.username == "ann" and caller.by_proxy and caller.token is None
    assert caller.groups == ("on-call", "dev", "ops", "system:authenticated")


@pytest.mark.parametrize("peer", [None, {}, {"subject": ((("commonName", "somebody"),),)}])
async def test_headers_without_the_proxys_certificate_are_as_if_they_were_not_there(peer: Any) -> None:
    kube = FakeKube({"t": {"username": "bob"}})
    with pytest.raises(Unauthorized):
        await door(kube, "sign-in-proxy").caller(asking(ANN, peer=peer))
    caller = await door(kube, "sign-in-proxy").caller(asking(ANN, TOKEN, peer=peer))
    assert (caller.username, caller.by_proxy) == ("bob", False)


async def test_where_no_proxy_was_named_a_certificate_says_nothing() -> None:
    with pytest.raises(Unauthorized):
        await BearerFrontend(cast(Any, FakeKube({}))).caller(asking(ANN))


async def test_whom_the_proxy_does_not_name_is_known_by_token_as_ever() -> None:
    kube = FakeKube({"t": {"username": "bob"}})
    caller = await door(kube).caller(asking(TOKEN, ("X-Remote-User", "")))
    assert (caller.username, caller.by_proxy, caller.token) == ("bob", False, "t")


async def test_names_of_the_system_are_not_a_proxys_to_give() -> None:
    with pytest.raises(Unauthorized, match="system:"):
        await door().caller(asking(("X-Remote-User", "system:admin")))
    caller = await door().caller(asking(ANN, ("X-Remote-Group", "dev,system:masters")))
    assert caller.groups == ("dev", "system:authenticated")


async def test_a_proxy_that_lets_its_header_be_sent_beside_its_own_names_nobody() -> None:
    with pytest.raises(Unauthorized, match="more than once"):
        await door().caller(asking(("X-Remote-User", "admin"), ANN))


@pytest.mark.parametrize("name", ["a\nb", "a\x00", "a\u202eb"])
async def test_a_name_that_nobody_can_read_is_no_name(name: str) -> None:
    with pytest.raises(Unauthorized):
        await door().caller(asking(("X-Remote-User", name)))


async def test_a_token_that_the_proxy_forwards_is_who_writes_and_says_the_groups() -> None:
    kube = FakeKube({"t": {"username": "ann", "uid": "7", "groups": ["from-the-cluster"]}})
    caller = await door(kube).caller(asking(ANN, TOKEN, ("X-Remote-Group", "from-the-proxy")))
    assert caller == Caller("ann", "7", ("from-the-cluster",), {}, "t", by_proxy=True)


async def test_a_token_of_another_than_the_proxy_names_is_refused() -> None:
    with pytest.raises(Unauthorized, match="another user"):
        await door(FakeKube({"t": {"username": "bob"}})).caller(asking(ANN, TOKEN))


@pytest.mark.parametrize("header", [TOKEN, ("Authorization", "Basic YW5uOg==")])
async def test_a_token_that_the_cluster_does_not_know_leaves_the_proxys_word(header: tuple[str, str]) -> None:
    caller = await door().caller(asking(ANN, header))
    assert (caller.username, caller.token) == ("ann", None)


async def test_a_cookie_of_an_earlier_sign_in_does_not_count_beside_the_proxys_word() -> None:
    caller = await door(FakeKube({"t": {"username": "bob"}})).caller(asking(ANN, ("Cookie", f"{COOKIE}=t")))
    assert (caller.username, caller.token) == ("ann", None)


@pytest.mark.parametrize(
    ("method", "more"),
    [("POST", ()), ("DELETE", ()), ("GET", (("Upgrade", "websocket"),)), ("HEAD", (("Upgrade", "websocket"),))],
)
@pytest.mark.parametrize("with_token", [False, True])
async def test_more_than_reading_is_for_our_own_page(
    method: str, more: tuple[tuple[str, str], ...], with_token: bool
) -> None:
    kube = FakeKube({"t": {"username": "ann"}})
    said = (ANN, *more, *((TOKEN,) if with_token else ()))
    for other in ((), (("Host", "tarsy.example.org"), ("Origin", "https://elsewhere.example"))):
        with pytest.raises(Forbidden):
            await door(kube).caller(asking(*said, *other, method=method))
    assert (await door(kube).caller(asking(*said, *OWN, method=method))).username == "ann"


async def test_a_page_of_an_address_that_was_allowed_may_ask_though_the_proxy_sends_another_host() -> None:
    inside = (("Host", "tarsy-api.tarsy-system.svc"), ("Origin", "https://tarsy.example.org"))
    with pytest.raises(Forbidden):
        await door().caller(asking(ANN, *inside, method="POST"))
    allowed = door(origins=["https://tarsy.example.org"])
    assert (await allowed.caller(asking(ANN, *inside, method="POST"))).username == "ann"


async def test_a_page_of_another_site_does_not_read_either() -> None:
    with pytest.raises(Forbidden):
        await door().caller(asking(ANN, ("Host", "tarsy.example.org"), ("Origin", "https://elsewhere.example")))


async def test_a_connection_that_stays_open_has_to_come_past_the_proxy_again(monkeypatch: pytest.MonkeyPatch) -> None:
    entrance, request, now = door(), asking(ANN), [1000.0]
    monkeypatch.setattr(frontends.time, "monotonic", lambda: now[0])
    for seconds in (0.0, frontends.PROXY_SECONDS):
        now[0] = 1000.0 + seconds
        assert (await entrance.caller(request)).username == "ann"
    now[0] += 1.0
    with pytest.raises(Unauthorized, match="has expired; reconnect"):
        await entrance.caller(request)
    assert (await entrance.caller(asking(ANN))).username == "ann"


def ask(caller: Caller) -> CheckedRequest:
    return CheckedRequest(asking(), {}, caller, "", services(FakeKube({})))


def test_who_has_no_token_reads_only_and_is_told_what_to_do() -> None:
    with pytest.raises(Forbidden, match=r"does not forward your Kubernetes token.* kubectl"):
        ask(Caller("ann", by_proxy=True)).as_caller()
    with pytest.raises(Forbidden, match="write to the Kubernetes API instead"):
        ask(Caller("ann")).as_caller()


async def test_a_proxys_people_get_no_cookie() -> None:
    with pytest.raises(Conflict, match="proxy"):
        await sign_in(ask(Caller("ann", token="t", by_proxy=True)))


@pytest.mark.parametrize("content", [None, "", "half a file", "-----BEGIN CERTIFICATE-----\nx", b"\xff\xfe"])
def test_an_authority_that_cannot_be_read_is_refused_by_option_and_file(
    tmp_path: Path, content: str | bytes | None
) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CertificateError, match=r"--page-proxy-ca: .*ca\.crt contains no readable certificate"):
        read_page_proxy(PageProxySettings(file))


class Cluster(FakeKube):
    """Says by which authority it knows its users."""

    def __init__(self, client_authority: str | None) -> None:
        super().__init__({})
        self.client_authority = client_authority

    async def find(self, kind: str, namespace: str | None, name: str) -> dict[str, Any] | None:
        if self.client_authority is None:
            return None
        return {"data": {"client-ca-file": self.client_authority, "requestheader-allowed-names": json.dumps([])}}


async def test_the_authority_of_the_clusters_own_users_is_not_taken(tmp_path: Path) -> None:
    own, users = Authority("proxy").certificate.decode(), Authority("users").certificate.decode()
    file = tmp_path / "ca.crt"
    file.write_text(own)
    proxy = read_page_proxy(PageProxySettings(file))
    for known in (users, "", "no certificate", None):
        await require_separate_authority(proxy, cast(Any, Cluster(known)))
    with pytest.raises(CertificateError, match="the client CA of the cluster"):
        await require_separate_authority(proxy, cast(Any, Cluster(users + own)))
