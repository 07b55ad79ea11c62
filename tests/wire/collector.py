"""A collector of traces on loopback: OTLP over HTTP in protobuf, as every vendor's takes it; it can also misbehave."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Collected:
    """A span as it came in; ids are hex, `kind` and `status` the numbers of the protocol."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    status: int
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    service: str


@dataclass
class Collector:
    """What came in. `status` is what it answers; where it is `mute` it takes a request and never answers."""

    url: str = ""
    status: int = 200
    mute: bool = False
    requests: int = 0
    paths: list[str] = field(default_factory=list)
    spans: list[Collected] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def named(self, name: str) -> list[Collected]:
        """The spans of a name."""
        return [span for span in self.spans if span.name == name]

    async def wait_for(self, seen: Callable[[], object], seconds: float = 120.0) -> None:
        """Returns when that has come in."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(seen)


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """A collector, until left."""
    collector = Collector()

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        if collector.mute:
            await asyncio.Event().wait()
        async with collector.changed:
            collector.requests += 1
            collector.paths.append(request.path)
            if collector.status == 200:
                collector.bodies.append(body)
                collector.spans += _spans(body)
            collector.changed.notify_all()
        return web.Response(status=collector.status)

    app = web.Application()
    app.router.add_post("/{path:.*}", take)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        collector.url = f"http://{host}:{port}"
        yield collector
    finally:
        await runner.cleanup()


def _spans(body: bytes) -> list[Collected]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        Collected(
            span.name,
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.kind,
            span.status.code,
            {pair.key: _value(pair.value) for pair in span.attributes},
            [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
            next(pair.value.string_value for pair in of.resource.attributes if pair.key == "service.name"),
        )
        for of in request.resource_spans
        for scope in of.scope_spans
        for span in scope.spans
    ]


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)
