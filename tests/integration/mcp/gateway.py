"""Runs a gateway to `small_server.py`: in this process under uvicorn, and as a process, as in a container."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from integration.mcp.servers import SMALL, http
from tarsy.mcp.gateway import Gateway, GatewayLimits
from tarsy.mcp.gateway_session import Tool
from tarsy.plan.model import ServerPlan, Value

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
    folder: Path, *mode: str, limits: GatewayLimits | None = None, env: Mapping[str, str] | None = None
) -> AsyncIterator[Running]:
    """A gateway in this process."""
    limits = limits or GatewayLimits()
    environment = {"PATH": os.environ["PATH"], **(env or {})}
    tool = Tool(sys.executable, ("-S", str(SMALL), *mode), environment, limits.message_bytes)
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
