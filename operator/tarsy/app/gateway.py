"""Runs `tarsy mcp-gateway`: serves one stdio tool server over HTTP until a signal arrives.

It is the main process of a tool's own container, so it imports nothing of the operator but the MCP room, and it ends at
the first SIGTERM: sessions end immediately with all their child processes, and clients open others elsewhere.
"""

import asyncio
import logging
import os
import shutil
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from tarsy.app.errors import StartError
from tarsy.app.settings.serving_topics import GatewaySettings
from tarsy.listening.asgi import Gate
from tarsy.mcp.gateway import Gateway, GatewayLimits
from tarsy.mcp.gateway_session import Tool
from tarsy.mcp.server_process import Launcher

_log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """Installs no signal handlers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(command: Sequence[str], settings: GatewaySettings) -> None:
    """Serves a tool server until SIGTERM or SIGINT.

    Args:
        command: the program of the tool server and its arguments; started once per session. Empty with a launcher.
        settings: the address, the token and the limits.

    Raises:
        StartError: the address is in use, the program does not exist, or a variable is not set; there is not exactly
            one of command and launcher.
    """
    limits = GatewayLimits(settings.max_sessions, settings.max_message_mib * 1024 * 1024, settings.idle_seconds)
    gateway = Gateway(_how(command, settings, limits.message_bytes), settings.token_file, limits)
    gate = Gate()
    config = uvicorn.Config(
        gate.wrap(gateway),
        http=gate.protocol,
        ws="none",
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=3,
    )
    server = _Server(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    host, port = settings.host, settings.port
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise StartError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    print(f"http://{host}:{listening.getsockname()[1]}/mcp", flush=True)
    async with gateway.running():
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await gateway.end_sessions()
        finally:
            stopping.cancel()
            server.should_exit = True
            await asyncio.wait({serving, stopping})
    _log.info("the gateway has stopped")


def _how(command: Sequence[str], settings: GatewaySettings, largest: int) -> Tool | Launcher:
    if (settings.launcher is None) == (not command):
        raise StartError("give either a command after --, or the socket of a launcher (--launcher)")
    if settings.launcher is not None:
        return Launcher(settings.launcher, largest)
    return _tool(command, settings.environment, largest)


def _tool(command: Sequence[str], pass_on: Sequence[str], largest: int) -> Tool:
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    for name in pass_on:
        if name not in os.environ:
            raise StartError(f"variable {name} (--env) is not set in this process; set it, or leave it out")
        environment[name] = os.environ[name]
    program, *arguments = command
    found = shutil.which(program, path=environment["PATH"])
    if found is None:
        raise StartError(f"the program {program!r} was not found on PATH; is it in this image?")
    return Tool(str(Path(found).absolute()), arguments, environment, largest)
