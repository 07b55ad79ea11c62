"""Traces: the spans of one run, named as the GenAI conventions of OpenTelemetry say, and none of its content.

Decision: the id of a trace is the uid of its investigation and the id of an attempt's first span is made of that uid
and the attempt, so a run that another worker resumes goes on in the same trace, linked to the attempt before it, and
nothing has to be remembered for that. Only the API of OpenTelemetry is needed here (the package `mcp` brings it);
`tracing_export` needs the SDK.
"""

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Token
from uuid import UUID

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

Attributes = Mapping[str, str | int | float | bool | Sequence[str]]
"""What a span says beyond its name: names of objects, counts, reasons. Never what an alert, a model or a tool said."""

INTERRUPTED = "interrupted"
"""The `error.type` of what was under way when its attempt ended."""


class TracingError(Exception):
    """Traces were asked for and cannot be sent."""


@asynccontextmanager
async def tracing(endpoint: str | None, service: str) -> AsyncIterator["Tracing | None"]:
    """The traces of a process, sent to a collector until left; None where there is no endpoint, at no cost.

    Args:
        endpoint: base URL of the collector (`http://collector:4318`), to which the standard's `/v1/traces` is added.
        service: the `service.name` of this process, unless OTEL_SERVICE_NAME says another.

    Raises:
        TracingError: the endpoint is no URL, or the packages of the extra `otel` are not installed.
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
    async with exporting(endpoint, service) as traces:
        yield traces


class FixedIds:
    """The ids that the next span without a parent gets; the SDK asks for them while it makes the span."""

    def __init__(self) -> None:
        self.trace_id = 0
        self.span_id: int | None = None


class Tracing:
    """Makes the traces of the runs of this process.

    Args:
        tracer: makes spans.
        ids: where the tracer finds the ids of spans that have no parent.
    """

    def __init__(self, tracer: trace.Tracer, ids: FixedIds) -> None:
        self._tracer = tracer
        self._ids = ids

    def run(self, run: UUID, attempt: int, name: str, attributes: Attributes) -> "RunTrace":
        """Begins the trace of one attempt of a run, or goes on with what earlier attempts began.

        Args:
            run: the uid whose trace it is.
            attempt: from 1.
            name: of its first span.
            attributes: of that span.
        """
        self._ids.trace_id, self._ids.span_id = run.int, first_span(run, attempt)
        try:
            links = [_link(run, attempt - 1)] if attempt > 1 else []
            span = self._tracer.start_span(name, Context(), attributes=dict(attributes), links=links)
        finally:
            self._ids.span_id = None
        return RunTrace(self._tracer, span)


class RunTrace:
    """The spans of one attempt, by the ids that the record has for its steps; nothing here ever raises or waits."""

    def __init__(self, tracer: trace.Tracer, first: Span) -> None:
        self._tracer = tracer
        self._first = first
        self._open: dict[UUID, Span] = {}
        self._entered: dict[UUID, Token[Context]] = {}

    def begin(
        self, step: UUID, name: str, attributes: Attributes, *, of: UUID | None = None, outside: bool = False
    ) -> None:
        """Begins the span of a step.

        Args:
            step: its id.
            name: of the span.
            attributes: of the span.
            of: the step that it is part of, where that has a span; else it is part of the attempt.
            outside: the step asks another process.
        """
        parent = self._first if of is None else self._open.get(of, self._first)
        kind = SpanKind.CLIENT if outside else SpanKind.INTERNAL
        inside = trace.set_span_in_context(parent, Context())
        self._open[step] = self._tracer.start_span(name, inside, kind, dict(attributes))

    def enter(self, step: UUID) -> None:
        """What the current task does from here on belongs to the step, until it ends: servers that it asks are told."""
        if step in self._open:
            self._entered[step] = context.attach(trace.set_span_in_context(self._open[step]))

    def end(self, step: UUID, attributes: Attributes | None = None, *, error: str | None = None) -> None:
        """Ends the span of a step, if there is one; `error` is the reason of its failure, one of a few words."""
        if (token := self._entered.pop(step, None)) is not None:
            context.detach(token)
        if (span := self._open.pop(step, None)) is not None:
            _end(span, attributes or {}, error)

    def close(self, attributes: Attributes | None = None, *, error: str | None = None) -> None:
        """Ends the attempt's span, and those of all that was under way."""
        for span in reversed(self._open.values()):
            _end(span, {}, INTERRUPTED)
        self._open.clear()
        self._entered.clear()
        _end(self._first, attributes or {}, error)


def first_span(run: UUID, attempt: int) -> int:
    """The id of the first span of an attempt."""
    return int.from_bytes(hashlib.sha256(run.bytes + attempt.to_bytes(4, "big")).digest()[:8], "big") or 1


def _link(run: UUID, attempt: int) -> Link:
    return Link(SpanContext(run.int, first_span(run, attempt), is_remote=True, trace_flags=TraceFlags(1)))


def _end(span: Span, attributes: Attributes, error: str | None) -> None:
    span.set_attributes(dict(attributes))
    if error is not None:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR))
    span.end()
