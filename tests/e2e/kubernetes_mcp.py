"""The npm package `kubernetes-mcp-server` (`tarsy_dev.kubernetes_mcp` gets it), run as tests need it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from programs import end
from tarsy_dev.apiserver.process import free_port
from tarsy_dev.kubernetes_mcp import VERSION, NotToBeHad, program

__all__ = ["VERSION", "NotToBeHad", "arguments", "program", "serving"]

_START_SECONDS = 20.0


def arguments(kubeconfig: Path) -> Sequence[str]:
    """Reads what is in a cluster and changes nothing; not its own configuration, which has credentials in clear."""
    return ("--kubeconfig", str(kubeconfig), "--read-only", "--toolsets", "core", "--disable-multi-cluster")


@contextlib.asynccontextmanager
async def serving(kubeconfig: Path, folder: Path) -> AsyncIterator[str]:
    """Runs it by HTTP on loopback; its address, without a path."""
    port = free_port()
    log = folder / "kubernetes-mcp-server.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            str(program()),
            *arguments(kubeconfig),
            *("--port", str(port), "--bind-address", "127.0.0.1"),
            env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
            stdout=output,
            stderr=output,
        )
    try:
        async with asyncio.timeout(_START_SECONDS):
            while not await _listens(port):
                assert process.returncode is None, log.read_text(errors="replace")[-1000:]
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        await end(process, 5)


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
