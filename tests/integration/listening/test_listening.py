"""Tests connections on the wire: endless heads, compressed bodies, too many clients."""

import asyncio
import contextlib
import gzip
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from tarsy.http.admission.tls import make_certificate, server_context
from tarsy.listening.connection_guard import ConnectionLimits, mark_signed_in
from tarsy.listening.server import listen
from tarsy.listening.uncompressed_bodies import PACKED, plain_bodies_only

HOST = "127.0.0.1"
SECONDS = 10.0
BRIEF = 0.3


async def _hello(request: web.Request) -> web.Response:
    if request.headers.get("Authorization"):
        mark_signed_in(request)
    return web.Response(text=f"{len(await request.read())} bytes")


async def _wait(request: web.Request) -> web.Response:
    await asyncio.sleep(3 * BRIEF)
    return await _hello(request)


@contextlib.asynccontextmanager
async def _serving(limits: ConnectionLimits, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    app = web.Application(middlewares=[plain_bodies_only], client_max_size=1 << 20)
    app.router.add_route("*", "/", _hello)
    app.router.add_route("*", "/wait", _wait)
    async with listen(app, HOST, 0, tls=tls, limits=limits, close_seconds=0.1) as port:
        yield port


class Client:
    """A connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, path: str = "/", *headers: str, body: bytes = b"") -> bytes:
        head = [f"POST {path} HTTP/1.1", "Host: here", f"Content-Length: {len(body)}", *headers, "", ""]
        self.writer.write("\r\n".join(head).encode() + body)
        return await self.answer()

    async def answer(self) -> bytes:
        """Status line, headers and body."""
        async with asyncio.timeout(SECONDS):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            return head + await self.reader.readexactly(int(length.partition(b":")[2]))

    async def ended(self, seconds: float = SECONDS) -> bool:
        """Whether the server ends the connection within that time."""
        try:
            async with asyncio.timeout(seconds):
                return await self.reader.read(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


@contextlib.asynccontextmanager
async def _client(port: int) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def _clients(stack: contextlib.AsyncExitStack, port: int, count: int) -> list[Client]:
    """So many, each accepted before the next."""
    found = []
    for _ in range(count):
        found.append(await stack.enter_async_context(_client(port)))
        assert b"200 OK" in await found[-1].ask()
    return found


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Content-Encoding: gzip", b"415"),
        ("Content-Encoding: identity, deflate", b"415"),
        ("Content-Encoding: br", b"415"),
        ("Content-Encoding: identity", b"200"),
        ("Content-Encoding:", b"200"),
        ("Accept-Encoding: gzip", b"200"),
    ],
)
async def test_packed_body_is_refused_by_its_head(header: str, status: bytes) -> None:
    async with _serving(ConnectionLimits()) as port, _client(port) as client:
        answer = await client.ask("/", header, body=gzip.compress(b"x" * 100_000))
        assert answer.split()[1] == status
        if status == b"415":
            assert PACKED.encode() in answer


async def test_body_is_never_unpacked() -> None:
    packed = gzip.compress(b"x" * 100_000)
    async with _serving(ConnectionLimits()) as port, _client(port) as client:
        answer = await client.ask("/", "Content-Encoding: identity", body=packed)
        assert answer.endswith(f"{len(packed)} bytes".encode())


@pytest.mark.parametrize("begun", [b"", b"POST / HTTP/1.1\r\nHost: h"])
async def test_head_that_does_not_end_has_a_deadline(begun: bytes) -> None:
    async with _serving(ConnectionLimits(head_seconds=BRIEF)) as port, _client(port) as client:
        client.writer.write(begun)
        assert await client.ended()


async def test_head_that_comes_drop_by_drop_has_the_same_deadline() -> None:
    async with _serving(ConnectionLimits(head_seconds=BRIEF)) as port, _client(port) as client:
        client.writer.write(b"GET / HTTP/1.1\r\nX: ")
        ended = asyncio.create_task(client.ended())
        with contextlib.suppress(ConnectionError):
            while not ended.done():
                client.writer.write(b"X")
                await client.writer.drain()
                await asyncio.sleep(BRIEF / 10)
        assert await ended


async def test_request_may_take_longer_than_its_head() -> None:
    async with _serving(ConnectionLimits(head_seconds=BRIEF, idle_seconds=BRIEF)) as port, _client(port) as client:
        assert b"200 OK" in await client.ask("/wait")


async def test_idle_connection_is_ended_until_its_client_has_signed_in() -> None:
    limits = ConnectionLimits(head_seconds=BRIEF, idle_seconds=BRIEF)
    async with _serving(limits) as port, _client(port) as client, _client(port) as known:
        await client.ask()
        await known.ask("/", "Authorization: Bearer x")
        assert await client.ended()
        assert not await known.ended(2 * BRIEF)
        assert b"200 OK" in await known.ask()


@pytest.mark.parametrize(("size", "ends"), [(3_999, False), (4_000, False), (4_001, True)])
@pytest.mark.parametrize("pieces", [1, 2, 400])
async def test_head_has_a_size(size: int, ends: bool, pieces: int) -> None:
    async with _serving(ConnectionLimits(head_bytes=4_000)) as port, _client(port) as client:
        head = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\nX: "
        head = head.ljust(size - 4, b"x") + b"\r\n\r\n"
        step = -(-len(head) // pieces)
        for at in range(0, len(head), step):
            client.writer.write(head[at : at + step])
            await asyncio.sleep(0)
        client.writer.write(b"abc")
        assert await client.ended() if ends else b"200 OK" in await client.answer()


async def test_every_head_of_a_connection_has_that_size() -> None:
    async with _serving(ConnectionLimits(head_bytes=4_000)) as port, _client(port) as client:
        for _ in range(5):
            assert b"200 OK" in await client.ask("/", "X: " + "x" * 3_000, body=b"y" * 10_000)
        client.writer.write(b"POST / HTTP/1.1\r\nHost: here\r\nX: " + b"x" * 4_000)
        assert await client.ended()


async def test_large_body_is_no_head_however_it_comes() -> None:
    async with _serving(ConnectionLimits(head_bytes=4_000)) as port, _client(port) as client:
        assert (await client.ask("/", body=b"x" * 900_000)).endswith(b"900000 bytes")


async def test_refusal_is_read_by_a_client_that_still_sends_and_the_connection_ends() -> None:
    async with _serving(ConnectionLimits(head_bytes=4_000)) as port, _client(port) as client:
        answer = await client.ask("/", "Content-Encoding: gzip", body=b"x" * 3_000_000)
        assert b"415" in answer and b"Connection: close" in answer
        assert await client.ended()


@pytest.mark.parametrize(("count", "first_ends"), [(2, False), (3, False), (4, True)])
async def test_oldest_makes_room_above_the_bound(count: int, first_ends: bool) -> None:
    async with _serving(ConnectionLimits(connections=3)) as port, contextlib.AsyncExitStack() as stack:
        first, *_, last = await _clients(stack, port, count)
        assert await first.ended(SECONDS if first_ends else BRIEF) is first_ends
        assert b"200 OK" in await last.ask()


async def test_who_has_signed_in_takes_no_place_and_is_not_pushed_out() -> None:
    async with _serving(ConnectionLimits(connections=2)) as port, contextlib.AsyncExitStack() as stack:
        known = await stack.enter_async_context(_client(port))
        await known.ask("/", "Authorization: Bearer x")
        first, *_ = await _clients(stack, port, 3)
        assert await first.ended()
        assert b"200 OK" in await known.ask()


async def test_who_is_being_answered_is_not_pushed_out_by_those_who_send_nothing() -> None:
    async with _serving(ConnectionLimits(connections=3)) as port, contextlib.AsyncExitStack() as stack:
        asking = await stack.enter_async_context(_client(port))
        answer = asyncio.create_task(asking.ask("/wait"))
        await asyncio.sleep(BRIEF)
        silent = [await stack.enter_async_context(_client(port)) for _ in range(10)]
        assert b"200 OK" in await answer
        assert await silent[0].ended()


async def test_connection_that_ended_gives_its_place_back() -> None:
    async with _serving(ConnectionLimits(connections=2)) as port, contextlib.AsyncExitStack() as stack:
        (stays,) = await _clients(stack, port, 1)
        for _ in range(5):
            async with _client(port) as other:
                await other.ask()
                other.writer.close()
                await other.writer.wait_closed()
            await asyncio.sleep(0.02)
        assert not await stays.ended(BRIEF)


async def test_handshake_that_does_not_end_holds_a_place_and_loses_it(tmp_path: Path) -> None:
    own = make_certificate(("localhost",), datetime.now(UTC))
    trusting = ssl.create_default_context(cadata=own.authority)
    async with (
        _serving(ConnectionLimits(connections=2), server_context(own)) as port,
        contextlib.AsyncExitStack() as stack,
    ):
        silent = [await stack.enter_async_context(_client(port)) for _ in range(2)]
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection(HOST, port, ssl=trusting, server_hostname="localhost")
        assert b"200 OK" in await Client(reader, writer).ask()
        writer.close()
        assert await silent[0].ended()


async def test_taken_port_is_an_error_and_a_free_one_is_told() -> None:
    async with _serving(ConnectionLimits()) as port:
        assert port > 0
        with pytest.raises(OSError, match="in use"):
            async with listen(web.Application(), HOST, port):
                pass


@pytest.mark.parametrize("turns", range(8))
async def test_closing_when_a_handshake_ends_leaves_no_transport_of_a_closed_descriptor(turns: int) -> None:
    own = make_certificate(["localhost"], datetime.now(UTC))
    believes = ssl.create_default_context(cadata=own.authority)
    async with _serving(ConnectionLimits(), server_context(own)) as port:
        client = await _before_its_last_flight(port, believes)
        for _ in range(turns):
            await asyncio.sleep(0)
    with contextlib.ExitStack() as clients, client:
        async with _serving(ConnectionLimits()) as port:  # its connections get the descriptors that are free again
            for _ in range(16):
                new = clients.enter_context(socket.socket())
                new.setblocking(False)
                await asyncio.get_running_loop().sock_connect(new, (HOST, port))


async def _before_its_last_flight(port: int, believes: ssl.SSLContext) -> socket.socket:
    """Connects and sends the last bytes of a handshake, which the server has not read yet."""
    loop, read, written = asyncio.get_running_loop(), ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = believes.wrap_bio(read, written, server_hostname="localhost")
    client = socket.socket()
    client.setblocking(False)
    await loop.sock_connect(client, (HOST, port))
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            await loop.sock_sendall(client, written.read())
            read.write(await loop.sock_recv(client, 1 << 16))
        else:
            client.send(written.read())
            return client
