"""A supervisor and a worker process over their socket: what a report contains, and when it is made."""

import asyncio
import socket
from types import SimpleNamespace

import pytest

from tarsy.app.lifecycle import ProcessReadiness, Shutdown
from tarsy.app.worker_channel import Reporter
from tarsy.app.worker_process import WorkerProcess
from tarsy.observe.metric_table import PROCESSES
from tarsy.observe.metrics import Metrics

COUNTED = b"tarsy_worker_processes 1.0"


class Counted(Metrics):
    """Metrics that count how often they were formatted."""

    formatted = 0

    async def text(self) -> bytes:
        self.formatted += 1
        return await super().text()


async def test_only_who_asks_for_metrics_makes_a_process_format_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.app.worker_channel.end_like_parent", lambda: None)
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    process = WorkerProcess(1, SimpleNamespace(pid=7, returncode=0), reader, writer)  # type: ignore[arg-type]
    metrics, readiness, shutdown = Counted(), ProcessReadiness(), Shutdown()
    metrics.pull(PROCESSES, lambda: {(): 1})

    async with Reporter(theirs).serve(metrics, readiness, shutdown):
        assert await process.ask(5) and not process.ready
        readiness.start()
        assert await process.ask(5) and process.ready
        assert (metrics.formatted, process.metrics) == (0, b"")

        answers = await asyncio.gather(process.ask(5), process.ask(5, metrics=True), process.ask(5))
        assert all(answers) and process.ready
        assert metrics.formatted == 1 and COUNTED in process.metrics

        assert await process.ask(5)
        assert COUNTED in process.metrics, "a report without metrics leaves those of the last one"

    await asyncio.wait([process._listening], timeout=5)
    assert metrics.formatted == 2, "the last report of a process has metrics"
    await process.stop(1)
