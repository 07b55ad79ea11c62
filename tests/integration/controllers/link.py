"""Relays a TCP connection to the API server that a test can cut for the operator alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit


class Link:
    """Forwards a port of 127.0.0.1 to the API server's; TLS passes through."""

    def __init__(self, server: str) -> None:
        self._target = urlsplit(server).port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    async def open(self) -> None:
        """Connects from now on; on the same port each time."""
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Ends all connections and takes no new ones."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=5)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:  # it was taken before the cut, and would outlive it
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                async with asyncio.TaskGroup() as group:
                    ways = [_copy(reader, up_writer), _copy(up_reader, writer)]
                    for way in ways:
                        group.create_task(way)
            finally:
                up_writer.transport.abort()
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._connections.discard(task)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    raise ConnectionError("one side has closed")


@contextlib.asynccontextmanager
async def link_to(server: str, kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[Link, Path]]:
    """An open link, and the kubeconfig that leads over it."""
    link = Link(server)
    await link.open()
    try:
        yield link, _leading_over(link, server, kubeconfig, folder / "link.kubeconfig")
    finally:
        await link.cut()


def _leading_over(link: Link, server: str, kubeconfig: Path, path: Path) -> Path:
    path.touch(mode=0o600)
    path.write_text(kubeconfig.read_text().replace(server, f"https://127.0.0.1:{link.port}"))
    return path
