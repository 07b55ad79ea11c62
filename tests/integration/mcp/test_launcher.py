"""Tests `tarsy-launcher`: a stdio server in the container of its own image, behind the gateway in the one beside it."""

import asyncio
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from e2e.waiting import until
from integration.mcp.gateway import TOKEN, WAIT, gateway, launcher_program, launching, serving
from integration.mcp.servers import SDK_SERVER, SMALL, resolve
from integration.mcp.test_gateway import call, gone, of_process
from tarsy.mcp.gateway import GatewayLimits
from tarsy.mcp.server_process import Launcher, start
from tarsy.mcp.stdio_transport import Tail, child
from tarsy.mcp.toolbox import McpToolboxes

PT_INTERP = 3
ENVIRONMENT = {"PATH": os.environ["PATH"]}
LARGEST = 2**20
pytestmark = pytest.mark.once("no Kubernetes API takes part")


@pytest.fixture
def toolboxes() -> McpToolboxes:
    return McpToolboxes(resolve, mask=str)


async def removed(homes: set[str]) -> bool:
    return not any(map(os.path.exists, homes))


def test_the_program_needs_no_loader_and_no_library_of_an_image() -> None:
    image = launcher_program().read_bytes()
    (offset,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    kinds = [struct.unpack_from("<I", image, offset + size * number)[0] for number in range(count)]
    assert kinds and PT_INTERP not in kinds


def test_an_init_container_gets_a_copy_that_anybody_may_run_and_nobody_change(tmp_path: Path) -> None:
    for _ in range(2):  # an init container may run again
        subprocess.run([launcher_program(), "--install", tmp_path], check=True)
    (copy,) = tmp_path.iterdir()
    assert copy.name == "tarsy-launcher" and copy.read_bytes() == launcher_program().read_bytes()
    assert copy.stat().st_mode & 0o777 == 0o555


async def test_a_real_server_of_the_sdk_answers_a_real_client_of_the_sdk(tmp_path: Path) -> None:
    limits = GatewayLimits()
    async with launching(tmp_path, sys.executable, str(SDK_SERVER), env=ENVIRONMENT) as (path, _):
        async with serving(tmp_path, Launcher(path, limits.message_bytes), limits) as running:
            http = httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=WAIT)
            async with (
                http,
                asyncio.timeout(WAIT),
                Client(streamable_http_client(running.url, http_client=http)) as client,
            ):
                found = await client.list_tools()
                assert len(found.tools) > 3


async def test_how_a_server_ended_is_told_to_its_caller(tmp_path: Path, toolboxes: McpToolboxes) -> None:
    async with gateway(tmp_path, launched=True) as running, toolboxes.open([running.server()]) as box:
        assert "the tool server has ended: it exited with code 3" in (await call(box, "die")).content
        pid = int((await call(box, "pid")).content)
        waiting = asyncio.create_task(call(box, "wait", '{"n": 600}'))
        await asyncio.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        assert "it was terminated by signal SIGKILL" in (await waiting).content


async def test_a_container_that_ends_with_its_server_is_told_and_the_next_call_finds_the_new_one(
    tmp_path: Path, toolboxes: McpToolboxes
) -> None:
    async with gateway(tmp_path, launched=True) as running, toolboxes.open([running.server()]) as box:
        pid = int((await call(box, "pid")).content)
        supervisor = int(of_process(pid, "stat").rpartition(")")[2].split()[1])
        waiting = asyncio.create_task(call(box, "wait", '{"n": 600}'))
        await asyncio.sleep(0.2)
        os.kill(supervisor, signal.SIGKILL)
        assert "the tool server has ended: its container has ended" in (await waiting).content
        assert await gone(pid)
        assert (await call(box, "echo", '{"text": "again"}')).content == "again"


