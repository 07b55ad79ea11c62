"""Tests streamed responses, watches and server-sent events, of servers that refuse, break off, or fall silent."""

from pathlib import Path

import pytest
from aiohttp import web

from integration.kube.test_wire import kubeconfig, serving
from tarsy.kube.client import ApiError, KubeClient

FORBIDDEN = {"kind": "Status", "reason": "Forbidden", "message": "you may not"}


async def pieces(folder: Path, server: str, silence: float = 30.0) -> bytes:
    """All that is streamed."""
    async with await KubeClient.load(kubeconfig(folder, server)) as client:
        async with client.streaming("/x", {"a": "b c"}, accept="text/event-stream", silence_seconds=silence) as coming:
            return b"".join([piece async for piece in coming])


async def test_pieces_come_as_they_are_sent_to_the_end(tmp_path: Path) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.path_qs == "/x?a=b+c" and request.headers["Accept"] == "text/event-stream"
        assert request.headers["Authorization"] == "Bearer s3cr3t-token"
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"data: 1\n\n")
        await answer.write(b"x" * 200_000)
        return answer

    async with serving(handle) as server:
        assert await pieces(tmp_path, server) == b"data: 1\n\n" + b"x" * 200_000


async def test_a_refusal_is_told_apart_before_anything_is_streamed(tmp_path: Path) -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.json_response(FORBIDDEN, status=403)

    async with serving(handle) as server:
        with pytest.raises(ApiError, match="you may not") as caught:
            await pieces(tmp_path, server)
    assert (caught.value.status, caught.value.transient) == (403, False)


@pytest.mark.parametrize("silent", [False, True], ids=["breaks off", "falls silent"])
async def test_what_breaks_off_or_falls_silent_may_succeed_later(tmp_path: Path, silent: bool) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "1000"})
        await answer.prepare(request)
        await answer.write(b"data: 1\n\n")
        if not silent and request.transport is not None:
            request.transport.abort()
        return answer  # without the rest, which its length promises

    async with serving(handle) as server:
        with pytest.raises(ApiError, match="could not be reached") as caught:
            await pieces(tmp_path, server, silence=0.2)
    assert caught.value.transient and "s3cr3t" not in str(caught.value)


async def test_any_path_of_an_api_can_be_read(tmp_path: Path) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response({"path": request.path_qs})

    async with serving(handle) as server, await KubeClient.load(kubeconfig(tmp_path, server)) as client:
        assert await client.read("/apis/x", {"limit": "1"}) == {"path": "/apis/x?limit=1"}
