"""Both doors on the wire, against servers that are no healthy API."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from integration.kube.test_wire import kubeconfig, serving
from tarsy.client import aggregated, direct
from tarsy.client.aggregated import AggregatedClient
from tarsy.client.direct import DirectClient
from tarsy.client.errors import ApiUseError, BrokenOff
from tarsy.client.kubeconfig import ChosenContext
from tarsy.client.refusals import READ_TIMELINE
from tarsy.client.waiting import until_taken
from tarsy.kube.client import KubeClient

TOKEN = "s3cr3t-token"
PATH = "/namespaces/shop/investigations/run/timeline"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregated, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(direct, "POLL_SECONDS", 0.01)


@pytest.mark.parametrize(
    ("answer", "words", "status"),
    [
        ((200, "<html>hello</html>"), "not from TARSy; is --server correct?", 0),
        ((200, "[]"), "not from TARSy; is --server correct?", 0),
        ((404, "<html>no such page</html>"), "not from TARSy; is --server correct?", 400),
        ((302, ""), "not from TARSy; is --server correct?", 302),
        ((404, '{"error": {"reason": "NotFound", "message": "there is no such run"}}'), "there is no such run", 404),
        ((403, '{"error": {"reason": "Forbidden", "message": "no"}}'), "--clusterrole=tarsy-viewer -n shop", 403),
        ((401, '{"error": {"reason": "Unauthorized", "message": "no"}}'), "the token for 127.0.0.1", 401),
        ((503, '{"error": {"reason": "ServiceUnavailable", "message": "away"}}'), "cannot be read now: away", 503),
    ],
)
async def test_each_answer_of_the_direct_api_that_is_none_is_a_sentence(
    answer: tuple[int, str], words: str, status: int
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        return web.Response(status=answer[0], text=answer[1], headers={"Location": "/elsewhere"})

    async with serving(handle) as server, DirectClient(server, TOKEN, "shop") as door:
        for asked in (door.read(PATH, READ_TIMELINE), _streamed(door)):
            if answer[0] == 200 and asked.__name__ == "_streamed":
                asked.close()
                continue
            with pytest.raises(ApiUseError) as caught:
                await asked
            assert words in str(caught.value) and TOKEN not in str(caught.value)
            assert caught.value.status == status


async def _streamed(door: DirectClient) -> list[bytes]:
    async with door.streaming(PATH, READ_TIMELINE) as pieces:
        return [piece async for piece in pieces]


async def test_a_server_that_is_not_there_may_come_back() -> None:
    async with DirectClient("http://127.0.0.1:1", TOKEN, "shop") as door:
        with pytest.raises(BrokenOff, match="could not be reached"):
            await door.read(PATH, READ_TIMELINE)


def _alert(version: int, uid: str = "u", **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "tarsy.dev/v1alpha1",
        "kind": "Alert",
        "metadata": {"name": "disk", "namespace": "shop", "uid": uid, "resourceVersion": str(version)},
        "status": status,
    }


async def _until_taken(folder: Path, watches: list[list[dict[str, Any] | None]], began: dict[str, Any]) -> str:
    """What is made of an alert that is first `began`, and then what each watch tells; None breaks it off."""
    asked: list[Mapping[str, str]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response(began)
        asked.append(request.query)
        answer = web.StreamResponse()
        await answer.prepare(request)
        for event in watches[min(len(asked), len(watches)) - 1]:
            if event is None:
                assert request.transport is not None
                request.transport.abort()
                return answer
            line = json.dumps(event).encode() + b"\n"
            await answer.write(line[:7])
            await answer.write(line[7:])
        return answer

    def look(obj: Mapping[str, Any]) -> str | None:
        return obj["status"].get("found")

    async with serving(handle) as server, await KubeClient.load(kubeconfig(folder, server)) as client:
        door = AggregatedClient(client, ChosenContext(None, "x", "shop"))
        found = await until_taken(door, "Alert", "shop", "disk", look)
    assert all(query["fieldSelector"] == "metadata.name=disk" for query in asked)
    return found


async def test_an_object_is_watched_through_ends_errors_and_broken_connections(tmp_path: Path) -> None:
    expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
    taken = {"type": "MODIFIED", "object": _alert(3, found="it")}
    watches: list[list[dict[str, Any] | None]] = [[], [expired], [None], [taken]]
    assert await _until_taken(tmp_path, watches, _alert(1)) == "it"


@pytest.mark.parametrize(
    "event",
    [{"type": "DELETED", "object": _alert(2)}, {"type": "MODIFIED", "object": _alert(2, uid="another")}],
    ids=["deleted", "replaced"],
)
async def test_an_object_that_is_gone_is_not_waited_for(tmp_path: Path, event: dict[str, Any]) -> None:
    with pytest.raises(ApiUseError, match="Alert shop/disk was deleted"):
        await _until_taken(tmp_path, [[event]], _alert(1))


def _refused(final: str) -> dict[str, Any]:
    told = {"type": "Accepted", "status": "False", "reason": "NoChain", "message": "no chain takes it."}
    return _alert(2, conditions=[told, {"type": "Finished", "status": final}])


async def test_a_final_refusal_is_told_at_once_and_one_that_can_be_mended_after_some_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ApiUseError, match=r"Alert shop/disk was refused: no chain takes it. \(NoChain\)"):
        await _until_taken(tmp_path, [[]], _refused("True"))
    monkeypatch.setattr("tarsy.client.waiting.REFUSED_SECONDS", 0.1)
    with pytest.raises(ApiUseError, match=r"waits: no chain takes it. \(NoChain\); it continues when"):
        await _until_taken(tmp_path, [[]], _refused("False"))


async def test_a_refusal_that_is_mended_in_time_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.client.waiting.REFUSED_SECONDS", 60.0)
    taken = {"type": "MODIFIED", "object": _alert(3, found="it")}
    assert await _until_taken(tmp_path, [[{"type": "MODIFIED", "object": _refused("False")}, taken]], _alert(1)) == "it"


async def test_an_object_that_nobody_looks_at_is_not_waited_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.client.waiting.UNSEEN_SECONDS", 0.1)
    with pytest.raises(ApiUseError, match="is it running"):
        await _until_taken(tmp_path, [[]], _alert(1))


@pytest.mark.parametrize(
    ("states", "cancelled"),
    [
        ((("Running", "False"), ("Running", "False")), ["q0", "q1"]),
        ((("Running", "True"), ("Concluded", "False")), ["q1"]),
        ((("Running", "True"), ("Cancelled", "False")), None),
        ((), None),
    ],
)
async def test_cancelling_what_has_ended_cancels_the_questions_that_wait(
    tmp_path: Path, states: tuple[tuple[str, str], ...], cancelled: list[str] | None
) -> None:
    patched: list[str] = []
    questions = [
        {
            "metadata": {"name": f"q{n}", "uid": f"u{n}", "creationTimestamp": f"2026-11-20T09:00:0{n}Z"},
            "spec": {"investigationRef": {"name": "run"}, "desiredState": desired},
            "status": {"conditions": [{"type": "Finished", "status": finished}]},
        }
        for n, (desired, finished) in enumerate(states)
    ]
    over = {"phase": "Succeeded", "conditions": [{"type": "Finished", "status": "True"}]}

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method == "PATCH":
            patched.append(request.path.rpartition("/")[2])
            return web.json_response({"metadata": {}, "spec": {}})
        if request.path.endswith("/chatmessages"):
            return web.json_response({"metadata": {}, "items": questions})
        return web.json_response({"metadata": {"uid": "u"}, "spec": {}, "status": over})

    async with serving(handle) as server, await KubeClient.load(kubeconfig(tmp_path, server)) as client:
        door = AggregatedClient(client, ChosenContext(None, "x", "shop"))
        if cancelled is None:
            with pytest.raises(ApiUseError, match="investigation shop/run has ended: Succeeded"):
                await door.want("shop", "run", "Cancelled")
        else:
            assert await door.want("shop", "run", "Cancelled") == cancelled
    assert patched == (cancelled or [])


@pytest.mark.parametrize(
    ("investigation", "words"),
    [
        ({"status": {"phase": "Failed", "conditions": [{"type": "Finished", "status": "True"}]}}, "has ended: Failed"),
        ({"spec": {"desiredState": "Cancelled"}}, "is being cancelled"),
    ],
)
async def test_what_has_ended_or_is_cancelled_is_not_concluded(
    tmp_path: Path, investigation: dict[str, Any], words: str
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.method == "GET"
        return web.json_response({"metadata": {"uid": "u"}, "spec": {}, **investigation})

    async with serving(handle) as server, await KubeClient.load(kubeconfig(tmp_path, server)) as client:
        with pytest.raises(ApiUseError, match=f"investigation shop/run {words}"):
            await AggregatedClient(client, ChosenContext(None, "x", "shop")).want("shop", "run", "Concluded")


@pytest.mark.parametrize("status", ["True", "False"])
async def test_a_retry_with_a_kubeconfig_is_an_investigation_that_names_the_first(tmp_path: Path, status: str) -> None:
    made: list[Any] = []
    first = {
        "apiVersion": "tarsy.dev/v1alpha1",
        "kind": "Investigation",
        "metadata": {"name": "run", "namespace": "shop", "uid": "u-1"},
        "spec": {"alertRef": {"name": "disk"}, "desiredState": "Concluded", "author": {"username": "ada"}},
        "status": {"conditions": [{"type": "Finished", "status": status}]},
    }

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            made.append(await request.json())
            return web.json_response({**made[-1], "metadata": {"name": "run-retry-x", "uid": "u-2"}}, status=201)
        return web.json_response(first if request.path.endswith("/investigations/run") else _alert(1))

    async with serving(handle) as server, await KubeClient.load(kubeconfig(tmp_path, server)) as client:
        door = AggregatedClient(client, ChosenContext(None, "x", "shop"))
        if status == "False":
            with pytest.raises(ApiUseError, match="has not finished; wait for its end or cancel it"):
                await door.retry("shop", "run", None, None)
            assert made == []
            return
        assert (await door.retry("shop", "run", "next", "large")).name == "run-retry-x"
    spec = {
        "alertRef": {"name": "disk"},
        "chainRef": {"name": "next"},
        "llmProviderRef": {"name": "large"},
        "retryOf": {"name": "run", "uid": "u-1"},
    }
    assert made[0]["spec"] == spec


async def test_an_alert_without_a_type_is_submitted_with_the_default_one_of_its_namespace(tmp_path: Path) -> None:
    made: list[Any] = []
    defaults: dict[str, Any] = {"spec": {}, "metadata": {"name": "default"}}

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            made.append(await request.json())
            return web.json_response({**made[-1], "metadata": {"name": "alert-x", "uid": "u"}}, status=201)
        assert request.path.endswith("/namespaces/shop/investigationdefaults/default")
        return web.json_response(defaults)

    alert = {"apiVersion": "tarsy.dev/v1alpha1", "kind": "Alert", "metadata": {}, "spec": {"data": "x"}}
    async with serving(handle) as server, await KubeClient.load(kubeconfig(tmp_path, server)) as client:
        door = AggregatedClient(client, ChosenContext(None, "x", "shop"))
        with pytest.raises(ApiUseError, match="sets no defaultAlertType: give the --type"):
            await door.submit("shop", alert)
        defaults["spec"] = {"defaultAlertType": "Report"}
        assert (await door.submit("shop", alert)).name == "alert-x"
    assert [one["spec"] for one in made] == [{"alertType": "Report", "data": "x"}]
