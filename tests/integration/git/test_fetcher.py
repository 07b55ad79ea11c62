"""Tests that the fetcher runs apart: as a child process, and as a server."""

import asyncio
import ssl
import sys
from pathlib import Path

import pytest

from integration.git.host import GitHost
from tarsy.git.source import GitFile, GitProblem
from tarsy.mcp.connection import Policy
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import HttpTransport, Value
from tarsy.runtime.git_files import FetcherClient, fetcher_plan


async def _plain(value: Value) -> str:
    return value.value or ""


def client(host: GitHost, url: str | None = None) -> FetcherClient:
    policy = Policy(_plain, ssl.create_default_context(), allow_stdio=url is None)
    server = fetcher_plan("tarsy-system", child=url is None)
    if url is not None:
        server = server.model_copy(update={"transport": HttpTransport(url=url)})
    return FetcherClient(policy, server, host.certificate)


async def test_child_process_reads_a_file_and_tells_what_is_wrong(host: GitHost) -> None:
    content = bytes(range(256)) * 4_096
    commit = host.repository({"cases/one.jsonl.gz": content})
    read = client(host)
    assert await read(GitFile(host.url(), commit, "cases/one.jsonl.gz")) == content
    with pytest.raises(GitProblem) as caught:
        await read(GitFile(host.url(), commit, "cases/two.jsonl.gz"))
    assert caught.value.reason == "GitPathMissing"
    assert caught.value.message.startswith("path: cases/two.jsonl.gz does not exist")


@pytest.mark.heavy("a process of its own; the child process is beside it")
async def test_workload_reads_a_file(host: GitHost) -> None:
    commit = host.repository({"one": "x"})
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tarsy.git", "--http", stdout=asyncio.subprocess.PIPE, env={}
    )
    try:
        assert server.stdout is not None
        url = (await asyncio.wait_for(server.stdout.readline(), 60)).decode().strip()
        read = client(host, url)
        assert await read(GitFile(host.url(), commit, "one")) == b"x"
    finally:
        server.terminate()
        await server.wait()
    with pytest.raises(GitProblem) as caught:
        await read(GitFile(host.url(), commit, "one"))
    assert caught.value.reason == "GitUnavailable"
    assert "component `git-fetcher`" in caught.value.message


@pytest.mark.heavy("processes of its own; test_remote has the refusals")
async def test_certificates_that_cannot_be_used_are_told(host: GitHost, tmp_path: Path) -> None:
    commit = host.repository({"one": "x"})
    for content in (b"no certificate", b"\xff"):
        host.certificate = tmp_path / "ca.crt"
        host.certificate.write_bytes(content)
        with pytest.raises(GitProblem) as caught:
            await client(host)(GitFile(host.url(), commit, "one"))
        assert "--git-ca-file" in caught.value.message


def test_operator_in_a_pod_may_call_the_workload_of_its_own_namespace() -> None:
    plan = fetcher_plan("tarsy-system", child=False)
    assert isinstance(plan.transport, HttpTransport)
    assert Destinations(in_pod=True).why_not(plan.transport.url, plan.ref.namespace) is None
    assert plan.transport.url == "http://git-fetcher.tarsy-system.svc:8080/mcp"
