"""Tests what clients rely on: watches that resume, pagination, conflicts, tokens, outages, kept state."""

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from embedded_kubeapi.journal import JournalInUse
from embedded_kubeapi.server import EmbeddedApi
from integration.kubeapi.conftest import WIDGETS, client_tls, widget

MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


async def events(http: aiohttp.ClientSession, url: str, count: int, **query: str) -> list[dict[str, Any]]:
    """The first events of a watch."""
    found = []
    async with asyncio.timeout(60), http.get(url, params={"watch": "true", **query}) as stream:
        assert stream.status == 200, await stream.text()
        async for line in stream.content:
            found.append(json.loads(line))
            if len(found) == count:
                break
    return found


async def create(http: aiohttp.ClientSession, url: str, obj: dict[str, Any]) -> dict[str, Any]:
    async with http.post(url, json=obj) as answer:
        body: dict[str, Any] = await answer.json()
        assert answer.status == 201, body
        return body


@pytest.mark.usefixtures("widgets")
async def test_watch_goes_on_where_it_ended(http: aiohttp.ClientSession, namespace: str) -> None:
    url = WIDGETS.format(namespace=namespace)
    first = await create(http, url, widget("a", labels={"x": "1"}))
    await create(http, url, widget("b"))
    async with http.patch(f"{url}/a", json={"metadata": {"labels": None}}, headers=MERGE) as answer:
        assert answer.status == 200
    async with http.delete(f"{url}/b") as answer:
        assert (await answer.json())["status"] == "Success"
    since = first["metadata"]["resourceVersion"]
    seen = await events(http, url, 3, resourceVersion=since)
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in seen] == [
        ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")
    ]  # fmt: skip
    (left,) = await events(http, url, 1, resourceVersion=since, labelSelector="x=1")
    assert (left["type"], left["object"]["metadata"]["name"]) == ("DELETED", "a")


