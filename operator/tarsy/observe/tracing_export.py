"""Sends traces to a collector, by OTLP over HTTP, beside the work and never in its way.

Decision: spans wait in a queue of fixed length that a thread of the SDK empties; where no collector answers they are
dropped, and that is said once in the log until one answers again. This module needs the extra `otel`, so only
`tracing.tracing` imports it, when traces are asked for. What no option says, the standard's variables OTEL_* do.
"""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator

from tarsy.observe.tracing import FixedIds, Tracing

_log = logging.getLogger(__name__)

QUEUE = 4096
"""Spans that wait at most; what comes while it is full pushes the oldest out."""

EXPORT_SECONDS = 10.0
EVERY_SECONDS = 2.0
CLOSE_SECONDS = 5.0
_PATH = "/v1/traces"


@asynccontextmanager
async def exporting(endpoint: str, service: str) -> AsyncIterator[Tracing]:
    """Traces to a collector, until left; then what waits is sent, for some seconds at most.

    Args:
        endpoint: base URL of the collector.
        service: the `service.name` of this process, unless OTEL_SERVICE_NAME says another.
    """
    ids, release = RunIds(), version("tarsy-operator")
    about = {"service.name": os.environ.get("OTEL_SERVICE_NAME", service), "service.version": release}
    provider = TracerProvider(resource=Resource.create(about), id_generator=ids, shutdown_on_exit=False)
    exporter = SayingOnce(OTLPSpanExporter(endpoint.rstrip("/") + _PATH, timeout=EXPORT_SECONDS))
    provider.add_span_processor(
        BatchSpanProcessor(
            exporter, max_queue_size=QUEUE, schedule_delay_millis=EVERY_SECONDS * 1000, max_export_batch_size=512
        )
    )
    try:
        yield Tracing(provider.get_tracer("tarsy", release), ids.fixed)
    finally:
        await _close(provider)


class SayingOnce(SpanExporter):
    """An exporter that says in the log when it begins to fail and when it works again, not at each batch."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends a batch; never raises."""
        try:
            result = self._exporter.export(spans)
        except Exception:
            result = SpanExportResult.FAILURE
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._failing:
            _log.warning("traces are dropped: the collector does not accept them")
        elif self._failing and not failed:
            _log.info("traces are sent again")
        self._failing = failed
        return result

    def shutdown(self) -> None:
        """Ends what is under way."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing waits here."""
        return self._exporter.force_flush(timeout_millis)


class RunIds(IdGenerator):
    """The ids of a run for the first span of an attempt, random ones for all others."""

    def __init__(self) -> None:
        self.fixed = FixedIds()
        self._random = RandomIdGenerator()

    def generate_trace_id(self) -> int:
        """The uid of the run that begins."""
        return self.fixed.trace_id

    def generate_span_id(self) -> int:
        """That of the attempt that begins, else a random one."""
        return self._random.generate_span_id() if self.fixed.span_id is None else self.fixed.span_id


async def _close(provider: TracerProvider) -> None:
    """Ends the provider in a thread that nobody has to wait for: a collector that hangs must not hold the process."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def close() -> None:
        provider.shutdown()
        if not loop.is_closed():
            loop.call_soon_threadsafe(over.set)

    threading.Thread(target=close, name="traces-close", daemon=True).start()
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await over.wait()
    except TimeoutError:
        _log.warning("the last traces were not sent: the collector did not accept them within %g s", CLOSE_SECONDS)
