"""Implements `tarsy demo --scenario alertmanager`: a rule of a real Prometheus fires, and a real Alertmanager sends it.

The metrics are exported by this process, which lets the connections rise, waits for the investigation, and lets them
fall again; all between is Prometheus, Alertmanager and the product.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

from tarsy.cli.console import new_console
from tarsy.cli.reports.ledger import account_of
from tarsy.record.run import State
from tarsy.store.database import open_pool
from tarsy.store.intake import Intake
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.apiserver.progress import BuildProgress, tail
from tarsy_dev.demo import follow_alert, operated, show, stay_open
from tarsy_dev.develop import configured_model, prepare
from tarsy_dev.model import scenario_script
from tarsy_dev.monitoring.binaries import acquire_monitoring
from tarsy_dev.monitoring.exporter import Exporter
from tarsy_dev.monitoring.servers import MonitoringServer, Receiver, running_alertmanager, running_prometheus
from tarsy_dev.objects import manifest, put_all
from tarsy_dev.sample import SHOP
from tarsy_dev.serving import until_serving
from tarsy_dev.sign_in_link import make_link
from tarsy_dev.stack import ApiChoice, Stack, running_stack

STARTING = "Starting a Kubernetes API, Postgres, Prometheus, Alertmanager and the operator …"
WAIT_SECONDS = 60.0
SCRAPES = 3
ALERT_TYPE = "DatabaseConnectionsHigh"
IN_USE, MOST = "catalog_database_connections_in_use", "catalog_database_connections_max"
RULE = {
    "alert": ALERT_TYPE,
    "expr": f"{IN_USE} / {MOST} > 0.9",
    "labels": {"severity": "warning"},
    "annotations": {"summary": "More than 90% of the database connections of catalog are in use."},
}
CALM, FULL = 12, 97
"""Connections in use before and after, and meanwhile; 100 are the maximum."""
_LABELS = {"namespace": SHOP, "pod": "catalog-5d8f6b7c9d-p4n7m"}
_SENDER = "alertmanager"
_TOKEN_SECONDS = 86_400
T = TypeVar("T")


async def demonstrate_alertmanager(keep: Path | None, model: str | None, base_url: str | None, api: ApiChoice) -> int:
    """Runs the demo; returns exit status 0 only if the investigation succeeded and the incident was resolved.

    Args:
        keep: folder for objects and record; None deletes them at the end.
        model: name of a real model.
        base_url: URL of an OpenAI-compatible server.
        api: which Kubernetes API to use.

    Raises:
        LocalKubernetesError: something cannot be had or started here; the message says what to do.
    """
    console = new_console(markup=False)
    binaries = await asyncio.to_thread(acquire_monitoring, BuildProgress())
    async with contextlib.AsyncExitStack() as house:
        if not console.is_terminal:
            console.print(STARTING)
        with console.status(STARTING):
            stack = await house.enter_async_context(running_stack(keep, api=api))
            script = scenario_script("alertmanager")
            which = await prepare(stack, configured_model(model, base_url) or script, "no-fault")
            receiver = await install_receiver(stack)
            exporter = await house.enter_async_context(Exporter())
            exporter.set(MOST, _LABELS, 100)
            exporter.set(IN_USE, _LABELS, CALM)
            alertmanager = await house.enter_async_context(
                running_alertmanager(binaries, stack.folder / "alertmanager", receiver)
            )
            targets, folder = {"catalog": exporter.target}, stack.folder / "prometheus"
            prometheus = await house.enter_async_context(
                running_prometheus(binaries, folder, targets=targets, rules=[RULE], alertmanagers=[alertmanager])
            )
            await stack.add_prometheus(prometheus.url)
            link = await make_link(stack)
            await house.enter_async_context(operated(stack, link))
            await until_serving(stack)
            await _until(stack, "Prometheus reads the metrics", lambda: _scraped(prometheus))
        console.print(f"{stack.api_sentence}; {which}.")
        console.print(f"Prometheus: {prometheus.url}; Alertmanager: {alertmanager.url}; it sends to {receiver.url}")
        before = {alert["metadata"]["name"] for alert in await stack.client.list("Alert", SHOP)}
        began = time.monotonic()
        exporter.set(IN_USE, _LABELS, FULL)
        console.print(f"\n{IN_USE} rises from {CALM} to {FULL}. The rule: {RULE['expr']}", soft_wrap=True)
        alert = await _until(stack, f"an alert {ALERT_TYPE} arrives", lambda: _sent(stack, before))
        seconds = time.monotonic() - began
        console.print(f"alert.tarsy.dev/{alert} created by Alertmanager, {seconds:.1f} s later\n", soft_wrap=True)
        record = await follow_alert(console, stack, link, alert)
        exporter.set(IN_USE, _LABELS, CALM)
        console.print(f"\n{IN_USE} falls to {CALM}.")
        await _until(stack, f"alert {alert} is resolved", lambda: _resolved(stack, alert))
        console.print(f"Alertmanager reported the end: {alert} is resolved.", soft_wrap=True)
        await show(console, stack, record)
        balanced = await _ledger(stack)
        console.print(f"\n$ tarsy ledger --output json\n{json.dumps(balanced)}", soft_wrap=True)
        await stay_open(console)
    return 0 if record.state is State.COMPLETED and balanced["balances"] else 1


async def install_receiver(stack: Stack) -> Receiver:
    """Puts the AlertRoute and the sender's rights into the sample namespace, and returns whom Alertmanager notifies."""
    await put_all(stack.client, manifest("samples/demo/alertmanager.yaml"))
    file = stack.folder / "alertmanager.token"
    file.touch(mode=0o600)
    file.write_text(await stack.client.create_token(SHOP, _SENDER, seconds=_TOKEN_SECONDS))
    return Receiver(f"{stack.http_url}/intake/v1/alertmanager?namespace={SHOP}", file)


