"""Tests the client against unhealthy servers: nothing there, proxies, pages in HTML, paths before the API."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from tarsy.kube import client as module
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.response_room import ResponseRoom, ResponseTooLarge

Handler = Callable[[web.Request], Any]


def kubeconfig(folder: Path, server: str, **cluster: Any) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": {"token": "s3cr3t-token"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """A server that gives every request to `handler`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        answer: web.StreamResponse = await handler(request)
        return answer

    runner = web.AppRunner(web.Application(), access_log=None)
    runner.app.router.add_route("*", "/{tail:.*}", handle)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def error_of(folder: Path, server: str, **cluster: Any) -> ApiError:
    async with await KubeClient.load(kubeconfig(folder, server, **cluster)) as client:
        with pytest.raises(ApiError) as caught:
            await client.find("ConfigMap", "a", "b")
    assert "s3cr3t" not in str(caught.value)
    return caught.value


async def test_nobody_there_is_unreachable_and_may_pass(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = await error_of(tmp_path, f"http://127.0.0.1:{port}")
    assert (error.status, error.reason, error.transient) == (0, "Unreachable", True)
    assert str(port) in error.message


async def test_server_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_SECONDS", 0.3)
    forever = asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        await forever.wait()
        return web.Response()

    async with serving(silent) as server:
        error = await error_of(tmp_path, server)
        forever.set()
    assert error.reason == "Unreachable" and error.transient


@pytest.mark.parametrize("code", [502, 503, 429])
async def test_page_of_a_gateway_is_an_error_that_may_pass_and_its_body_is_not_repeated(
    tmp_path: Path, code: int
) -> None:
    async def gateway(request: web.Request) -> web.Response:
        return web.Response(status=code, text="<html>internal address 10.1.2.3</html>", content_type="text/html")

    async with serving(gateway) as server:
        error = await error_of(tmp_path, server)
    assert error.status == code and error.transient
    assert "10.1.2.3" not in error.message and "/configmaps/b" in error.message


async def test_page_instead_of_an_object_is_an_error_and_no_object(tmp_path: Path) -> None:
    async def portal(request: web.Request) -> web.Response:
        return web.Response(text="<html>please log in</html>", content_type="text/html")

    async with serving(portal) as server:
        error = await error_of(tmp_path, server)
    assert error.reason == "NoKubernetesAnswer" and error.transient


async def test_missing_page_of_a_gateway_is_no_missing_object(tmp_path: Path) -> None:
    async def gateway(request: web.Request) -> web.Response:
        return web.Response(status=404, text="404 page not found")

    async with serving(gateway) as server:
        error = await error_of(tmp_path, server)
    assert error.status == 404 and error.reason != "NotFound"


async def test_token_is_not_taken_elsewhere_by_a_redirect(tmp_path: Path) -> None:
    seen: list[str | None] = []

    async def elsewhere(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.json_response({})

    async with serving(elsewhere) as other:

        async def redirect(request: web.Request) -> web.Response:
            raise web.HTTPFound(other)

        async with serving(redirect) as server:
            error = await error_of(tmp_path, server)
    assert error.status == 302 and seen == []


async def test_answer_that_breaks_off_is_unreachable(tmp_path: Path) -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "1000"})
        await answer.prepare(request)
        await answer.write(b'{"kind":')
        assert request.transport is not None
        request.transport.close()
        return answer

    async with serving(half) as server:
        error = await error_of(tmp_path, server)
    assert error.reason == "Unreachable"


async def echo(request: web.Request) -> web.Response:
    return web.json_response({"path": request.path, "url": str(request.url), "token": request.headers["Authorization"]})


async def test_api_below_a_path_is_reached(tmp_path: Path) -> None:
    async with serving(echo) as server:
        async with await KubeClient.load(kubeconfig(tmp_path, f"{server}/k8s/clusters/c-1/")) as client:
            answer = await client.get("ConfigMap", "a", "b")
    assert answer["path"] == "/k8s/clusters/c-1/api/v1/namespaces/a/configmaps/b"
    assert answer["token"] == "Bearer s3cr3t-token"


async def test_proxy_of_the_kubeconfig_is_used(tmp_path: Path) -> None:
    async with serving(echo) as proxy:
        path = kubeconfig(tmp_path, "http://cluster.example", **{"proxy-url": proxy})
        async with await KubeClient.load(path) as client:
            answer = await client.get("ConfigMap", "a", "b")
    assert "/api/v1/namespaces/a/configmaps/b" in answer["path"]


@pytest.mark.parametrize(
    "content",
    ["", "not: [valid", "just text", "{apiVersion: v1, kind: Config}", "users: [{user: {token: s3cr3t}}]\n: ["],
    ids=["empty", "no YAML", "text", "no clusters", "broken with a token"],
)
async def test_kubeconfig_that_cannot_be_used_is_named_without_its_content(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ApiError) as caught:
        await KubeClient.load(path)
    assert caught.value.reason == "NoConfiguration"
    assert str(path) in caught.value.message and "s3cr3t" not in caught.value.message


async def test_kubeconfig_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match=r"no usable cluster configuration in .*nowhere"):
        await KubeClient.load(tmp_path / "nowhere")


def initializing(times: int, after: str = "0") -> tuple[Handler, list[str]]:
    """Answers 429 so many times, as an API server does for a kind that is new, and then with an object."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.method)
        if len(asked) > times:
            return web.json_response({"kind": "ConfigMap", "metadata": {"name": "b"}})
        status = {"kind": "Status", "reason": "TooManyRequests", "message": "storage is (re)initializing", "code": 429}
        return web.json_response(status, status=429, headers={"Retry-After": after} if after else {})

    return answer, asked


@pytest.mark.parametrize("times", [0, 1, 3])
async def test_request_that_is_to_be_made_again_is_made_again(tmp_path: Path, times: int) -> None:
    handler, asked = initializing(times)
    async with serving(handler) as server, await KubeClient.load(kubeconfig(tmp_path, server)) as client:
        found = await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "a"}})
    assert found["metadata"]["name"] == "b" and asked == ["POST"] * (times + 1)


@pytest.mark.parametrize("after", ["", "soon", "-1", "Wed, 21 Oct 2026 07:28:00 GMT"])
async def test_too_many_requests_without_seconds_is_told_at_once(tmp_path: Path, after: str) -> None:
    handler, asked = initializing(1, after)
    async with serving(handler) as server:
        error = await error_of(tmp_path, server)
    assert (error.status, error.transient, len(asked)) == (429, True, 1)


async def test_server_that_is_busy_for_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.5)
    handler, asked = initializing(1000, "1")
    async with serving(handler) as server:
        error = await error_of(tmp_path, server)
    assert error.status == 429 and "(re)initializing" in error.message and len(asked) == 1


@pytest.mark.parametrize(("room", "read"), [(19, None), (20, 0), (21, 1), (40, 20)])
async def test_a_response_is_read_only_as_far_as_there_is_room(tmp_path: Path, room: int, read: int | None) -> None:
    """And two responses share it."""
    body = b'{"items": [1, 2, 3]}'
    assert len(body) == 20

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    left = ResponseRoom(room)
    async with serving(handler) as server, await KubeClient.load(kubeconfig(tmp_path, server)) as client:
        if read is not None:
            assert (await client.request("GET", "/api/v1/pods", room=left))["items"] == [1, 2, 3]
            assert left.left == read
        if left.left < len(body):
            with pytest.raises(ResponseTooLarge):
                await client.request("GET", "/api/v1/pods", room=left)
