"""Tests lists of several pages: a real client of the tools, and a Kubernetes API over real HTTP that pages."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from mcp.client import Client

from tarsy.kubernetes_tools.cluster import ClusterError, ClusterReader
from tarsy.kubernetes_tools.paging import MOST_PAGES, PAGE, read_list
from tarsy.kubernetes_tools.tools import tool_server

PATH = "/api/v1/namespaces/shop/pods"


class PagingApi:
    """So many pods, in pages of the size that is asked for. `expires` is the number of the page that is too late."""

    def __init__(self) -> None:
        self.count = 0
        self.counts_the_rest = True
        self.expires: int | None = None
        self.asked: list[dict[str, str]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.query))
        if len(self.asked) == self.expires:
            said = {"kind": "Status", "code": 410, "message": "The provided continue parameter is too old"}
            return web.json_response(said, status=410)
        begin, size = int(request.query.get("continue", "0")), int(request.query["limit"])
        end = min(begin + size, self.count)
        meta: dict[str, Any] = {}
        if end < self.count:
            meta = {"continue": str(end)} | ({"remainingItemCount": self.count - end} if self.counts_the_rest else {})
        pods = [{"kind": "Pod", "metadata": {"name": f"p{n}", "namespace": "shop"}} for n in range(begin, end)]
        return web.json_response({"kind": "PodList", "metadata": meta, "items": pods})


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[PagingApi]:
    fake = PagingApi()
    app = web.Application()
    app.router.add_get(PATH, fake.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}],
        "users": [{"name": "u", "user": {"token": "sesame"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    yield fake
    await runner.cleanup()


@pytest.fixture
def cluster(api: PagingApi, tmp_path: Path) -> ClusterReader:
    return ClusterReader({"KUBECONFIG": str(tmp_path / "config")})


@pytest.mark.parametrize(
    ("count", "pages", "rest"),
    [
        (0, 1, ""),
        (PAGE, 1, ""),
        (PAGE + 1, 2, ""),
        (MOST_PAGES * PAGE, MOST_PAGES, ""),
        (MOST_PAGES * PAGE + 1, MOST_PAGES, "\n[the first 1000 objects; there are 1 more: narrow it]"),
    ],
)
async def test_a_list_is_read_page_by_page_up_to_a_limit(
    api: PagingApi, cluster: ClusterReader, count: int, pages: int, rest: str
) -> None:
    api.count = count
    async with cluster:
        found = await read_list(cluster, PATH, {"labelSelector": "app=shop"}, doing="list pods")
    assert [pod["metadata"]["name"] for pod in found.items] == [f"p{n}" for n in range(min(count, MOST_PAGES * PAGE))]
    assert found.left_out("narrow it") == rest
    assert len(api.asked) == pages
    assert {asked["labelSelector"] for asked in api.asked} == {"app=shop"}
    assert [asked.get("continue") for asked in api.asked] == [None, *(str(PAGE * n) for n in range(1, pages))]


async def test_a_rest_that_nobody_counted_is_told_without_a_number(api: PagingApi, cluster: ClusterReader) -> None:
    api.count, api.counts_the_rest = MOST_PAGES * PAGE + 7, False
    async with cluster:
        found = await read_list(cluster, PATH, {}, doing="list pods")
    assert found.left_out("narrow it") == "\n[the first 1000 objects; there are more: narrow it]"


async def test_a_page_that_expired_fails_the_list_and_shows_no_half_of_it(
    api: PagingApi, cluster: ClusterReader
) -> None:
    api.count, api.expires = 3 * PAGE, 2
    async with cluster:
        with pytest.raises(ClusterError, match="continue parameter is too old"):
            await read_list(cluster, PATH, {}, doing="list pods")


async def test_a_model_goes_on_from_page_to_page_to_the_end(api: PagingApi, cluster: ClusterReader) -> None:
    api.count = 2 * PAGE + 1
    seen: list[str] = []
    page: dict[str, str] = {}
    async with Client(tool_server(cluster)) as client:
        for left in (PAGE + 1, 1, 0):
            result = await client.call_tool("list_resources", {"kind": "Pod", "namespace": "shop", **page})
            text = str(result.content[0].text)  # type: ignore[union-attr]
            seen += [line.split()[0] for line in text.splitlines() if line.startswith("p")]
            assert (f"there are {left} more" in text) == bool(left), text
            if left:
                page = {"page": json.loads(text.rpartition("page=")[2].rstrip("]").replace("'", '"'))}
    assert seen == [f"p{n}" for n in range(api.count)]