async def _until(stack: Stack, what: str, look: Callable[[], Awaitable[T | None]]) -> T:
    """Waits until something is there, and returns it.

    Raises:
        LocalKubernetesError: not in time; with the end of the logs of Prometheus and Alertmanager.
    """
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                if found := await look():
                    return found
                await asyncio.sleep(0.05)
    except TimeoutError:
        ends = await asyncio.to_thread(_ends_of_logs, stack.folder)
        raise LocalKubernetesError(f"{what}: not within {WAIT_SECONDS:g} s\n{ends}") from None


async def _scraped(prometheus: MonitoringServer) -> bool:
    """Reports whether Prometheus has read the metrics so often that a graph shows how it was before."""
    query = f"count_over_time({IN_USE}[1m]) >= {SCRAPES}"
    return bool((await prometheus.get("/api/v1/query", query=query))["data"]["result"])


async def _sent(stack: Stack, before: Collection[str]) -> str | None:
    """Returns the name of the Alert that Alertmanager sent."""
    for alert in await stack.client.list("Alert", SHOP):
        if alert["metadata"]["name"] not in before and alert["spec"]["alertType"] == ALERT_TYPE:
            return str(alert["metadata"]["name"])
    return None


async def _resolved(stack: Stack, name: str) -> bool:
    """Reports whether the status of an Alert says that it is resolved."""
    alert = await stack.client.get("Alert", SHOP, name)
    return bool((alert.get("status") or {}).get("resolvedAt"))


def _ends_of_logs(folder: Path) -> str:
    logs = [folder / name for name in ("prometheus/prometheus.log", "alertmanager/alertmanager.log")]
    return "\n".join(f"{log.name} ends:\n{tail(log)}" for log in logs)


async def _ledger(stack: Stack) -> dict[str, Any]:
    """Returns the account of all notifications that the intake received."""
    pool = await open_pool(stack.database_url, max_size=1, application="tarsy demo")
    try:
        lines, twice = await Intake(pool).ledger(None)
    finally:
        await pool.close()
    return account_of(lines, twice)
