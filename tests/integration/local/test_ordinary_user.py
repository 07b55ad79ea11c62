"""Runs the tool servers as their pods do: as a user without a name, a home directory and a writable folder."""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import mcp
import pytest
import yaml
from aiohttp import web
from mcp.client import Client

import tarsy

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become someone else")
UID = 65532
"""The user of the shipped pods."""
ACCOUNT: dict[str, Any] = {"user": UID, "group": UID, "extra_groups": ()}
PATHS = os.pathsep.join(str(Path(str(module.__file__)).parents[1]) for module in (tarsy, mcp))
ENVIRONMENT = {"PYTHONPATH": PATHS, "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
POD = {"kind": "Pod", "metadata": {"name": "checkout-1", "namespace": "shop"}, "spec": {}, "status": {}}
SERIES = {"resultType": "vector", "result": [{"metric": {"__name__": "up", "job": "checkout-1"}, "value": [0, "1"]}]}
CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "tarsy.kubernetes_tools": ("list_resources", {"kind": "Pod", "namespace": "shop"}),
    "tarsy.prometheus_tools": ("query", {"query": "up"}),
}


@pytest.fixture
async def api() -> AsyncIterator[str]:
    """The URL of one pod, and of one series."""

    async def pods(_: web.Request) -> web.Response:
        return web.json_response({"kind": "List", "metadata": {}, "items": [POD]})

    async def query(_: web.Request) -> web.Response:
        return web.json_response({"status": "success", "data": SERIES})

    app = web.Application()
    app.router.add_get("/api/v1/namespaces/shop/pods", pods)
    app.router.add_route("*", "/api/v1/query", query)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
def kubeconfig(api: str) -> Iterator[Path]:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": api}}],
        "users": [{"name": "u", "user": {"token": "sesame"}}],
    }
    with tempfile.TemporaryDirectory(prefix="tarsy-ordinary-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # of root: the user reads, and writes nothing
        (folder / "config").write_text(yaml.safe_dump(config))
        yield folder / "config"


@pytest.fixture(scope="module")
def python() -> str:
    """A Python of this version that the user may run."""
    for program in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        with contextlib.suppress(OSError):
            probe = [program, "-c", "import tarsy, mcp"]
            if not subprocess.run(probe, cwd="/", env=ENVIRONMENT, stderr=subprocess.DEVNULL, **ACCOUNT).returncode:
                return program
    pytest.skip("no Python and checkout that another user can read")


def users_of(pid: int) -> set[str]:
    """All users and groups that a process is."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {word for line in lines if line.startswith(("Uid:", "Gid:")) for word in line.split()[1:]}


@pytest.mark.parametrize("module", CALLS)
async def test_a_tool_server_runs_as_the_user_of_its_pod(module: str, api: str, kubeconfig: Path, python: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(python, "-m", module, "--http"),
        cwd="/",
        env={**ENVIRONMENT, "KUBECONFIG": str(kubeconfig), "PROMETHEUS_URL": api},
        stdout=asyncio.subprocess.PIPE,
        **ACCOUNT,
    )
    try:
        assert process.stdout is not None
        url = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
        assert users_of(process.pid) == {str(UID)}
        tool, arguments = CALLS[module]
        async with Client(url) as client:
            result = await client.call_tool(tool, arguments)
        assert not result.is_error and "checkout-1" in str(result.content), result
        assert process.returncode is None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), 60)
