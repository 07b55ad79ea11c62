"""Runs a gateway to `small_server.py`: in this process under uvicorn, and as a process, as in a container.

Its server is a child, or is started by the launcher as in the container of its own image.
"""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from e2e.waiting import until
from integration.mcp.servers import SMALL, http
from tarsy.mcp.gateway import Gateway, GatewayLimits
from tarsy.mcp.gateway_session import Tool
from tarsy.mcp.server_process import Launcher, connect
from tarsy.plan.model import ServerPlan, Value

ROOT = Path(__file__).parents[3]
TOKEN = "gateway-token-of-the-test"
WAIT = 60.0


@dataclass(frozen=True)
class Running:
    """A gateway that listens."""

    url: str
    token_file: Path

    def server(self, token: str = TOKEN, **rest: Any) -> ServerPlan:
        """How an agent reaches it."""
        header = Value(name="Authorization", value=f"Bearer {token}")
        return http(self.url, name="small", headers=(header,), **rest)


@asynccontextmanager
async def gateway(
    folder: Path,
    *mode: str,
    limits: GatewayLimits | None = None,
    env: Mapping[str, str] | None = None,
    launched: bool = False,
) -> AsyncIterator[Running]:
    """A gateway in this process."""
    limits = limits or GatewayLimits()
    environment = {"PATH": os.environ["PATH"], **(env or {})}
    arguments = ("-S", str(SMALL), *mode)
    async with AsyncExitStack() as stack:
        tool: Tool | Launcher = Tool(sys.executable, arguments, environment, limits.message_bytes)
        if launched:
            path, _ = await stack.enter_async_context(launching(folder, sys.executable, *arguments, env=environment))
            tool = Launcher(path, limits.message_bytes)
        yield await stack.enter_async_context(serving(folder, tool, limits))


@asynccontextmanager
async def serving(folder: Path, tool: Tool | Launcher, limits: GatewayLimits) -> AsyncIterator[Running]:
    """A gateway in this process, to a program or a launcher."""
    application = Gateway(tool, _token(folder), limits)
    config = uvicorn.Config(application, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    async with application.running():
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield Running(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", folder / "token")
        finally:
            await application.end_sessions()
            server.should_exit = True
            await task


def launcher_program() -> Path:
    """The launcher, compiled; the test is skipped where there is no compiler."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler (cc) for tarsy-launcher")
    subprocess.run(["make", "--silent", "launcher"], cwd=ROOT, check=True)
    return ROOT / "build" / "tarsy-launcher"


@asynccontextmanager
async def launching(folder: Path, *command: str, env: Mapping[str, str]) -> AsyncIterator[tuple[Path, Any]]:
    """A launcher as the first process of a container: its socket, when it listens, and the process."""
    path = folder / "launcher.sock"
    process = await asyncio.create_subprocess_exec(
        *(str(launcher_program()), "--socket", str(path), "--", *command), env=env, stderr=asyncio.subprocess.PIPE
    )
    try:
        await until("the launcher listens", lambda: _listens(path, process), WAIT)
        yield path, process
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(WAIT):
            await process.communicate()


async def _listens(path: Path, process: Any) -> bool:
    """Whether it does, or has ended."""
    try:
        (await connect(path)).close()
    except OSError:
        return process.returncode is not None
    return True


@asynccontextmanager
async def gateway_process(folder: Path, *options: str, mode: str = "") -> AsyncIterator[tuple[Running, Any]]:
    """A gateway in a process of its own, and the process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tarsy.cli", "mcp-gateway", "--host", "127.0.0.1", "--port", "0"),
        *("--token-file", str(_token(folder)), *options, "--", sys.executable, "-S", str(SMALL), mode),
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "OF_THE_POD": "x", "TOKEN": "tool-token"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WAIT):
            url = (await process.stdout.readline()).decode().strip()
        assert url, "the gateway did not start"
        yield Running(url, folder / "token"), process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _token(folder: Path) -> Path:
    path = folder / "token"
    path.write_text(TOKEN + "\n")
    return path