async def test_a_gateway_is_ready_while_the_servers_container_runs(tmp_path: Path, toolboxes: McpToolboxes) -> None:
    limits, path = GatewayLimits(), tmp_path / "launcher.sock"
    command = (sys.executable, "-S", str(SMALL))
    async with serving(tmp_path, Launcher(path, limits.message_bytes), limits) as running, httpx2.AsyncClient() as http:
        base = running.url.removesuffix("/mcp")
        for _ in range(2):  # a container that is restarted
            assert (await http.get(f"{base}/readyz")).status_code == 503
            assert (await http.get(f"{base}/healthz")).status_code == 200
            async with toolboxes.open([running.server()]) as box:
                assert "it could not be started" in box.unavailable["small"]
            async with launching(tmp_path, *command, env=ENVIRONMENT):
                assert (await http.get(f"{base}/readyz")).status_code == 200
                async with toolboxes.open([running.server()]) as box:
                    assert (await call(box, "echo", '{"text": "here"}')).content == "here"


async def test_a_server_has_the_variables_of_its_container_and_a_home_of_its_own_that_goes_with_it(
    tmp_path: Path,
) -> None:
    script = (
        "import json, os, sys; print(json.dumps(dict(os.environ)), flush=True); "
        "open(os.environ['HOME'] + '/file', 'w'); sys.stdin.read()"
    )
    async with launching(tmp_path, sys.executable, "-c", script, env={**ENVIRONMENT, "KEY": "k"}) as (path, _):
        servers = [await start(Launcher(path, LARGEST)) for _ in range(2)]
        async with asyncio.timeout(WAIT):
            said = [json.loads(await one.stdout.readline()) for one in servers]
            homes = {one["HOME"] for one in said}
            assert len(homes) == 2 and all(one["KEY"] == "k" for one in said)
            for one in servers:
                one.stdin.close()
                await one.wait()
                assert one.returncode == 0
                await one.close()
        await until("the folders are gone", lambda: removed(homes), WAIT)


async def test_a_gateway_that_hangs_up_takes_its_servers_with_it(tmp_path: Path) -> None:
    script = "import os, signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True); "
    async with launching(tmp_path, sys.executable, "-c", script + "signal.pause()", env=ENVIRONMENT) as (path, _):
        server = await start(Launcher(path, LARGEST))
        pid = int(await server.stdout.readline())
        await server.close()
        assert await gone(pid)


async def test_a_container_that_is_stopped_ends_its_servers_and_itself(tmp_path: Path) -> None:
    script = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
    async with launching(tmp_path, sys.executable, "-c", script, env=ENVIRONMENT) as (path, process):
        server = await start(Launcher(path, LARGEST))
        pid = int(await server.stdout.readline())
        process.terminate()
        async with asyncio.timeout(WAIT):
            assert await process.wait() == 0
            await server.wait()
        assert server.returncode == -signal.SIGTERM and await gone(pid)
        await server.close()


async def test_a_program_that_is_not_there_ends_the_container_with_a_sentence(tmp_path: Path) -> None:
    async with launching(tmp_path, "no-such-program", env=ENVIRONMENT) as (_, process):
        said = (await process.stderr.read()).decode()
        assert await process.wait() == 127
    assert said == (
        "tarsy-launcher: the program 'no-such-program' was not found; is it in this image, and on its PATH?\n"
    )


async def test_a_program_that_the_system_cannot_start_is_told_to_the_caller(
    tmp_path: Path, toolboxes: McpToolboxes
) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    limits = GatewayLimits()
    async with launching(tmp_path, str(script), env=ENVIRONMENT) as (path, _):
        async with serving(tmp_path, Launcher(path, limits.message_bytes), limits) as running:
            async with toolboxes.open([running.server()]) as box:
                assert "cannot be started: No such file or directory" in box.unavailable["small"]


@pytest.mark.parametrize(("size", "passes"), [(LARGEST - 1, True), (LARGEST, True), (LARGEST + 1, False)])
async def test_a_message_of_a_server_up_to_the_limit_passes(size: int, passes: bool, tmp_path: Path) -> None:
    script = (
        'import sys; n, head = int(sys.argv[1]), \'{"jsonrpc":"2.0","method":"\'; '
        "print(head + 'x' * (n - len(head) - 2) + '\"}', flush=True); sys.stdin.read()"
    )
    async with launching(tmp_path, sys.executable, "-c", script, str(size), env=ENVIRONMENT) as (path, _):
        async with asyncio.timeout(WAIT), child(Launcher(path, LARGEST), Tail(), lambda: None) as (reading, _):
            if passes:
                assert isinstance(await reading.receive(), SessionMessage)
            else:
                with pytest.raises(anyio.EndOfStream):
                    await reading.receive()
