"""Starts processes of stdio tool servers: as a child, or in the container of their own image by `tarsy-launcher`.

Decision: the launcher gets the ends of two pipes (SCM_RIGHTS), so that messages flow between server and gateway without
another program that reads them. Its protocol is described in operator/launcher/launcher.c. The standard error of such a
server is the log of its own container; it does not pass through this process, which knows none of its secrets.
"""

import asyncio
import contextlib
import errno
import os
import signal
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio

CHUNK = 1024 * 1024
_LINE = 256
_CONNECT_SECONDS = 5.0
_START_SECONDS = 30.0
_START, _TERMINATE, _KILL = b"S", b"T", b"K"


@dataclass(frozen=True, slots=True)
class Command:
    """A command to start as a child.

    Args:
        path: Absolute path of the program.
        args: Arguments.
        environment: The complete environment.
        directory: Working directory.
        largest: Maximum size of a message from it in bytes.
    """

    path: str
    args: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    largest: int


@dataclass(frozen=True, slots=True)
class Launcher:
    """A launcher that starts a process of the server in another container.

    Args:
        socket: Path of its Unix socket.
        largest: Maximum size of a message from the server in bytes.
    """

    socket: Path
    largest: int


class ServerProcess(Protocol):
    """A running server: its streams, its end, and signals to its process group."""

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Its standard input."""
        ...

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Its standard output."""
        ...

    @property
    def stderr(self) -> asyncio.StreamReader | None:
        """Its standard error; None if it goes elsewhere."""
        ...

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs, and if it is unknown."""
        ...

    async def wait(self) -> object:
        """Waits for its end."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Sends SIGTERM or SIGKILL to its process group, if it exists."""
        ...

    async def close(self) -> None:
        """Releases what this process holds of it, whether it has ended or not."""
        ...


async def start(how: Command | Launcher) -> ServerProcess:
    """Starts a server.

    Args:
        how: The command, or the launcher that knows it.

    Raises:
        OSError: It could not be started, or the launcher does not answer.
    """
    with anyio.CancelScope(shield=True):  # a cancellation during the start would lose the process
        process = await (_spawn(how) if isinstance(how, Command) else _launch(how.socket))
    return process


class _Child:
    """A child of this process, in a session of its own."""

    def __init__(self, process: Process) -> None:
        assert process.stdin and process.stdout
        self._process = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> object:
        return await self._process.wait()

    async def close(self) -> None:
        """Does nothing: its pipes are closed with it."""

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


async def _spawn(command: Command) -> _Child:
    process = await asyncio.create_subprocess_exec(
        command.path,
        *command.args,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=command.environment,
        cwd=command.directory,
        start_new_session=True,
        limit=CHUNK,
    )
    return _Child(process)


class _Launched:
    """A process that the launcher started, and the connection that it ends with."""

    stderr = None

    def __init__(
        self,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        output: asyncio.ReadTransport,
        control: socket.socket,
        said: bytes,
    ) -> None:
        self.stdin, self.stdout, self._output = stdin, stdout, output
        self._control = control
        self._end = asyncio.create_task(self._ended(said), name="end of a launched tool server")
        self.returncode: int | None = None

    async def wait(self) -> object:
        return await asyncio.shield(self._end)

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError):  # of a connection that has ended
            self._control.send(_TERMINATE if number is signal.SIGTERM else _KILL)

    async def close(self) -> None:
        self._end.cancel()
        await asyncio.wait({self._end})
        self._control.close()
        self.stdin.close()
        self._output.close()

    async def _ended(self, said: bytes) -> None:
        """Reads how the process ended; a launcher that says nothing has ended itself."""
        with contextlib.suppress(OSError):
            how, _, number = (await _line(self._control, said))[0].partition(" ")
            if how in ("exited", "killed") and number.isdecimal():
                self.returncode = int(number) if how == "exited" else -int(number)


async def _line(control: socket.socket, said: bytes = b"") -> tuple[str, bytes]:
    """Reads a line of a launcher; returns it, and what follows. An empty line: the connection has ended."""
    loop = asyncio.get_running_loop()
    while b"\n" not in said and len(said) < _LINE and (part := await loop.sock_recv(control, _LINE)):
        said += part
    line, _, rest = said.partition(b"\n")
    return line.decode(errors="replace"), rest


async def connect(path: Path) -> socket.socket:
    """Connects to a launcher.

    Raises:
        OSError: Nobody listens there: the server's container does not run.
    """
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        control.setblocking(False)
        async with asyncio.timeout(_CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(control, str(path))
    except BaseException:
        control.close()
        raise
    return control


async def _launch(path: Path) -> _Launched:
    loop = asyncio.get_running_loop()
    control = await connect(path)
    with contextlib.ExitStack() as undo:
        undo.callback(control.close)
        for_server_in, ours_in = os.pipe()
        ours_out, for_server_out = os.pipe()
        written, read = (
            undo.enter_context(os.fdopen(ours_in, "wb", 0)),
            undo.enter_context(os.fdopen(ours_out, "rb", 0)),
        )
        try:
            socket.send_fds(control, [_START], [for_server_in, for_server_out])
        finally:
            os.close(for_server_in)
            os.close(for_server_out)
        async with asyncio.timeout(_START_SECONDS):
            answer, rest = await _line(control)
        if answer != "started":
            raise OSError(errno.ENOEXEC, answer.removeprefix("failed ") or "its container has ended")
        stdout = asyncio.StreamReader(limit=CHUNK)
        output, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), read)
        ignored = asyncio.StreamReader()
        transport, protocol = await loop.connect_write_pipe(lambda: asyncio.StreamReaderProtocol(ignored), written)
        undo.pop_all()
    stdin = asyncio.StreamWriter(transport, protocol, None, loop)
    return _Launched(stdin, stdout, output, control, rest)
