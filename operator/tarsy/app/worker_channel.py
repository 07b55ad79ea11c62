"""Connects the supervisor of a pod with each of its worker processes, over a socket that the process inherits.

The supervisor sends the settings first: they hold the address of the database, which belongs neither into a command
line nor into an environment. After that a frame asks for a report: an empty one for readiness, `METRICS` for metrics as
well, which cost milliseconds of CPU. The process reports both once more before it ends. The end of the stream tells the
process that the supervisor is gone. A frame is its length in four bytes and a body.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator

from pydantic import BaseModel, ConfigDict

from tarsy.app.lifecycle import ProcessReadiness, Shutdown
from tarsy.app.parent import end_like_parent
from tarsy.app.settings.processes import WorkerProcessSettings
from tarsy.app.worker_shares import Share
from tarsy.observe.metrics import Metrics

_LENGTH = struct.Struct(">I")
_CLOSE_SECONDS = 1.0
METRICS = b"metrics"
"""Body of a frame that asks for a report with metrics."""


class Order(BaseModel):
    """Holds the start parameters of a worker process; `parent` is the process id of its supervisor."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: WorkerProcessSettings
    share: Share
    parent: int


class Report(BaseModel):
    """Why a worker process is not ready; None: it is. `metrics`, in the text format of Prometheus, if asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metrics: str | None = None
    why_not_ready: str | None = "starting"


def frame(body: bytes) -> bytes:
    """Returns a body as a frame."""
    return _LENGTH.pack(len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """Reads the body of the next frame; None: the stream has ended."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def receive_order(channel: socket.socket) -> Order:
    """Waits for the order of the supervisor.

    Raises:
        SystemExit: the supervisor has ended.
    """
    channel.set_inheritable(False)
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    return Order.model_validate_json(_exactly(channel, length))


class Reporter:
    """Reports to the supervisor from within a worker process.

    Args:
        channel: the inherited socket, once the order was received.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    @contextlib.asynccontextmanager
    async def serve(self, metrics: Metrics, readiness: ProcessReadiness, shutdown: Shutdown) -> AsyncIterator[None]:
        """Answers the supervisor while entered, and reports once more at the end. Without a supervisor, it ends all.

        Args:
            metrics: the metrics of this process.
            readiness: whether this process is ready.
            shutdown: makes this process unready.
        """
        reader, writer = await asyncio.open_unix_connection(sock=self._channel)

        async def report(asked: bytes) -> None:
            why_not = "stopping" if shutdown.asked.is_set() else readiness.why_not()
            counted = (await metrics.text()).decode() if asked == METRICS else None
            writer.write(frame(Report(metrics=counted, why_not_ready=why_not).model_dump_json().encode()))

        async def answer() -> None:
            while (asked := await read_frame(reader)) is not None:
                await report(asked)
            end_like_parent()

        async with asyncio.TaskGroup() as group:
            answering = group.create_task(answer())
            try:
                yield
            finally:
                answering.cancel()
                await report(METRICS)
                writer.close()
                with contextlib.suppress(TimeoutError, ConnectionError):
                    async with asyncio.timeout(_CLOSE_SECONDS):
                        await writer.wait_closed()


def _exactly(channel: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = channel.recv(size - len(found))
        if not part:
            raise SystemExit(1)
        found += part
    return found
