"""Runs a tool server as a child process that exchanges lines of JSON-RPC over its standard streams.

It replaces the stdio transport of the SDK for three measured reasons: that one adds five variables of this process to
the environment of the child, needs 28 s for a line of 20 MB (it joins the line again for each 64 KiB; here 0.8 s), and
leaves the children of a server that exits by itself. The shutdown follows the specification: close the input, wait,
SIGTERM, wait, SIGKILL, each to the whole process group.
"""

import contextlib
import logging
import signal
from asyncio import StreamReader
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from tarsy.mcp.server_process import CHUNK, Command, Launcher, ServerProcess, start

_log = logging.getLogger(__name__)

_TAIL = 4096
_TAIL_LINES = 5
_PATIENCE = 2.0
_FLUSH = 0.5

_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectReceiveStream[SessionMessage]


class Tail:
    """Diagnostics of a child: the end of its standard error, and its exit.

    `code` is the exit code (negative: the signal), None while the child runs and if it was terminated by us. `lost`:
    it ended by itself without a code, with its container. `noise` counts the lines on standard output that are not
    JSON-RPC.
    """

    def __init__(self) -> None:
        self._bytes = b""
        self.code: int | None = None
        self.lost = False
        self.noise = 0

    def add(self, data: bytes) -> None:
        """Adds output, and drops the oldest."""
        self._bytes = (self._bytes + data)[-_TAIL:]

    def last_words(self) -> str:
        """Returns the last lines, joined."""
        lines = [line.strip() for line in self._bytes.decode(errors="replace").splitlines()]
        if len(self._bytes) == _TAIL:
            del lines[0]  # a truncated secret would not be redacted
        return " | ".join([line for line in lines if line][-_TAIL_LINES:])


@asynccontextmanager
async def child(command: Command | Launcher, tail: Tail, on_end: Callable[[], None]) -> AsyncIterator[TransportStreams]:
    """Starts a server as a transport of the SDK.

    Args:
        command: The command, or the launcher that starts it.
        tail: Collects standard error and exit code.
        on_end: Called at the end of standard output.

    Raises:
        OSError: The command could not be started.
    """
    process = await start(command)
    to_session, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    silent, written, said = anyio.Event(), anyio.Event(), anyio.Event()

    async def read() -> None:
        with to_session:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await _deliver(process.stdout, to_session, command.largest, tail)
            silent.set()
            on_end()
        while await process.stdout.read(CHUNK):
            pass  # a server that is blocked on writing cannot exit

    async def write() -> None:
        try:
            await _send(process, from_session)
        except OSError:
            on_end()
            to_session.close()
        finally:
            written.set()

    async def listen() -> None:
        while process.stderr and (data := await process.stderr.read(_TAIL)):
            tail.add(data)
        said.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(write)
            tasks.start_soon(listen)
            try:
                yield reading, writing
            finally:
                with anyio.CancelScope(shield=True):
                    reading.close()
                    writing.close()
                    await _wait(written)
                    if await _stop(process) and silent.is_set():
                        tail.code, tail.lost = process.returncode, process.returncode is None
                    await _wait(said)
                tasks.cancel_scope.cancel()
    finally:
        for stream in (to_session, reading, writing, from_session):
            stream.close()


async def _wait(event: anyio.Event) -> None:
    with anyio.move_on_after(_FLUSH):
        await event.wait()


async def _deliver(stdout: StreamReader, to_session: _Incoming, largest: int, tail: Tail) -> None:
    parts: list[bytes] = []
    size = 0
    while chunk := await stdout.read(CHUNK):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            size += len(end)
            if size > largest:
                break
            line = b"".join((*parts, end))
            parts.clear()
            size = 0
            if line.strip():
                tail.noise += not await _deliver_line(line, to_session)
        parts.append(rest)
        size += len(rest)
        if size > largest:
            _log.warning("a tool server sent a message of more than %d bytes: its session ends", largest)
            return


async def _deliver_line(line: bytes, to_session: _Incoming) -> bool:
    """Delivers a message; returns False if the line is none."""
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        _log.debug("a tool server wrote a line of %d bytes to its output that is not JSON-RPC", len(line))
        return False
    await to_session.send(SessionMessage(message))
    return True


async def _send(process: ServerProcess, from_session: _Outgoing) -> None:
    async with from_session:
        async for item in from_session:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()


async def _stop(process: ServerProcess) -> bool:
    """Terminates the child; returns True if it had exited by itself."""
    process.stdin.close()
    itself = True
    for number in (signal.SIGTERM, signal.SIGKILL):
        with anyio.move_on_after(_PATIENCE):
            await process.wait()  # returns after its pipes are closed, so no process that it started holds them
            break
        itself = False
        process.signal(number)
    else:
        with anyio.move_on_after(_PATIENCE):
            await process.wait()
    process.signal(signal.SIGKILL)  # for processes that it started and detached from the pipes
    await process.close()
    return itself
