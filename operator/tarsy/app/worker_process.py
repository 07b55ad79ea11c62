"""Runs one worker process of a pod, as its supervisor sees it: start, reports, signals, end."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Sequence

from tarsy.app.worker_channel import METRICS, Order, Report, frame, read_frame

_log = logging.getLogger(__name__)
_LAST_REPORT_SECONDS = 1.0


class WorkerProcess:
    """A running worker process. Use `start` to make one, and `stop` to end it.

    `report` is its last report, received at `heard_at` (monotonic seconds; its start, while there is none). `metrics`,
    received at `counted_at`, are those of the last report that has any.
    """

    def __init__(
        self,
        number: int,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """
        Args:
            number: its number in the pod.
            process: the process.
            reader: receives its reports.
            writer: asks it for them.
        """
        self.number = number
        self.pid = process.pid
        self.report = Report()
        self.metrics = b""
        self.heard_at = self.counted_at = self.started_at = time.monotonic()
        self._process = process
        self._writer = writer
        self._heard, self._counted = asyncio.Event(), asyncio.Event()
        self._listening = asyncio.create_task(self._listen(reader))

    @classmethod
    async def start(cls, command: Sequence[str], order: Order) -> "WorkerProcess":
        """Starts a process.

        Args:
            command: the program and its arguments; the number of the inherited socket is added.
            order: what it starts with.

        Raises:
            OSError: the program cannot be started.
        """
        ours, theirs = socket.socketpair()
        with contextlib.ExitStack() as unless_started:
            unless_started.callback(ours.close)
            with theirs:
                # A session of its own: Ctrl-C in a terminal reaches the supervisor only, which drains all.
                process = await asyncio.create_subprocess_exec(
                    *command,
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            unless_started.pop_all()
        writer.write(frame(order.model_dump_json(by_alias=True).encode()))
        return cls(order.share.number, process, reader, writer)

    @property
    def ready(self) -> bool:
        """Whether its last report says that it is ready."""
        return self.report.why_not_ready is None

    @property
    def heard(self) -> bool:
        """Whether it has reported at all."""
        return self.heard_at > self.started_at

    async def ask(self, seconds: float, *, metrics: bool = False) -> bool:
        """Asks for a report; returns whether one came in time.

        Args:
            seconds: time for the answer.
            metrics: whether it must contain metrics.
        """
        if self._listening.done():
            return False
        heard = self._counted if metrics else self._heard
        self._writer.write(frame(METRICS if metrics else b""))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await heard.wait()
        return heard.is_set()

    async def wait(self) -> int:
        """Waits for its end; returns its exit status, negative for a signal."""
        status = await self._process.wait()
        await asyncio.wait([self._listening], timeout=_LAST_REPORT_SECONDS)
        return status

    def terminate(self) -> None:
        """Sends SIGTERM: the first drains the process, the second stops it."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """Sends SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def stop(self, seconds: float) -> None:
        """Stops the process and closes its channel; SIGKILL follows SIGTERM after `seconds`."""
        if self._process.returncode is None:
            self.terminate()
            try:
                async with asyncio.timeout(seconds):
                    await self.wait()
            except TimeoutError:
                self.kill()
                await self.wait()
        self._listening.cancel()
        await asyncio.wait([self._listening])
        self._writer.close()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while (body := await read_frame(reader)) is not None:
                self.report = Report.model_validate_json(body)
                self.heard_at = time.monotonic()
                heard, self._heard = self._heard, asyncio.Event()
                heard.set()
                if self.report.metrics is not None:
                    self.metrics, self.counted_at = self.report.metrics.encode(), self.heard_at
                    counted, self._counted = self._counted, asyncio.Event()
                    counted.set()
        except ValueError as error:
            _log.error("worker process %d sent no report: %s", self.number, error)
            self.kill()
