"""Runs the tool servers as their pods do: as a user without a name, a home directory and a writable folder."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from mcp.client import Client

from as_in_pods import ASSIGNED, ENVIRONMENT, SHIPPED, PodUser, python_for, status_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become someone else")
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


@pytest.fixture(scope="module", params=[SHIPPED, ASSIGNED], ids=["shipped", "assigned-by-openshift"])
def user(request: pytest.FixtureRequest) -> PodUser:
    """Who the server runs as."""
    found: PodUser = request.param
    return found


@pytest.fixture(scope="module")
def python(user: PodUser) -> str:
    """A Python of this version that the user may run."""
    found = python_for(user)
    if found is None:
        pytest.skip("no Python and checkout that another user can read")
    return found


def users_of(pid: int) -> tuple[set[str], set[str]]:
    """All users, and all groups, that a process is."""
    status = status_of(pid)
    return set(status["Uid"].split()), {*status["Gid"].split(), *status["Groups"].split()}


@pytest.mark.parametrize(
    "module",
    [
        pytest.param("tarsy.kubernetes_tools", marks=pytest.mark.heavy("the other server is beside it")),
        *(module for module in CALLS if module != "tarsy.kubernetes_tools"),
    ],
)
async def test_a_tool_server_runs_as_the_user_of_its_pod(
    module: str, api: str, kubeconfig: Path, python: str, user: PodUser
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(python, "-m", module, "--http"),
        cwd="/",
        env={**ENVIRONMENT, "KUBECONFIG": str(kubeconfig), "PROMETHEUS_URL": api},
        stdout=asyncio.subprocess.PIPE,
        user=user.uid,
        group=user.gid,
        extra_groups=(),
    )
    try:
        assert process.stdout is not None
        url = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
        assert users_of(process.pid) == ({str(user.uid)}, {str(user.gid)})
        tool, arguments = CALLS[module]
        async with Client(url) as client:
            result = await client.call_tool(tool, arguments)
        assert not result.is_error and "checkout-1" in str(result.content), result
        assert process.returncode is None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), 60)
