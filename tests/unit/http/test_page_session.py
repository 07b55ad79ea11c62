"""Tests signing in to the web UI, and its cookie."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from tarsy.http.application import build_application
from tarsy.http.authentication.frontends import COOKIE, HOST_COOKIE, BearerFrontend
from tarsy.http.authentication.web_ui_session import COOKIE_CHARACTERS, ROUTES, write_code
from unit.http.api import FakeKube, services

ANN = {"username": "ann", "groups": ["on-call"]}
CODE = "a-code-that-is-long-enough"
TOKEN = {"Authorization": "Bearer t"}
TLS = {"X-Forwarded-Proto": "https"}
KEPT = {"Cookie": f"{COOKIE}=t"}


class Kube(FakeKube):
    """Knows Ann, and three namespaces."""

    async def list(self, kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
        self._answers(kind)
        return [{"metadata": {"name": name}} for name in ("shop", "bank", "attic")]


def client(kube: FakeKube | None = None, file: Path | None = None) -> TestClient[Any, Any]:
    kube = kube or Kube({"t": ANN, "x" * (COOKIE_CHARACTERS + 1): ANN})
    given = replace(services(kube), sign_in_file=file)
    return TestClient(TestServer(build_application(ROUTES, BearerFrontend(kube), given)))  # type: ignore[arg-type]


def own(http: TestClient[Any, Any]) -> dict[str, str]:
    """The Origin of our own page."""
    return {"Origin": str(http.make_url("")).rstrip("/")}


async def test_a_token_becomes_a_cookie_that_scripts_and_other_sites_do_not_get() -> None:
    async with client() as http, http.post("/api/v1/session", headers=TOKEN) as answer:
        said = {"username": "ann", "groups": ["on-call"], "byProxy": False, "hasToken": True}
        assert await answer.json() == said
        cookie = answer.cookies[COOKIE]
        assert cookie.value == "t" and cookie["httponly"] and cookie["samesite"] == "Strict" and cookie["path"] == "/"
        assert not cookie["secure"]


async def test_behind_tls_the_cookie_is_of_this_host_alone_and_never_travels_in_the_clear() -> None:
    async with client() as http:
        async with http.post("/api/v1/session", headers={**TOKEN, **TLS}) as answer:
            cookie = answer.cookies[HOST_COOKIE]
            assert COOKIE not in answer.cookies
            assert HOST_COOKIE.startswith("__Host-")
            assert (cookie["secure"], cookie["httponly"], cookie["path"], cookie["domain"]) == (True, True, "/", "")


@pytest.mark.parametrize(
    ("name", "headers", "status"),
    [(COOKIE, {}, 200), (HOST_COOKIE, {}, 401), (COOKIE, TLS, 401), (HOST_COOKIE, TLS, 200)],
)
async def test_only_the_cookie_of_the_scheme_counts(name: str, headers: dict[str, str], status: int) -> None:
    async with client() as http:
        async with http.get("/api/v1/session", headers={"Cookie": f"{name}=t", **headers}) as answer:
            assert answer.status == status


async def test_planted_cookie_does_not_stand_for_the_one_of_this_host() -> None:
    """Another site of the domain, or somebody on the way before TLS, may set a cookie without the prefix."""
    async with client(Kube({"t": ANN, "m": {"username": "mallory"}})) as http:
        both = {"Cookie": f"{COOKIE}=m; {HOST_COOKIE}=t", **TLS}
        async with http.get("/api/v1/session", headers=both) as answer:
            assert (await answer.json())["username"] == "ann"


async def test_signing_out_forgets_the_cookie_of_the_scheme() -> None:
    async with client() as http:
        async with http.delete("/api/v1/session", headers=TLS) as answer:
            forgotten = answer.cookies[HOST_COOKIE]
            assert (forgotten["max-age"], forgotten["path"], forgotten["secure"]) == ("0", "/", True)
            assert answer.cookies[COOKIE]["max-age"] == "0"
        async with http.delete("/api/v1/session") as answer:
            assert list(answer.cookies) == [COOKIE] and not answer.cookies[COOKIE]["secure"]


async def test_a_token_that_is_no_good_gives_no_cookie() -> None:
    async with client() as http, http.post("/api/v1/session", headers={"Authorization": "Bearer bad"}) as answer:
        assert answer.status == 401 and COOKIE not in answer.cookies


async def test_a_token_that_no_browser_keeps_is_refused() -> None:
    long = {"Authorization": f"Bearer {'x' * (COOKIE_CHARACTERS + 1)}"}
    async with client() as http, http.post("/api/v1/session", headers=long) as answer:
        assert answer.status == 409 and COOKIE not in answer.cookies


async def test_the_cookie_says_who_reads() -> None:
    async with client() as http:
        async with http.get("/api/v1/session", headers=KEPT) as answer:
            assert (answer.status, (await answer.json())["username"]) == (200, "ann")
        async with http.get("/api/v1/session", headers={"Cookie": f"{COOKIE}=bad"}) as answer:
            assert answer.status == 401


async def test_an_authorization_header_counts_alone() -> None:
    async with client() as http:
        for header in ("Bearer bad", "Bearer ", "Basic YTpi", ""):
            async with http.get("/api/v1/session", headers={**KEPT, "Authorization": header}) as answer:
                assert answer.status == 401, header


async def test_the_cookie_changes_nothing_but_for_our_own_page() -> None:
    async with client() as http:
        for origin in ({}, {"Origin": "https://elsewhere.example"}, {"Origin": "null"}, {"Origin": "http://["}):
            async with http.post("/api/v1/session", headers={**KEPT, **origin}) as answer:
                assert answer.status == 403, origin
        async with http.post("/api/v1/session", headers={**KEPT, **own(http)}) as answer:
            assert answer.status == 200


async def test_a_websocket_with_the_cookie_is_for_our_own_page() -> None:
    upgrade = {**KEPT, "Connection": "Upgrade", "Upgrade": "websocket"}
    async with client() as http:
        for origin in ({}, {"Origin": "https://elsewhere.example"}):
            async with http.get("/api/v1/session", headers={**upgrade, **origin}) as answer:
                assert answer.status == 403, origin
        async with http.get("/api/v1/session", headers={**upgrade, **own(http)}) as answer:
            assert answer.status == 200


async def test_signing_out_takes_the_cookie_away_but_not_for_other_sites() -> None:
    async with client() as http:
        async with http.delete("/api/v1/session", headers={"Origin": "https://elsewhere.example"}) as answer:
            assert answer.status == 403 and COOKIE not in answer.cookies
        async with http.delete("/api/v1/session", headers=own(http)) as answer:
            assert answer.status == 200 and answer.cookies[COOKIE]["max-age"] == "0"


async def test_a_code_signs_in_once(tmp_path: Path) -> None:
    file = tmp_path / "code"
    write_code(file, CODE, "t")
    async with client(file=file) as http:
        async with http.post("/api/v1/session/codes", json={"code": "another-code-of-some-start"}) as answer:
            assert answer.status == 404 and COOKIE not in answer.cookies
        async with http.post("/api/v1/session/codes", json={"code": CODE}) as answer:
            assert answer.status == 200 and answer.cookies[COOKIE].value == "t"
        async with http.post("/api/v1/session/codes", json={"code": CODE}) as answer:
            assert answer.status == 404 and COOKIE not in answer.cookies
    assert not file.exists()


async def test_a_code_is_taken_from_our_own_page_on_this_machine_only(tmp_path: Path) -> None:
    file = tmp_path / "code"
    write_code(file, CODE, "t")
    async with client(file=file) as http:
        for headers in ({"Host": "tarsy.example"}, {"Origin": "https://elsewhere.example"}):
            async with http.post("/api/v1/session/codes", json={"code": CODE}, headers=headers) as answer:
                assert answer.status == 403, headers
    assert json.loads(file.read_text())["code"] == CODE


async def test_without_a_file_there_is_no_code() -> None:
    async with client() as http, http.post("/api/v1/session/codes", json={"code": CODE}) as answer:
        assert answer.status == 404


def test_a_code_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    write_code(tmp_path / "code", CODE, "t")
    assert (tmp_path / "code").stat().st_mode & 0o777 == 0o600


async def test_namespaces_are_those_in_which_one_may_list() -> None:
    def allowed(spec: dict[str, Any]) -> bool:
        return bool(spec["resourceAttributes"].get("namespace") in ("shop", "attic"))

    async with client(Kube({"t": ANN}, allowed)) as http:
        async with http.get("/api/v1/namespaces", headers=KEPT) as answer:
            assert await answer.json() == {"everywhere": False, "items": ["attic", "shop"], "more": False}
        async with http.get("/api/v1/namespaces?limit=1", headers=KEPT) as answer:
            assert await answer.json() == {"everywhere": False, "items": ["attic"], "more": True}


async def test_who_may_list_everywhere_sees_all_namespaces_and_is_asked_about_once() -> None:
    kube = Kube({"t": ANN})
    async with client(kube) as http, http.get("/api/v1/namespaces", headers=KEPT) as answer:
        assert await answer.json() == {"everywhere": True, "items": ["attic", "bank", "shop"], "more": False}
    assert kube.asked["SubjectAccessReview"] == 1
