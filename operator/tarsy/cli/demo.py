"""`tarsy demo`: one alert through every room of the house, watched live."""

import asyncio
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from rich.console import Console

from tarsy.cli.dev import configured_model, prepare
from tarsy.cli.kubectl import run_kubectl
from tarsy.cli.page import Link, is_open, make_link
from tarsy.cli.timeline import follow_timeline
from tarsy.http.page_files import is_built
from tarsy.kube.client import ApiError
from tarsy.local.objects import manifest, put, put_all
from tarsy.local.stack import ApiChoice, Stack, running_stack
from tarsy.record.run import InvestigationRecord, State
from tarsy.store.database import open_pool
from tarsy.store.reads import Reads

NAMESPACE = "shop"
ACCEPT_SECONDS = 60.0
PROJECTED_SECONDS = 30.0


async def demonstrate(keep: Path | None, model: str | None, base_url: str | None, api: ApiChoice) -> int:
    """Runs the demo; exit status 0 only when the investigation succeeded."""
    console = Console()
    began = time.monotonic()
    with console.status("Starting a Kubernetes API, Postgres and the operator …"):
        async with running_stack(keep, api=api) as stack:
            which = await prepare(stack, configured_model(model, base_url))
            link = await make_link(stack)
            operator = stack.operator(**link.environment)
            keeper = asyncio.create_task(operator.keep_running())
            try:
                record = await _investigate(console, stack, which, began, link)
                await _show(console, stack, record)
                if is_built() and sys.stdin.isatty() and sys.stdout.isatty():
                    await _until_interrupted(console)
            finally:
                keeper.cancel()
                await asyncio.wait([keeper])
                await operator.stop()
    return 0 if record.state is State.COMPLETED else 1


async def _until_interrupted(console: Console) -> None:
    """Leaves the page open for who sits before it."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    console.print("\nThe page stays open until Ctrl-C.", highlight=False)
    await stop.wait()


async def _investigate(console: Console, stack: Stack, which: str, began: float, link: Link) -> InvestigationRecord:
    await put_all(stack.client, manifest("samples/crashloop.yaml"))
    (alert,) = manifest("samples/alert-kubepodcrashlooping.yaml")
    name = alert["metadata"]["name"]
    alert = {**alert, "metadata": {**alert["metadata"], "namespace": NAMESPACE}}
    await put(stack.client, alert)
    console.print(f"{stack.api_sentence}; {which}.", highlight=False)
    console.print(f"HTTP API: {stack.http_url}/api/v1 (bearer tokens)", highlight=False, soft_wrap=True)
    console.print(f"$ kubectl apply -n {NAMESPACE} -f manifests/samples/alert-kubepodcrashlooping.yaml")
    console.print(f"alert.tarsy.dev/{name} created  ({time.monotonic() - began:.1f} s after the start)\n")
    pool = await open_pool(stack.database_url, max_size=2, application="tarsy demo")
    try:
        run = await _accepted(stack, name)
        reads = Reads(pool)
        if (record := await reads.record(run)) is not None and await is_open(stack.http_url):
            path = f"/investigations/{NAMESPACE}/{record.name}"
            console.print(f"{link.sentence(path)}\n", highlight=False, soft_wrap=True)
        return await follow_timeline(console, reads, stack.database_url, run)
    finally:
        await pool.close()


async def _accepted(stack: Stack, alert: str) -> UUID:
    """Waits for the alert's investigation to be in the record."""
    last: dict[str, Any] = {}
    try:
        async with asyncio.timeout(ACCEPT_SECONDS):
            while True:
                for inv in await stack.client.list("Investigation", NAMESPACE):
                    if inv["spec"].get("alertRef", {}).get("name") == alert:
                        last = inv
                if (last.get("status") or {}).get("record"):
                    return UUID(last["metadata"]["uid"])
                await asyncio.sleep(0.05)
    except TimeoutError:
        log = stack.operator_log.read_text(errors="replace")[-2000:]
        text = f"the alert was not accepted within {ACCEPT_SECONDS:g} s; the operator's log ends:\n{log}"
        raise ApiError(0, "Timeout", text) from None


async def _show(console: Console, stack: Stack, record: InvestigationRecord) -> None:
    """What kubectl shows of it, once the status has caught up with the record."""
    until = datetime.now(UTC).timestamp() + PROJECTED_SECONDS
    while datetime.now(UTC).timestamp() < until:
        inv = await stack.client.get("Investigation", NAMESPACE, record.name)
        alerts = await stack.client.list("Alert", NAMESPACE)
        settled = all((a.get("status") or {}).get("phase") == "Finished" for a in alerts)
        if (inv.get("status") or {}).get("recordRevision", 0) >= record.revision and settled:
            break
        await asyncio.sleep(0.1)
    for arguments in (["get", "talert,inv", "-n", NAMESPACE], ["describe", "inv", "-n", NAMESPACE, record.name]):
        console.print(f"\n$ kubectl {' '.join(arguments)}", style="bold", highlight=False)
        output = await run_kubectl(stack, arguments)
        console.print(output, markup=False, highlight=False, soft_wrap=True)
