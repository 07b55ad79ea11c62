"""Tests the connection limits of servers that uvicorn serves."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn

from integration.listening.test_listening import BRIEF, SECONDS, Client
from tarsy.listening.asgi import SIGN_IN, Gate
from tarsy.listening.connection_guard import ConnectionLimits


async def _hello(scope: Any, receive: Any, send: Any) -> None:
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    if any(name == b"authorization" for name, _ in scope["headers"]):
        scope[SIGN_IN]()
    text = f"{size} bytes".encode()
    headers = [(b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})


@contextlib.asynccontextmanager
async def _serving(limits: ConnectionLimits) -> AsyncIterator[int]:
    gate = Gate(limits)
    config = uvicorn.Config(
        gate.wrap(_hello), http=gate.protocol, ws="none", log_level="error", lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield int(listening.getsockname()[1])
        finally:
            server.should_exit = True
            async with asyncio.timeout(SECONDS):
                await serving


@contextlib.asynccontextmanager
async def _client(port: int) -> AsyncIterator[Client]:
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def test_head_that_does_not_end_has_a_deadline_and_a_request_is_answered() -> None:
    async with _serving(ConnectionLimits(head_seconds=BRIEF)) as port, _client(port) as slow, _client(port) as quick:
        assert (await quick.ask("/", body=b"x" * 500_000)).endswith(b"500000 bytes")
        slow.writer.write(b"POST / HTTP/1.1\r\nX: ")
        assert await slow.ended()


@pytest.mark.parametrize(("size", "ends"), [(3_999, False), (4_000, False), (4_001, True)])
async def test_head_has_a_size(size: int, ends: bool) -> None:
    async with _serving(ConnectionLimits(head_bytes=4_000)) as port, _client(port) as client:
        head = b"GET / HTTP/1.1\r\nHost: here\r\nX: "
        client.writer.write(head.ljust(size - 4, b"x") + b"\r\n\r\n")
        assert await client.ended() if ends else b"200 OK" in await client.answer()


@pytest.mark.parametrize(("count", "first_ends"), [(2, False), (3, False), (4, True)])
async def test_oldest_makes_room_above_the_bound(count: int, first_ends: bool) -> None:
    async with _serving(ConnectionLimits(connections=3)) as port, contextlib.AsyncExitStack() as stack:
        clients = []
        for _ in range(count):
            clients.append(await stack.enter_async_context(_client(port)))
            assert b"200 OK" in await clients[-1].ask()
        assert await clients[0].ended(SECONDS if first_ends else BRIEF) is first_ends


async def test_who_is_known_is_not_pushed_out() -> None:
    async with _serving(ConnectionLimits(connections=1)) as port, contextlib.AsyncExitStack() as stack:
        known = await stack.enter_async_context(_client(port))
        await known.ask("/", "Authorization: Bearer x")
        for _ in range(3):
            await (await stack.enter_async_context(_client(port))).ask()
        assert b"200 OK" in await known.ask()


async def test_packed_body_is_refused() -> None:
    async with _serving(ConnectionLimits()) as port, _client(port) as client:
        assert b" 415 " in await client.ask("/", "Content-Encoding: gzip", body=b"x" * 100)
