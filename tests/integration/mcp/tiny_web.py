"""A tool server by HTTP that costs next to nothing: streamable HTTP at /mcp, server-sent events at /sse.

As `tiny_server.sh`: the tool `echo` says "hello", `hang` says nothing. `open_now` are its open connections. `fault` is
how it answers calls of tools instead: an HTTP status, `error` (of JSON-RPC), `silence`, or how the connection ends:
`eof`, `reset`, `half` (in the middle of the answer), `stream` (in the middle of a stream of events). When it is `mute`
it answers nothing at all.
"""

import asyncio
import json
from typing import Any

_SESSION = {"mcp-session-id": "one"}
_TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "hang")]
_RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "tiny", "version": "1"},
    },
    "tools/list": {"tools": _TOOLS},
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
}


class TinyWeb:
    """Serves from `start` to `stop`."""

    def __init__(self) -> None:
        self.open_now = 0
        self.calls = 0
        self.fault: str | int | None = None
        self.mute = False
        self._streams: dict[str, asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_now += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head.decode().lower(), reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open_now -= 1
            writer.close()

    async def _answer(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mute:
            await reader.read()
        method, path = head.split(" ", 2)[:2]
        size = next((line for line in head.split("\r\n") if line.startswith("content-length:")), ":0")
        body = await reader.readexactly(int(size.split(":")[1]))
        if method == "get" and path == "/sse":
            key = str(id(writer))
            self._streams[key] = writer
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            writer.write(f"event: endpoint\ndata: /messages?{key}\n\n".encode())
        elif method != "post":
            writer.write(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")
        elif self.fault is not None and json.loads(body)["method"] == "tools/call":
            self.calls += 1
            await self._fail(self.fault, json.loads(body)["id"], reader, writer)
        elif path == "/mcp":
            answer = self._result(json.loads(body))
            if answer is None:
                await reader.read()  # until the client has had enough
                raise ConnectionResetError
            headers = "".join(f"{name}: {value}\r\n" for name, value in _SESSION.items())
            writer.write(f"HTTP/1.1 {'200 OK' if answer else '202 Accepted'}\r\n{headers}".encode())
            writer.write(f"content-type: application/json\r\ncontent-length: {len(answer)}\r\n\r\n".encode() + answer)
        else:
            stream = self._streams[path.partition("?")[2]]
            if answer := self._result(json.loads(body)):
                stream.write(b"event: message\ndata: " + answer + b"\n\n")
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()

    async def _fail(
        self, fault: str | int, request: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        match fault:
            case int():
                writer.write(f"HTTP/1.1 {fault} No\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n".encode())
                return
            case "error":
                answer = json.dumps({"jsonrpc": "2.0", "id": request, "error": {"code": -32000, "message": "no luck"}})
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                writer.write(f"content-length: {len(answer)}\r\n\r\n{answer}".encode())
                return
            case "half":
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
                await writer.drain()
            case "stream":
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: soon\n\n")
                await writer.drain()
            case "reset":
                writer.transport.abort()
            case "silence":
                await reader.read()
        raise ConnectionResetError

    def _result(self, request: dict[str, Any]) -> bytes | None:
        """Empty for a notification, None when there is to be no answer."""
        if "id" not in request:
            return b""
        self.calls += request["method"] == "tools/call"
        if (request.get("params") or {}).get("name") == "hang":
            return None
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] in _RESULTS:
            answer["result"] = _RESULTS[request["method"]]
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        return json.dumps(answer).encode()
