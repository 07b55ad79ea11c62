"""Prints waiting runs with their reasons (`queue`), and the workers (`workers`)."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.table import Table
from rich.text import Text

from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.client.api import TarsyClient, read_as
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_QUEUE, READ_WORKERS
from tarsy.http.views.queue import QueueItem, QueueView, WorkerList, WorkerView

_PAGE = 200
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


async def show_queue(client: TarsyClient, namespace: str | None, limit: int, output: Output) -> int:
    """Prints the queue; returns the exit status.

    Args:
        client: the API.
        namespace: of what waits; None: all.
        limit: maximum number of items.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: it may not be read.
    """
    path = "/queue" if namespace is None else f"/namespaces/{namespace}/queue"
    queue = await read_as(client, QueueView, path, READ_QUEUE, {"limit": str(min(limit, _PAGE))})
    if for_programs(output):
        write_output(queue, output)
        return 0
    printer().print(queue_line(queue, namespace))
    if queue.items:
        printer().print(queue_table(queue.items, datetime.now(UTC), with_namespace=namespace is None))
    if queue.omitted:
        printer().print(f"{queue.omitted} more wait; see --limit.", style="dim")
    return 0


async def list_workers(client: TarsyClient, output: Output) -> int:
    """Prints the workers; returns the exit status.

    Args:
        client: the API.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: they may not be read.
    """
    found = await read_as(client, WorkerList, "/workers", READ_WORKERS)
    if for_programs(output):
        write_output(found, output)
    elif not found.items:
        printer().print("No worker is registered: accepted runs do not start.")
    else:
        printer().print(workers_table(found.items, datetime.now(UTC)))
    return 0


def queue_line(queue: QueueView, namespace: str | None) -> str:
    """Counts what waits, in a line.

    Args:
        queue: the queue.
        namespace: that it is of; None: all.
    """
    where = "all namespaces" if namespace is None else f"namespace {namespace}"
    counts = (
        (queue.running, "running"),
        (queue.pending, "queued"),
        (queue.parked, "parked"),
        (queue.orphaned, "to be resumed"),
        (queue.not_accepted, "not accepted"),
    )
    told = ", ".join(f"{count:,} {what}" for count, what in counts)
    workers = "1 worker is alive" if queue.workers == 1 else f"{queue.workers} workers are alive"
    return f"In {where}: {told}; {workers}."


def queue_table(items: Sequence[QueueItem], now: datetime, *, with_namespace: bool) -> Table:
    """Renders what waits, the longest first.

    Args:
        items: what waits.
        now: the current time.
        with_namespace: whether a column names the namespaces.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    titles = ["WAITS", "KIND", "NAME", "CHAIN", "REASON", "WHY"]
    for title in (["NAMESPACE"] if with_namespace else []) + titles:
        table.add_column(title, overflow="fold", no_wrap=title in ("WAITS", "KIND", "REASON"))
    for one in items:
        chain = "-" if one.chain is None else f"{one.chain_namespace}/{one.chain}"
        cells = [since_text(one.since, now), one.kind, one.name, chain, one.reason, one.message]
        table.add_row(*(Text(one_line(cell, 400)) for cell in ([one.namespace] if with_namespace else []) + cells))
    return table


def workers_table(workers: Sequence[WorkerView], now: datetime) -> Table:
    """Renders the workers.

    Args:
        workers: the workers.
        now: the current time.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("WORKER", "STATE", "RUNS", "QUESTIONS", "HEARTBEAT", "AGE", "VERSION"):
        table.add_column(title, overflow="fold")
    for one in workers:
        beat = "-" if one.beat_at is None else f"{since_text(one.beat_at, now)} ago"
        cells = [one.host, worker_state(one), _load(one.runs, one.places), _load(one.answers, one.questions)]
        cells += [beat, since_text(one.started_at, now), one.version or "-"]
        table.add_row(*(Text(one_line(cell, 160)) for cell in cells))
    return table


def worker_state(worker: WorkerView) -> str:
    """Returns Alive, Draining or Lost."""
    if not worker.alive:
        return "Lost"
    return "Draining" if worker.draining else "Alive"


def _load(used: int, places: int | None) -> str:
    return str(used) if places is None else f"{used}/{places}"


def since_text(then: datetime, now: datetime) -> str:
    """Writes the time since a moment as kubectl does: 3d4h, 2h5m, 12s."""
    left = max(0, int((now - then).total_seconds()))
    parts = []
    for unit, seconds in _UNITS:
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"
