"""Tests traces on the wire: to a collector, with an unavailable or hanging one, and to tool servers."""

import asyncio
import logging
import sys
from uuid import UUID

import pytest

from integration.mcp.servers import SDK_SERVER, http, plan, resolve, served
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.observe import tracing_export
from tarsy.observe.tracing import Tracing, TracingError, first_span, tracing
from tarsy.plan.model import StdioTransport
from wire.collector import collecting

RUN = UUID("0f0e0d0c-0b0a-4908-8706-050403020100")
STEP = UUID(int=1)


def one_run(traces: Tracing | None, attempt: int = 1) -> None:
    assert traces is not None
    run = traces.run(RUN, attempt, "invoke_workflow chain", {"tarsy.attempt": attempt})
    run.begin(STEP, "chat model", {"gen_ai.operation.name": "chat"}, outside=True)
    run.end(STEP, {"gen_ai.usage.input_tokens": 7})
    run.close()


async def test_spans_arrive_with_the_uid_as_the_id_of_their_trace() -> None:
    async with collecting() as collector:
        async with tracing(collector.url + "/", "tarsy-run") as traces:
            one_run(traces)
            one_run(traces, attempt=2)
    first, second = collector.named("invoke_workflow chain")
    (call, _) = collector.named("chat model")
    assert {span.trace for span in collector.spans} == {RUN.hex}
    assert (first.id, first.parent, first.links) == (f"{first_span(RUN, 1):016x}", "", [])
    assert (second.parent, second.links) == ("", [(RUN.hex, first.id)])
    assert (call.parent, call.kind, call.attributes["gen_ai.usage.input_tokens"]) == (first.id, 3, 7)
    assert set(collector.paths) == {"/v1/traces"}
    assert {span.service for span in collector.spans} == {"tarsy-run"}


@pytest.mark.parametrize("endpoint", [None, ""])
async def test_without_an_endpoint_there_are_no_traces(endpoint: str | None) -> None:
    async with tracing(endpoint, "tarsy-run") as traces:
        assert traces is None


async def test_an_endpoint_that_is_no_url_is_named() -> None:
    with pytest.raises(TracingError, match="--otlp-endpoint 'collector:4318' is not an http"):
        async with tracing("collector:4318", "tarsy-run"):
            pass


async def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "tarsy.observe.tracing_export", raising=False)
    with pytest.raises(TracingError, match=r"opentelemetry.sdk.trace.*pip install 'tarsy-operator\[otel\]'"):
        async with tracing("http://127.0.0.1:1", "tarsy-run"):
            pass


async def test_a_collector_that_refuses_is_told_of_once_and_again_when_it_takes_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing_export, "EVERY_SECONDS", 0.05)
    caplog.set_level(logging.INFO, "tarsy.observe.tracing_export")
    async with collecting() as collector:
        collector.status = 400
        async with tracing(collector.url, "tarsy-run") as traces:
            one_run(traces)
            await collector.wait_for(lambda: collector.requests >= 1)
            one_run(traces)
            await collector.wait_for(lambda: collector.requests >= 2)
            collector.status = 200
            one_run(traces)
            await collector.wait_for(lambda: collector.spans)
    said = [record.getMessage() for record in caplog.records if record.name == "tarsy.observe.tracing_export"]
    assert said == ["traces are dropped: the collector does not accept them", "traces are sent again"]


async def test_a_collector_that_hangs_does_not_hold_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing_export, "CLOSE_SECONDS", 0.2)
    monkeypatch.setattr(tracing_export, "EXPORT_SECONDS", 1.0)
    async with collecting() as collector:
        collector.mute = True
        async with asyncio.timeout(60), tracing(collector.url, "tarsy-run") as traces:
            one_run(traces)
    assert "the last traces were not sent" in caplog.text


@pytest.mark.parametrize("way", ["http", "http legacy", "sse", "stdio"])
async def test_tool_servers_are_told_which_span_asks_them(way: str) -> None:
    toolboxes = McpToolboxes(resolve, mask=str, allow_stdio=True)
    async with collecting() as collector, tracing(collector.url, "tarsy-run") as traces:
        assert traces is not None
        run = traces.run(RUN, 1, "invoke_workflow chain", {})
        async with served(sse=way == "sse") as web:
            web.legacy = way == "http legacy"
            server = http(web.url, name="s", transport={"type": "sse" if way == "sse" else "http"})
            if way == "stdio":
                transport = StdioTransport(command=sys.executable, args=(str(SDK_SERVER),))
                server = plan("s", transport, init_seconds=120.0)

            async def ask() -> str:
                run.begin(STEP, "execute_tool key", {}, outside=True)
                run.enter(STEP)
                answer = await box.call("s.key", "{}", timeout=60, idempotency_key="key-1")
                run.end(STEP)
                return answer.content

            async with toolboxes.open([server]) as box:
                told = await asyncio.create_task(ask())
                after = await box.call("s.key", "{}", timeout=60, idempotency_key="key-2")
        run.close()
    (span,) = collector.named("execute_tool key")
    parent = f"00-{RUN.hex}-{span.id}-01"
    assert parent in told and "key-1" in told
    assert "key-2" in after.content and "traceparent" not in after.content
    if way != "stdio":
        called = [sent for method, sent in zip(web.methods, web.headers, strict=True) if method == "tools/call"]
        assert [sent.get("traceparent") for sent in called] == [parent, None]
