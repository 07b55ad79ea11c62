"""Supervises the worker processes of a pod: a Python process uses one core, and a pod may have several.

Each process is a program of its own (nothing is forked with threads or an event loop), with its own lease and its share
of what the pod may use. One that ends is replaced, after a pause that grows. All drain side by side, and none outlives
the supervisor. Health and metrics are those of the pod: the supervisor asks the processes, and keeps what the ended
ones have counted.
"""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Sequence

from tarsy.app.errors import StartError
from tarsy.app.lifecycle import Shutdown, serve_health, until_stopped
from tarsy.app.settings.processes import WorkerProcessSettings
from tarsy.app.worker_channel import Order
from tarsy.app.worker_process import WorkerProcess
from tarsy.app.worker_shares import Share
from tarsy.observe.combined_metrics import combine, lasting
from tarsy.observe.metric_table import RESTARTS
from tarsy.observe.metrics import Metrics
from tarsy.observe.metrics_server import serve_metrics

_log = logging.getLogger(__name__)
ASK_SECONDS = 2.0
WATCH_SECONDS = 5.0
METRICS_SECONDS = 30.0
"""What a killed process counted later than this before its end may be missing, if nobody read metrics since."""
SILENT_SECONDS = 60.0
"""A process that has reported before and does not for so long is replaced."""
START_SECONDS = 300.0
"""The same for one that has not reported yet; imports take long on a busy node."""
STEADY_SECONDS = 60.0
"""A process that lives so long has started well."""
CRASH_LOOP = 5
"""Consecutive ends, each soon after the start, that make the pod unhealthy."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
CLOSE_SECONDS = 8.0
"""Added to the time to drain: a process closes its connections then."""
STOP_SECONDS = 4.0


async def supervise(settings: WorkerProcessSettings, shares: Sequence[Share], command: Sequence[str]) -> None:
    """Runs the worker processes of a pod until SIGTERM or SIGINT, then drains all of them.

    Args:
        settings: the settings of the pod.
        shares: what each process may use.
        command: starts a process; the number of a socket is added to it.

    Raises:
        StartError: a process ended before any was ready, or cannot be started.
    """
    await until_stopped(Supervisor(settings, shares, command).run)


def pause_seconds(ends_in_a_row: int) -> float:
    """Returns the pause before a process is replaced, by how often in a row it ended soon after its start."""
    return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** max(0, ends_in_a_row - 1))


class Supervisor:
    """The supervisor of a pod.

    Args:
        settings: the settings of the pod.
        shares: what each process may use.
        command: starts a process.
    """

    def __init__(self, settings: WorkerProcessSettings, shares: Sequence[Share], command: Sequence[str]) -> None:
        self._settings = settings
        self._shares = shares
        self._command = command
        self._metrics = Metrics()
        self._running: dict[int, WorkerProcess] = {}
        self._quick_ends = {share.number: 0 for share in shares}
        self._ended = b""
        self._was_ready = False
        self._stopping = asyncio.Event()
        self._keeping: list[asyncio.Task[None]] = []

    async def run(self, shutdown: Shutdown) -> None:
        """Keeps all processes running until they were drained or this is cancelled; then none is left."""
        ports = self._settings.observability
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(serve_health(ports, shutdown, self._why_not_ready, self._why_dead))
            if ports.metrics_port is not None:
                await stack.enter_async_context(serve_metrics(self.text, ports.metrics_host, ports.metrics_port))
            _log.info("%d worker processes share %d places", len(self._shares), sum(s.places for s in self._shares))
            async with asyncio.TaskGroup() as group:
                self._keeping = [group.create_task(self._keep(share)) for share in self._shares]
                shutdown.drain = self.drain

    async def drain(self) -> None:
        """Drains all processes side by side, and returns when they have ended or their time is over."""
        self._stopping.set()
        for process in self._running.values():
            process.terminate()
        _, late = await asyncio.wait(self._keeping, timeout=self._settings.execution.drain_seconds + CLOSE_SECONDS)
        if late:
            _log.warning("%d worker processes did not end in time and are killed", len(late))

    async def text(self) -> bytes:
        """Formats the metrics of the pod."""
        await self._ask_all(metrics=True)
        own = await self._metrics.text()
        return combine([own, self._ended, *(one.metrics for one in self._running.values())])

    async def _keep(self, share: Share) -> None:
        """Runs one process of the pod, and replaces it when it ends."""
        while not self._stopping.is_set():
            status = await self._run(share)
            if self._stopping.is_set():
                _log.info("worker process %d %s", share.number, _how(status))
                return
            if not self._was_ready:
                raise StartError(f"worker process {share.number} {_how(status)} before it was ready; see its log")
            self._quick_ends[share.number] += 1
            self._metrics.add(RESTARTS)
            pause = pause_seconds(self._quick_ends[share.number])
            _log.error("worker process %d %s; the next one starts in %g s", share.number, _how(status), pause)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    async def _run(self, share: Share) -> int:
        """Runs one process to its end; returns its exit status."""
        order = Order(settings=self._settings, share=share, parent=os.getpid())
        try:
            process = await WorkerProcess.start(self._command, order)
        except OSError as error:
            raise StartError(f"worker process {share.number} cannot be started: {error}") from error
        _log.info("started worker process %d with process id %d", share.number, process.pid)
        self._running[share.number] = process
        try:
            if self._stopping.is_set():
                process.terminate()
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch(process))
                status = await process.wait()
                watching.cancel()
            return status
        finally:
            await process.stop(STOP_SECONDS)
            del self._running[share.number]
            self._ended = combine([self._ended, lasting(process.metrics)])

    async def _watch(self, process: WorkerProcess) -> None:
        """Asks a process for a report again and again, and kills it when it does not answer for long."""
        while True:
            await process.ask(ASK_SECONDS, metrics=time.monotonic() - process.counted_at >= METRICS_SECONDS)
            self._was_ready = self._was_ready or process.ready
            now = time.monotonic()
            if now - process.started_at >= STEADY_SECONDS:
                self._quick_ends[process.number] = 0
            if now - process.heard_at >= (SILENT_SECONDS if process.heard else START_SECONDS):
                _log.error("worker process %d does not answer, and is killed", process.number)
                process.kill()
            await asyncio.sleep(WATCH_SECONDS)

    async def _ask_all(self, *, metrics: bool = False) -> dict[int, bool]:
        """Asks all processes for a report, with or without metrics; returns which answered."""
        running = list(self._running.values())
        answers = await asyncio.gather(*(process.ask(ASK_SECONDS, metrics=metrics) for process in running))
        return {process.number: answered for process, answered in zip(running, answers, strict=True)}

    async def _why_not_ready(self) -> str | None:
        answered = await self._ask_all()
        for share in self._shares:
            process = self._running.get(share.number)
            if process is None:
                return f"worker process {share.number} does not run"
            if process.report.why_not_ready is not None:
                return f"worker process {share.number}: {process.report.why_not_ready}"
            if not answered.get(share.number):
                return f"worker process {share.number} does not answer"
        self._was_ready = True
        return None

    def _why_dead(self) -> str | None:
        looping = [number for number, ends in self._quick_ends.items() if ends >= CRASH_LOOP]
        if not looping:
            return None
        return f"worker process {looping[0]} ended {self._quick_ends[looping[0]]} times in a row"


def _how(status: int) -> str:
    """Returns how a process ended, from its exit status."""
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with exit status {status}"
