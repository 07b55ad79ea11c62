"""Traces runs: spans named by the GenAI conventions of OpenTelemetry, without content unless it is asked for.

Decision: the trace id is the uid of the investigation, and the id of an attempt's root span is derived from the uid and
the attempt. So a run that another worker resumes continues in the same trace, linked to the previous attempt, without
stored state. This module needs only the API of OpenTelemetry (a dependency of the package `mcp`); `tracing_export`
needs the SDK.
"""

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Token
from dataclasses import dataclass
from uuid import UUID

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

Attributes = Mapping[str, str | int | float | bool | Sequence[str]]
"""Attributes of a span: names of objects, counts, reasons; text of models and tools only with `SpanStyle.content`."""

INTERRUPTED = "interrupted"
"""The `error.type` of spans that were open when their attempt ended."""


class TracingError(Exception):
    """Tracing is configured, but traces cannot be exported."""


@dataclass(frozen=True, slots=True)
class SpanStyle:
    """Holds the content of spans of runs, beyond the GenAI attributes.

    Attributes:
        content: messages of models, arguments and results of tools, as on record: with secrets masked.
        openinference: the attributes of OpenInference, which Phoenix reads.
    """

    content: bool = False
    openinference: bool = False


@asynccontextmanager
async def tracing(
    endpoint: str | None, service: str, style: SpanStyle | None = None
) -> AsyncIterator["Tracing | None"]:
    """Exports the traces of a process while entered; yields None without an endpoint.

    Args:
        endpoint: base URL of the collector (`http://collector:4318`), to which `/v1/traces` is appended.
        service: the `service.name` of this process; OTEL_SERVICE_NAME takes precedence.
        style: what spans contain.

    Raises:
        TracingError: the endpoint is not a URL, or the packages of the extra `otel` are not installed.
    """
    if not endpoint:
        yield None
        return
    if not endpoint.startswith(("http://", "https://")):
        raise TracingError(f"--otlp-endpoint {endpoint!r} is not an http:// or https:// URL")
    try:
        from tarsy.observe.tracing_export import exporting
    except ImportError as error:
        missing = f"--otlp-endpoint requires a package that is not installed ({error.name})"
        raise TracingError(f"{missing}: pip install 'tarsy-operator[otel]'") from None
    async with exporting(endpoint, service, style) as traces:
        yield traces


class FixedIds:
    """The ids for the next root span; the SDK reads them while it creates the span."""

    def __init__(self) -> None:
        self.trace_id = 0
        self.span_id: int | None = None


class Tracing:
    """Creates the traces of the runs of this process.

    Args:
        tracer: creates spans.
        ids: provides the ids of root spans to the tracer.
        style: what spans contain.
    """

    def __init__(self, tracer: trace.Tracer, ids: FixedIds, style: SpanStyle | None = None) -> None:
        self._tracer = tracer
        self._ids = ids
        self.style = style or SpanStyle()

    def run(self, run: UUID, attempt: int, name: str, attributes: Attributes) -> "RunTrace":
        """Starts the root span of an attempt, in the trace of its run.

        Args:
            run: uid of the run.
            attempt: number of the attempt, from 1.
            name: name of the span.
            attributes: attributes of the span.
        """
        self._ids.trace_id, self._ids.span_id = run.int, first_span(run, attempt)
        try:
            links = [_link(run, attempt - 1)] if attempt > 1 else []
            span = self._tracer.start_span(name, Context(), attributes=dict(attributes), links=links)
        finally:
            self._ids.span_id = None
        return RunTrace(self._tracer, span, self.style)


class RunTrace:
    """The spans of one attempt, by the ids of its recorded steps. No method raises or waits."""

    def __init__(self, tracer: trace.Tracer, first: Span, style: SpanStyle | None = None) -> None:
        self.style = style or SpanStyle()
        self._tracer = tracer
        self._first = first
        self._open: dict[UUID, Span] = {}
        self._entered: dict[UUID, Token[Context]] = {}

    def begin(
        self, step: UUID, name: str, attributes: Attributes, *, of: UUID | None = None, outside: bool = False
    ) -> None:
        """Starts the span of a step.

        Args:
            step: id of the step.
            name: name of the span.
            attributes: attributes of the span.
            of: parent step; without an open span of it, the parent is the attempt.
            outside: whether the step calls another process.
        """
        parent = self._first if of is None else self._open.get(of, self._first)
        kind = SpanKind.CLIENT if outside else SpanKind.INTERNAL
        inside = trace.set_span_in_context(parent, Context())
        self._open[step] = self._tracer.start_span(name, inside, kind, dict(attributes))

    def enter(self, step: UUID) -> None:
        """Makes a step the current span of this task until it ends, so that its requests carry the trace context."""
        if step in self._open:
            self._entered[step] = context.attach(trace.set_span_in_context(self._open[step]))

    def end(self, step: UUID, attributes: Attributes | None = None, *, error: str | None = None) -> None:
        """Ends the span of a step, if it is open.

        Args:
            step: id of the step.
            attributes: further attributes.
            error: reason of the failure, one of few values; None: success.
        """
        if (token := self._entered.pop(step, None)) is not None:
            context.detach(token)
        if (span := self._open.pop(step, None)) is not None:
            _end(span, attributes or {}, error)

    def note(self, name: str, attributes: Attributes) -> None:
        """Adds an event to the root span.

        Args:
            name: name of the event.
            attributes: attributes of the event.
        """
        self._first.add_event(name, dict(attributes))

    def close(self, attributes: Attributes | None = None, *, error: str | None = None) -> None:
        """Ends the root span, and all open spans as interrupted.

        Args:
            attributes: further attributes of the root span.
            error: reason of the failure; None: success.
        """
        for span in reversed(self._open.values()):
            _end(span, {}, INTERRUPTED)
        self._open.clear()
        self._entered.clear()
        _end(self._first, attributes or {}, error)


def first_span(run: UUID, attempt: int) -> int:
    """Returns the id of the root span of an attempt."""
    return int.from_bytes(hashlib.sha256(run.bytes + attempt.to_bytes(4, "big")).digest()[:8], "big") or 1


def _link(run: UUID, attempt: int) -> Link:
    return Link(SpanContext(run.int, first_span(run, attempt), is_remote=True, trace_flags=TraceFlags(1)))


def _end(span: Span, attributes: Attributes, error: str | None) -> None:
    span.set_attributes(dict(attributes))
    if error is not None:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR))
    span.end()
