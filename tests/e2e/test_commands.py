"""Runs the commands around the operator: the timeline of a run, and the errors of `tarsy run` about its settings."""

import asyncio
import os
import re
import sys

import pytest

from e2e.forked import TARSY, run_forked
from e2e.tenant import ANSWER, SUMMARY, Tenant

SCRIPT = f"""
agents:
  agent:
    - text: I look.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: {ANSWER}
      gate: answer
"""


async def tarsy(tenant: Tenant, *arguments: str, database_url: str | None = None) -> tuple[int, str]:
    """Runs a `tarsy` command, forked; exit status, and output with errors."""
    environment = {"TARSY_DATABASE_URL": database_url or tenant.machine.postgres.dsn, "COLUMNS": "160"}
    answer = await run_forked(tenant.machine.zygote, TARSY, arguments, environment)
    return answer.status, answer.out + answer.err


async def program(*arguments: str, database_url: str, seconds: float = 180.0) -> tuple[int, str]:
    """Runs a `tarsy` command as a program of its own; exit status, and output with errors."""
    env = {k: os.environ[k] for k in ("PATH", "HOME") if k in os.environ}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tarsy.cli",
        *arguments,
        env={**env, "TARSY_DATABASE_URL": database_url, "COLUMNS": "160"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output.decode()


async def test_timeline_follows_a_run_to_its_end(tenant: Tenant) -> None:
    model = await tenant.simple(SCRIPT)
    await tenant.investigate()
    await tenant.asked(2)
    status, so_far = await tarsy(tenant, "timeline", "inv/run", "-n", tenant.namespace)
    assert status == 0, so_far
    assert "look saw df" in so_far
    assert SUMMARY not in so_far
    following = asyncio.create_task(tarsy(tenant, "timeline", "run", "-n", tenant.namespace, "-f"))
    await asyncio.sleep(0)
    model.open_gate("answer")
    status, to_the_end = await following
    assert status == 0, to_the_end
    assert to_the_end.count("look saw df") == 1
    assert f"Finding (Low): {SUMMARY}" in to_the_end


async def test_timeline_of_a_run_that_does_not_exist_says_where_to_look(tenant: Tenant) -> None:
    url = tenant.machine.postgres.dsn
    status, output = await program("timeline", "inv/none", "-n", tenant.namespace, database_url=url)
    assert status == 1
    assert f"no investigation {tenant.namespace}/none" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("change", "words"),
    [(lambda url: re.sub(r":[^:@/]+@", ":wrong-password@", url), "refuses the connection"), (lambda _: "nonsense", "")],
    ids=["wrong-password", "no-address"],
)
async def test_operator_with_an_unusable_database_ends_with_a_sentence(tenant: Tenant, change, words: str) -> None:  # type: ignore[no-untyped-def]
    url = change(tenant.machine.postgres.dsn)
    kubeconfig = ("--kubeconfig", str(tenant.machine.api.kubeconfig))
    status, output = await tarsy(tenant, "run", *kubeconfig, "--health-port", "0", database_url=url)
    assert status == 1, output
    assert words in output
    assert "Traceback" not in output
    assert "wrong-password" not in output


async def test_operator_without_a_kubeconfig_ends_with_a_sentence(tenant: Tenant) -> None:
    missing = str(tenant.folder / "missing")
    url = tenant.machine.postgres.dsn
    status, output = await program("run", "--kubeconfig", missing, "--health-port", "0", database_url=url)
    assert status == 1, output
    assert missing in output
    assert "Traceback" not in output