@pytest.mark.usefixtures("widgets")
async def test_watch_begins_with_what_is_there_and_says_when_that_was_all(
    http: aiohttp.ClientSession, namespace: str
) -> None:
    url = WIDGETS.format(namespace=namespace)
    await create(http, url, widget("a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    added, bookmark = await events(http, url, 2, **query)
    assert added["type"] == "ADDED"
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.usefixtures("widgets")
async def test_pages_show_each_object_once(http: aiohttp.ClientSession, namespace: str) -> None:
    url = WIDGETS.format(namespace=namespace)
    for name in "abcde":
        await create(http, url, widget(name))
    names, token, left = [], "", []
    while True:
        async with http.get(url, params={"limit": "2", "continue": token}) as answer:
            page = await answer.json()
        names += [item["metadata"]["name"] for item in page["items"]]
        left.append(page["metadata"].get("remainingItemCount"))
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert names == list("abcde")
    assert left == [3, 1, None]


@pytest.mark.usefixtures("widgets")
async def test_generation_counts_specs_and_conflicts_are_told(http: aiohttp.ClientSession, namespace: str) -> None:
    url = WIDGETS.format(namespace=namespace)
    made = await create(http, url, widget("", generateName="gen-"))
    name = made["metadata"]["name"]
    assert name.startswith("gen-") and made["metadata"]["generation"] == 1
    async with http.put(f"{url}/{name}", json={**made, "spec": {"size": 4}}) as answer:
        assert (await answer.json())["metadata"]["generation"] == 2
    async with http.put(f"{url}/{name}", json={**made, "spec": {"size": 5}}) as answer:
        assert (answer.status, (await answer.json())["reason"]) == (409, "Conflict")
    async with http.patch(f"{url}/{name}/status", json={"status": {"on": True}}, headers=MERGE) as answer:
        body = await answer.json()
    assert body["metadata"]["generation"] == 2
    writers = [(entry["operation"], entry.get("subresource", "")) for entry in body["metadata"]["managedFields"]]
    assert ("Update", "status") in writers
    async with http.post(url, json=widget(name)) as answer:
        assert (answer.status, (await answer.json())["reason"]) == (409, "AlreadyExists")


@pytest.mark.usefixtures("widgets")
async def test_field_validation_is_strict_when_asked(http: aiohttp.ClientSession, namespace: str) -> None:
    url = WIDGETS.format(namespace=namespace)
    odd = {**widget("odd"), "spec": {"size": 3, "odd": 1}}
    async with http.post(url, json=odd, params={"fieldValidation": "Strict"}) as answer:
        assert (answer.status, (await answer.json())["message"]) == (
            400,
            'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.odd"',
        )
    async with http.post(url, json=odd) as answer:
        assert answer.headers["Warning"] == '299 - "unknown field \\"spec.odd\\""'
        assert "odd" not in (await answer.json())["spec"]


@pytest.mark.usefixtures("widgets")
async def test_apply_tells_who_manages_what_is_in_the_way(http: aiohttp.ClientSession, namespace: str) -> None:
    url = WIDGETS.format(namespace=namespace) + "/shared"

    async def apply(manager: str, spec: dict[str, Any], force: str = "false") -> tuple[int, dict[str, Any]]:
        query = {"fieldManager": manager, "force": force}
        async with http.patch(url, json={**widget("shared"), "spec": spec}, headers=APPLY, params=query) as answer:
            return answer.status, await answer.json()

    assert (await apply("alice", {"size": 3, "parts": [{"name": "a", "n": 1}]}))[0] == 201
    assert (await apply("bob", {"parts": [{"name": "b"}]}))[0] == 200
    status, body = await apply("bob", {"size": 4})
    assert (status, body["details"]["causes"][0]["field"]) == (409, ".spec.size")
    status, body = await apply("bob", {"size": 4}, force="true")
    assert body["spec"] == {"size": 4, "color": "red", "parts": [{"name": "a", "n": 1}]}


async def test_token_is_its_accounts_and_ends_with_it(
    http: aiohttp.ClientSession, api: EmbeddedApi, namespace: str
) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await create(http, accounts, {"metadata": {"name": "robot"}})
    made = await create(http, f"{accounts}/robot/token", {"spec": {"expirationSeconds": 600, "audiences": ["here"]}})
    token = made["status"]["token"]

    async def reviewed(audience: str) -> dict[str, Any]:
        review = {"spec": {"token": token, "audiences": [audience]}}
        status: dict[str, Any] = (await create(http, "/apis/authentication.k8s.io/v1/tokenreviews", review))["status"]
        return status

    status = await reviewed("here")
    assert status["user"]["username"] == f"system:serviceaccount:{namespace}:robot"
    assert "authenticated" not in await reviewed("elsewhere")
    async with http.delete(f"{accounts}/robot"):
        pass
    assert "authenticated" not in await reviewed("here")


async def test_nobody_gets_what_is_public_only(api: EmbeddedApi) -> None:

    tls = ssl.create_default_context(cafile=str(api.ca_file))
    async with aiohttp.ClientSession(api.url, connector=aiohttp.TCPConnector(ssl=tls)) as nobody:
        async with nobody.get("/version") as answer:
            assert answer.status == 200
        async with nobody.get("/api/v1/namespaces") as answer:
            body = await answer.json()
            assert (answer.status, body["reason"]) == (403, "Forbidden")
        async with nobody.get("/api/v1/namespaces", headers={"Authorization": "Bearer no"}) as answer:
            assert answer.status == 401


async def test_compacted_revision_is_gone_and_an_outage_loses_nothing(tmp_path: Path) -> None:
    with EmbeddedApi(tmp_path) as api:
        async with aiohttp.ClientSession(
            api.url, connector=aiohttp.TCPConnector(ssl=client_tls(api.kubeconfig))
        ) as http:
            url = "/api/v1/namespaces/default/configmaps"
            first = await create(http, url, {"metadata": {"name": "a"}})
            await create(http, url, {"metadata": {"name": "b"}})
            await asyncio.to_thread(api.compact)
            (gone,) = await events(http, url, 1, resourceVersion=first["metadata"]["resourceVersion"])
            assert (gone["type"], gone["object"]["code"], gone["object"]["reason"]) == ("ERROR", 410, "Expired")
            await asyncio.to_thread(api.stop_apiserver)
            with pytest.raises(aiohttp.ClientError):
                await http.get(url)
            await asyncio.to_thread(api.start_apiserver)
            async with http.get(f"{url}/a") as answer:
                assert (await answer.json())["metadata"]["uid"] == first["metadata"]["uid"]


async def test_kept_objects_are_there_after_a_restart(tmp_path: Path) -> None:
    keep = tmp_path / "objects"
    url = "/api/v1/namespaces/default/configmaps"
    revisions = []
    for run in range(2):
        with EmbeddedApi(tmp_path / str(run), keep=keep) as api:
            with pytest.raises(JournalInUse):
                EmbeddedApi(tmp_path / "other", keep=keep).start()
            async with aiohttp.ClientSession(
                api.url, connector=aiohttp.TCPConnector(ssl=client_tls(api.kubeconfig))
            ) as http:
                if run == 0:
                    await create(http, url, {"metadata": {"name": "kept"}, "data": {"a": "b"}})
                async with http.get(f"{url}/kept") as answer:
                    body = await answer.json()
                assert body["data"] == {"a": "b"}
                revisions.append(body["metadata"]["resourceVersion"])
    assert revisions[0] == revisions[1]


@pytest.mark.usefixtures("widgets")
async def test_later_pages_show_what_was_there_at_the_first(http: aiohttp.ClientSession, namespace: str) -> None:
    url = WIDGETS.format(namespace=namespace)
    for name in "bdfh":
        await create(http, url, widget(name))

    async def page(**query: str) -> tuple[int, dict[str, Any]]:
        async with http.get(url, params=query) as answer:
            return answer.status, await answer.json()

    _, first = await page(limit="1")
    revision, token = first["metadata"]["resourceVersion"], first["metadata"]["continue"]
    await create(http, url, widget("c"))  # after the first page: not in the list
    async with http.patch(f"{url}/f", json={"spec": {"size": 9}}, headers=MERGE) as answer:
        assert answer.status == 200
    async with http.delete(f"{url}/d") as answer:
        assert answer.status == 200
    await create(http, url, widget("d", 8))
    async with http.delete(f"{url}/h") as answer:
        assert answer.status == 200
    query = {"limit": "2", "continue": token}
    _, second = await page(**query)
    _, third = await page(**{**query, "continue": second["metadata"]["continue"]})
    seen = [(w["metadata"]["name"], w["spec"]["size"]) for w in (*second["items"], *third["items"])]
    assert seen == [("d", 3), ("f", 3), ("h", 3)]
    assert {second["metadata"]["resourceVersion"], third["metadata"]["resourceVersion"]} == {revision}
    assert second["metadata"]["remainingItemCount"] == 1
    _, exact = await page(resourceVersion=revision, resourceVersionMatch="Exact")
    assert [w["metadata"]["name"] for w in exact["items"]] == list("bdfh")
    _, present = await page(resourceVersion=revision, resourceVersionMatch="NotOlderThan")
    assert [w["metadata"]["name"] for w in present["items"]] == list("bcdf")


async def test_page_of_a_forgotten_revision_is_gone(tmp_path: Path) -> None:
    with EmbeddedApi(tmp_path) as api:
        tls = aiohttp.TCPConnector(ssl=client_tls(api.kubeconfig))
        async with aiohttp.ClientSession(api.url, connector=tls) as http:
            url = "/api/v1/namespaces/default/configmaps"
            for name in "ab":
                await create(http, url, {"metadata": {"name": name}})
            async with http.get(url, params={"limit": "1"}) as answer:
                meta = (await answer.json())["metadata"]
            async with http.delete(f"{url}/b") as answer:
                assert answer.status == 200
            await asyncio.to_thread(api.compact)
            queries = ({"continue": meta["continue"]}, {"resourceVersion": meta["resourceVersion"], "limit": "1"})
            for query in queries:
                async with http.get(url, params=query) as answer:
                    body = await answer.json()
                assert (answer.status, body["reason"]) == (410, "Expired"), query
