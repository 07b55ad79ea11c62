"""Tests that no text of an HTTP server reaches a status, only the kind of its failure."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from integration.mcp.servers import http
from tarsy.mcp.connection import Policy
from tarsy.mcp.health import look
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.plan.model import Value

SAID = "AccessKeyId-of-metadata"
ERROR = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": SAID}})


def answer(status: str, body: str, kind: str) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return (head + body).encode()


@asynccontextmanager
async def saying(raw: bytes) -> AsyncIterator[str]:
    """The URL of a server that answers everything with these bytes."""

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(raw)
        writer.close()

    async with await asyncio.start_server(answer_all, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


@pytest.mark.parametrize("kind", ["http", "sse"])
@pytest.mark.parametrize(
    "raw",
    [
        f"{SAID}\r\n".encode(),
        f"HTTP/1.1 200 {SAID}\r\nX-{SAID}\x00: 1\r\n\r\n".encode(),
        answer("500 Oops", SAID, "text/plain"),
        answer(f"500 {SAID}", "{}", "application/json"),
        answer("200 OK", ERROR, "application/json"),
        answer("400 Bad", ERROR, "application/json"),
        answer("200 OK", f'{{"{SAID}": 1}}', "application/json"),
        answer("200 OK", SAID, "text/plain"),
        answer("200 OK", f"event: {SAID}\ndata: {SAID}\n\n", "text/event-stream"),
        answer(f"302 {SAID}\r\nLocation: http://{SAID}/", "", "text/plain"),
    ],
)
async def test_no_word_of_a_server_is_told_of_its_failure(raw: bytes, kind: str) -> None:
    async def resolve(value: Value) -> str:
        return value.value or ""

    toolboxes = McpToolboxes(resolve, mask=str)
    async with saying(raw) as url:
        server = http(url, transport={"type": kind}, init_seconds=5)
        async with toolboxes.open([server]) as box:
            assert box.unavailable["web"] and SAID.lower() not in box.unavailable["web"].lower()
        seen = await look(server, Policy(resolve, ssl.create_default_context()), 5)
        assert seen.reason is not None and SAID.lower() not in seen.failure.lower()
