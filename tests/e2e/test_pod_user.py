"""Operator, worker, tools and gateway as a user that OpenShift assigns, in a file system that is read only."""

import contextlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from as_in_pods import ASSIGNED, ENVIRONMENT, in_pod, python_for, status_of, why_not
from e2e.machine import LONG_LEASE
from e2e.tenant import SUMMARY, Tenant, answer
from e2e.waiting import until
from tarsy_dev.apiserver.process import Spawner, end, free_port
from tarsy_dev.record_api import http_arguments

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.once("the API takes no part in what is shown"),
    pytest.mark.heavy("starts four programs; integration/local/test_ordinary_user starts the tools alone"),
]
SCRIPT = f"""
agents:
  agent:
    - text: I look.
      calls: [{{name: tools.list_resources, arguments: {{kind: Namespace}}}}]
    - text: {answer("Low")}
"""
STDIO_SERVER = """
import os
from mcp.server import MCPServer
server = MCPServer("who")
@server.tool()
def who() -> str:
    return f"{os.getuid()} {os.getgid()}"
server.run("stdio")
"""
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def python() -> str:
    """A Python of this version that the user may run."""
    found = python_for(ASSIGNED)
    if found is None:
        pytest.skip("no Python and checkout that another user can read")
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of root that the user can read, with the emptyDir of the pods."""
    with tempfile.TemporaryDirectory(prefix="tarsy-pods-") as name:
        found = Path(name)
        found.chmod(0o755)
        (found / "tmp").mkdir()
        yield found


@pytest.fixture
def start(folder: Path, python: str) -> Iterator[Start]:
    """Starts a program as in a pod."""
    spawner, started = Spawner(), []

    def program(name: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        # As the image has it, but for HOME, which is no folder here.
        variables = {**ENVIRONMENT, "HOME": "/nonexistent", "TMPDIR": str(folder / "tmp"), "LOGNAME": "tarsy"}
        command = in_pod([python, "-m", *arguments], ASSIGNED, folder / "tmp")
        process = spawner.spawn(command, folder / f"{name}.log", {**variables, **environment})
        started.append(process)
        return process

    yield program
    for process in started:
        end(process, 10.0)
    spawner.close()


def kubeconfig_of(tenant: Tenant, folder: Path) -> str:
    """A kubeconfig that the user can read, as the token in a pod."""
    path = folder / "kubeconfig"
    path.write_text(tenant.machine.api.kubeconfig.read_text())
    path.chmod(0o444)
    return str(path)


def logs_of(folder: Path) -> str:
    """What the programs have said."""
    return "".join(path.read_text() for path in folder.glob("*.log"))


async def is_ready(port: int) -> bool:
    """Whether a process says that it is ready."""
    with contextlib.suppress(aiohttp.ClientError):
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/readyz") as found:
            return found.status == 200
    return False


def assert_confined(process: subprocess.Popen[bytes], folder: Path) -> None:
    """It is the user, in no other group, without capabilities, and can write its emptyDir only."""
    status = status_of(process.pid)
    assert set(status["Uid"].split()) == {str(ASSIGNED.uid)} and set(status["Gid"].split()) == {"0"}
    assert set(status["Groups"].split()) <= {"0"}
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh")} == {0}
    assert status["NoNewPrivs"] == "1"
    mounts = [line.split() for line in Path(f"/proc/{process.pid}/mounts").read_text().splitlines()]
    options = {where: set(how.split(",")) for _, where, _, how, *_ in mounts}
    assert "ro" in options["/"] and "rw" in options[str(folder / "tmp")]


async def test_an_investigation_runs_by_an_operator_a_worker_and_tools_of_an_assigned_user(
    bare_tenant: Tenant, start: Start, folder: Path
) -> None:
    tenant, machine = bare_tenant, bare_tenant.machine
    await machine.stop_operator()
    await machine.lapse_of_all()
    kubeconfig = kubeconfig_of(tenant, folder)
    health, worker_health, tool_port = free_port(), free_port(), free_port()
    local = ["--kubeconfig", kubeconfig, "--url-host=127.0.0.0/8", "--drain-seconds", "0", *LONG_LEASE]
    database = {"TARSY_DATABASE_URL": machine.postgres.dsn}
    doors = http_arguments(machine.http_port, machine.record_port)
    of_operator = [*local, *doors, "--health-port", str(health), "--places", "0"]
    processes = [
        start("operator", "tarsy.cli", "run", *of_operator, **database),
        start(
            "worker", "tarsy.cli", "worker", *local, "--health-port", str(worker_health), "--processes", "1", **database
        ),
        start("tools", "tarsy.kubernetes_tools", "--http", "--port", str(tool_port), KUBECONFIG=kubeconfig),
    ]

    async def all_ready() -> bool:
        ended = [process.args for process in processes if process.poll() is not None]
        assert not ended, logs_of(folder)
        return await is_ready(health) and await is_ready(worker_health)

    await until("operator and worker are ready", all_ready, 120)
    await tenant.use_model(SCRIPT)
    http = {"type": "http", "http": {"url": f"http://127.0.0.1:{tool_port}/mcp"}}
    await tenant.put("MCPServer", "tools", {"transport": http, "toolPolicy": "All"})
    await tenant.use_agent("agent", "tools")
    await tenant.use_chain(["agent"])
    await tenant.investigate()
    inv = await tenant.finished()
    assert inv["status"]["phase"] == "Succeeded" and SUMMARY in inv["status"]["finding"]["summary"]
    assert inv["status"]["usage"]["toolCalls"] == 1
    for process in processes:
        assert_confined(process, folder)
    assert "Traceback" not in logs_of(folder)


async def test_the_gateway_starts_the_server_of_a_pod_as_an_assigned_user(
    start: Start, folder: Path, python: str
) -> None:
    (folder / "token").write_text("sesame")
    (folder / "server.py").write_text(STDIO_SERVER)
    port = free_port()
    options = ["--host", "127.0.0.1", "--port", str(port), "--token-file", str(folder / "token"), "--env", "PYTHONPATH"]
    process = start("gateway", "tarsy.cli", "mcp-gateway", *options, "--", python, str(folder / "server.py"))

    async def is_served() -> bool:
        assert process.poll() is None, logs_of(folder)
        with contextlib.suppress(aiohttp.ClientError):
            async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/healthz") as found:
                return found.status == 200
        return False

    await until("the gateway listens", is_served, 60)
    assert_confined(process, folder)
    assert await asked(f"http://127.0.0.1:{port}/mcp") == f"{ASSIGNED.uid} {ASSIGNED.gid}"


async def asked(url: str) -> str:
    """What the tool says."""
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer sesame"}) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            result = await client.call_tool("who", {})
    return str(result.content[0].text)  # type: ignore[union-attr]
