"""Exports traces to a collector by OTLP over HTTP, without blocking the work.

Decision: a thread of the SDK sends spans from a bounded queue. Without a collector, spans are dropped, which is logged
once until one responds again. This module needs the extra `otel`, so only `tracing.tracing` imports it, when tracing is
configured. The standard variables OTEL_* configure everything that has no option.
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

from tarsy.observe.tracing import FixedIds, SpanStyle, Tracing

_log = logging.getLogger(__name__)

QUEUE = 4096
"""Maximum number of queued spans; new spans displace the oldest."""

EXPORT_SECONDS = 10.0
EVERY_SECONDS = 2.0
CLOSE_SECONDS = 5.0
_PATH = "/v1/traces"


@asynccontextmanager
async def exporting(endpoint: str, service: str, style: SpanStyle | None = None) -> AsyncIterator[Tracing]:
    """Exports traces while entered; sends the queued spans on exit, within a few seconds.

    Args:
        endpoint: base URL of the collector.
        service: the `service.name` of this process; OTEL_SERVICE_NAME takes precedence.
        style: what spans contain.
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
        yield Tracing(provider.get_tracer("tarsy", release), ids.fixed, style)
    finally:
        await _close(provider)


class SayingOnce(SpanExporter):
    """An exporter that logs when it starts to fail and when it recovers, instead of every batch."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends a batch. Never raises."""
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
        """Shuts the exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flushes the exporter."""
        return self._exporter.force_flush(timeout_millis)


class RunIds(IdGenerator):
    """Generates the derived ids of root spans, and random ids for all others."""

    def __init__(self) -> None:
        self.fixed = FixedIds()
        self._random = RandomIdGenerator()

    def generate_trace_id(self) -> int:
        """Returns the uid of the starting run."""
        return self.fixed.trace_id

    def generate_span_id(self) -> int:
        """Returns the id of the starting root span, or a random one."""
        return self._random.generate_span_id() if self.fixed.span_id is None else self.fixed.span_id


async def _close(provider: TracerProvider) -> None:
    """Shuts the provider down in a daemon thread, so that a hanging collector does not block the process."""
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
