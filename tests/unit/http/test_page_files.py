"""Tests that exactly the files of the web UI's build are served."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from tarsy.http.application import build_application
from tarsy.http.authentication.frontends import BearerFrontend
from tarsy.http.web_ui import add_page, read_page
from unit.http.api import FakeKube, services


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """What a build leaves, and a file beside it."""
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>TARSy</title>")
    (folder / "assets" / "main-abc.js").write_text("let a = 1;")
    (folder / "assets" / "main-abc.css").write_text("body { margin: 0 }")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


def client(folder: Path) -> TestClient[Any, Any]:
    kube = FakeKube({})
    app: web.Application = build_application((), BearerFrontend(kube), services(kube))  # type: ignore[arg-type]
    add_page(app, read_page(folder))
    return TestClient(TestServer(app))


async def test_the_page_is_never_kept_and_runs_only_its_own_scripts(built: Path) -> None:
    async with client(built) as http, http.get("/") as answer:
        assert answer.status == 200 and "<title>TARSy</title>" in await answer.text()
        policy = answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy


async def test_an_asset_is_kept_for_ever_and_sent_compressed(built: Path) -> None:
    async with client(built) as http:
        async with http.get("/page/assets/main-abc.js", headers={"Accept-Encoding": "gzip"}) as answer:
            assert answer.headers["Content-Encoding"] == "gzip" and "immutable" in answer.headers["Cache-Control"]
            assert (answer.content_type, await answer.text()) == ("text/javascript", "let a = 1;")
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        async with http.get("/page/assets/main-abc.css", headers={"Accept-Encoding": "identity"}) as plain:
            assert "Content-Encoding" not in plain.headers and await plain.text() == "body { margin: 0 }"


async def test_nothing_but_assets_is_served_by_name(built: Path) -> None:
    async with client(built) as http:
        for path in ("index.html", "main-old.js", "..%2Findex.html", "..%2F..%2Fsecret.txt", "%2Fetc%2Fpasswd"):
            async with http.get(f"/page/assets/{path}") as answer:
                assert answer.status == 404, path


async def test_where_the_page_was_not_built_it_says_how(tmp_path: Path) -> None:
    async with client(tmp_path / "none") as http, http.get("/") as answer:
        assert (answer.status, answer.content_type) == (404, "text/plain")
        assert "make page" in await answer.text()


def test_what_is_sent_compressed_is_what_was_built(built: Path) -> None:
    for name, file in read_page(built).items():
        assert gzip.decompress(file.compressed) == file.body, name
