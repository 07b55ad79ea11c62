"""Implements `tarsy demo`: investigates one sample alert and shows it live."""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from rich.console import Console

from tarsy.cli.console import new_console
from tarsy.cli.runs.database_timeline import follow_timeline
from tarsy.http.web_ui import is_built
from tarsy.kube.client import ApiError, KubeClient
from tarsy.record.run import InvestigationRecord, State
from tarsy.store.database import open_pool
from tarsy.store.reading.reads import Reads
from tarsy_dev.develop import STARTING, configured_model, prepare
from tarsy_dev.kubectl import run_kubectl
from tarsy_dev.objects import put
from tarsy_dev.sample import ALERTS, SHOP, Scenario, sample_alert
from tarsy_dev.serving import until_serving
from tarsy_dev.sign_in_link import SignInLink, make_link
from tarsy_dev.stack import ApiChoice, Stack, running_stack

ACCEPT_SECONDS = 60.0
PROJECTED_SECONDS = 30.0


async def demonstrate(
    keep: Path | None, model: str | None, base_url: str | None, api: ApiChoice, scenario: Scenario = "crash-loop"
) -> int:
    """Runs the demo; returns exit status 0 only if the investigation succeeded.

    Args:
        keep: folder for objects and record; None deletes them at the end.
        model: name of a real model.
        base_url: URL of an OpenAI-compatible server.
        api: which Kubernetes API to use.
        scenario: what is investigated.
    """
    console = new_console(markup=False)
    began = time.monotonic()
    async with contextlib.AsyncExitStack() as house:
        if not console.is_terminal:
            console.print(STARTING)
        with console.status(STARTING):
            stack = await house.enter_async_context(running_stack(keep, api=api))
            which = await prepare(stack, configured_model(model, base_url), scenario)
            link = await make_link(stack)
            await house.enter_async_context(operated(stack, link))
            await until_serving(stack)
        person = await house.enter_async_context(await KubeClient.load(stack.person_kubeconfig))
        record = await _investigate(console, stack, person, which, began, link, scenario)
        await show(console, stack, record)
        await stay_open(console)
    return 0 if record.state is State.COMPLETED else 1


@contextlib.asynccontextmanager
async def operated(stack: Stack, link: SignInLink) -> AsyncIterator[None]:
    """Runs an operator, and restarts it when it exits."""
    operator = stack.operator(**link.environment)
    keeper = asyncio.create_task(operator.keep_running())
    try:
        yield
    finally:
        keeper.cancel()
        await asyncio.wait([keeper])
        await operator.stop()


async def stay_open(console: Console) -> None:
    """Keeps the web UI open until Ctrl-C, if it is built and somebody is at a terminal."""
    if not is_built():
        return
    if not (sys.stdin.isatty() and console.is_terminal):
        console.print("\nThe demo has ended, and the web UI with it. `tarsy dev` (`make dev`) keeps it running.")
        return
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    console.print("\nThe web UI stays open until Ctrl-C.")
    await stop.wait()


async def _investigate(
    console: Console,
    stack: Stack,
    person: KubeClient,
    which: str,
    began: float,
    link: SignInLink,
    scenario: Scenario,
) -> InvestigationRecord:
    alert = await sample_alert(person, scenario)
    name = alert["metadata"]["name"]
    await put(person, alert)
    console.print(f"{stack.api_sentence}; {which}.")
    console.print(f"HTTP API: {stack.http_url}/api/v1 (bearer tokens)", soft_wrap=True)
    console.print(f"\n$ kubectl apply -n {SHOP} -f manifests/{ALERTS[scenario]}", style="bold", soft_wrap=True)
    console.print(
        f"alert.tarsy.dev/{name} created  (by {stack.person}, {time.monotonic() - began:.1f} s after the start)\n"
    )
    return await follow_alert(console, stack, link, name)


async def follow_alert(console: Console, stack: Stack, link: SignInLink, alert: str) -> InvestigationRecord:
    """Prints the timeline of an alert's investigation until it ends, and returns its record."""
    pool = await open_pool(stack.database_url, max_size=2, application="tarsy demo")
    try:
        run = await _accepted(stack, alert)
        reads = Reads(pool)
        if (record := await reads.record(run)) is not None:
            console.print(f"{link.sentence(f'/investigations/{SHOP}/{record.name}')}\n", soft_wrap=True)
        return await follow_timeline(console, reads, stack.database_url, run)
    finally:
        await pool.close()


async def _accepted(stack: Stack, alert: str) -> UUID:
    """Waits for the alert's investigation to be in the record."""
    last: dict[str, Any] = {}
    try:
        async with asyncio.timeout(ACCEPT_SECONDS):
            while True:
                for inv in await stack.client.list("Investigation", SHOP):
                    if inv["spec"].get("alertRef", {}).get("name") == alert:
                        last = inv
                if (last.get("status") or {}).get("record"):
                    return UUID(last["metadata"]["uid"])
                await asyncio.sleep(0.05)
    except TimeoutError:
        log = stack.operator_log.read_text(errors="replace")[-2000:]
        text = f"the alert was not accepted within {ACCEPT_SECONDS:g} s; the operator's log ends:\n{log}"
        raise ApiError(0, "Timeout", text) from None


async def show(console: Console, stack: Stack, record: InvestigationRecord) -> None:
    """Prints what kubectl shows, after the status has caught up with the record."""
    until = datetime.now(UTC).timestamp() + PROJECTED_SECONDS
    while datetime.now(UTC).timestamp() < until:
        inv = await stack.client.get("Investigation", SHOP, record.name)
        alerts = await stack.client.list("Alert", SHOP)
        settled = all((a.get("status") or {}).get("phase") == "Finished" for a in alerts)
        if (inv.get("status") or {}).get("recordRevision", 0) >= record.revision and settled:
            break
        await asyncio.sleep(0.1)
    for arguments in (["get", "talert,inv", "-n", SHOP], ["describe", "inv", "-n", SHOP, record.name]):
        console.print(f"\n$ kubectl {' '.join(arguments)}", style="bold", soft_wrap=True)
        console.print(await run_kubectl(stack, arguments), soft_wrap=True)
