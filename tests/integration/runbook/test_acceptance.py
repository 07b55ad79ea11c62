"""A runbook by URL, from the alert to the record."""

from __future__ import annotations

import base64

import pytest

from integration.controllers.desk import Desk, eventually
from integration.runbook.library import Library, Names
from tarsy.controllers.runs.runbooks import WORKERS, token_reader
from tarsy.kube.credentials import Secrets
from tarsy.runbook.fetch import Fetcher

LABEL = {"tarsy.dev/credentials": "true"}


def fetcher(desk: Desk, seconds: float = 30.0) -> Fetcher:
    return Fetcher(token_reader(Secrets(desk.kube)), look_up=Names(), timeout_seconds=seconds)


async def test_a_runbook_by_url_is_in_the_record_masked(desk: Desk, library: Library) -> None:
    library.put("/crash.md", "# Crash\npassword: hunter2-hunter2\nLook at the logs.")
    await desk.configure()
    hosts = (f"wiki.test:{library.port}",)
    async with desk.controller(runbook_hosts=hosts, runbooks=fetcher(desk)):
        await desk.alert(runbook={"url": library.url("/crash.md")})
        await desk.queued()
    runbook = (await desk.claim()).runbook or ""
    assert runbook.startswith("# Crash") and "Look at the logs." in runbook
    assert "hunter2" not in runbook


async def test_a_token_comes_from_the_secret_that_the_defaults_name(desk: Desk, library: Library) -> None:
    library.put("/crash.md", "text")
    host = f"wiki.test:{library.port}"
    await desk.core("Secret", "wiki", {"data": {"t": base64.b64encode(b"s3cret").decode()}}, labels=LABEL)
    entry = {"host": host, "tokenSecretRef": {"name": "wiki", "key": "t"}}
    await desk.put("InvestigationDefaults", "default", {"runbookHosts": [entry]})
    await desk.configure()
    async with desk.controller(runbook_hosts=(host,), runbooks=fetcher(desk)):
        await desk.alert(runbook={"url": library.url("/crash.md")})
        await desk.queued()
        await desk.reason("InvestigationDefaults", "default", "Ready", "True", "Usable")
    assert library.asked == [("wiki.test", "/crash.md", "Bearer s3cret")]


async def test_a_token_that_is_not_there_makes_the_defaults_not_ready(desk: Desk) -> None:
    entry = {"host": "github.com", "tokenSecretRef": {"name": "wiki", "key": "t"}}
    await desk.put("InvestigationDefaults", "default", {"runbookHosts": [entry]})
    async with desk.controller():
        message = await desk.reason("InvestigationDefaults", "default", "Ready", "False", "SecretMissing")
    assert message.startswith("spec.runbookHosts[0].tokenSecretRef: ")


@pytest.mark.parametrize("default", ["# The default", None])
async def test_a_runbook_that_cannot_be_had_gives_way_to_the_default_and_says_so(
    desk: Desk, default: str | None
) -> None:
    if default:
        await desk.put("InvestigationDefaults", "default", {"runbook": {"inline": default}})
    await desk.configure()
    async with desk.controller():
        await desk.alert(runbook={"url": "https://wiki.example/crash.md?token=s3cret"})
        await desk.queued()
        await desk.told(("Investigation", "RunbookUnavailable"))
    runbook = (await desk.claim()).runbook
    notice = (
        "The runbook at https://wiki.example/crash.md is not available: host wiki.example is not on the list; add it "
        "to spec.runbookHosts of the InvestigationDefaults, or start the operator with --runbook-host."
    )
    assert runbook == (
        f"{notice} The default runbook follows.\n\n{default}" if default else f"{notice} There is no default runbook."
    )


async def test_slow_hosts_delay_only_those_that_name_them(desk: Desk, library: Library) -> None:
    library.silent("/slow.md")
    await desk.configure()
    async with desk.controller(runbook_hosts=(f"wiki.test:{library.port}",), runbooks=fetcher(desk)):
        slow = [f"slow-{number}" for number in range(10)]
        for name in slow:
            await desk.alert(name, runbook={"url": library.url("/slow.md")})

        async def all_are_asked() -> bool:
            return len(library.asked) == WORKERS and len(await desk.investigations()) == len(slow)

        await eventually(all_are_asked)
        await desk.alert("quick", runbook={"inline": "# Quick"})
        await desk.queued("quick")
        assert len(library.asked) == WORKERS


async def test_a_host_that_never_answers_is_given_up_and_the_run_goes_on(desk: Desk, library: Library) -> None:
    library.silent("/slow.md")
    await desk.configure()
    hosts = (f"wiki.test:{library.port}",)
    async with desk.controller(runbook_hosts=hosts, runbooks=fetcher(desk, 0.3)):
        await desk.alert(runbook={"url": library.url("/slow.md")})
        await desk.queued()
    assert "no response within 0.3 seconds" in ((await desk.claim()).runbook or "")
