"""Grafana's own tool server, `mcp-grafana`, as its component lists it, asks a real Prometheus in a whole run.

There is no Grafana: a stand-in lists one data source and proxies its queries, as Grafana's API does.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from e2e.grafana_mcp import grafana_program
from e2e.kubernetes_mcp import NotToBeHad
from e2e.tenant import Tenant, answer, condition
from e2e.waiting import until
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.apiserver.progress import BuildProgress
from tarsy_dev.monitoring.binaries import acquire_monitoring
from tarsy_dev.monitoring.exporter import Exporter
from tarsy_dev.monitoring.servers import MonitoringServer, running_prometheus
from unit.manifests.test_tool_servers import shipped

pytestmark = pytest.mark.once("what Grafana and Prometheus answer has nothing to do with the API server")
TOKEN = "glsa_e2e0123456789abcdef"
SOURCE = {"id": 1, "uid": "main", "name": "Prometheus", "type": "prometheus", "access": "proxy", "isDefault": True}
QUERY = '{"datasourceUid": "main", "queryType": "instant", "endTime": "now", "expr": "QueueDepth{queue=\\"orders\\"}"}'


@pytest.fixture
async def prometheus(tmp_path: Path) -> AsyncIterator[MonitoringServer]:
    try:
        binaries = acquire_monitoring(BuildProgress())
    except LocalKubernetesError as error:
        pytest.skip(f"no Prometheus: {error}")
    async with Exporter() as exporter:
        exporter.set("QueueDepth", {"queue": "orders"}, 4217)
        targets = {"shop": exporter.target}
        async with running_prometheus(
            binaries, tmp_path / "prometheus", targets=targets, rules=[], alertmanagers=[]
        ) as server:

            async def scraped() -> Any:
                return (await server.get("/api/v1/query", query="QueueDepth"))["data"]["result"]

            await until("Prometheus has scraped the metric", scraped, 60)
            yield server


@asynccontextmanager
async def grafana_in_front_of(prometheus: MonitoringServer) -> AsyncIterator[str]:
    """Serves the part of Grafana's API that leads to a data source; yields its URL."""

    @web.middleware
    async def signed_in(request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise web.HTTPUnauthorized
        answered: web.StreamResponse = await handler(request)
        return answered

    async def proxied(request: web.Request) -> web.Response:
        url = f"{prometheus.url}/{request.match_info['path']}"
        form = await request.post()
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, url, params=request.query, data=dict(form) or None) as response,
        ):
            return web.Response(status=response.status, body=await response.read(), content_type=response.content_type)

    async def settings(_: web.Request) -> web.Response:
        return web.json_response({"buildInfo": {"version": "12.0.0"}})

    async def sources(_: web.Request) -> web.Response:
        return web.json_response([SOURCE])

    async def source(_: web.Request) -> web.Response:
        return web.json_response(SOURCE)

    app = web.Application(middlewares=[signed_in])
    app.router.add_get("/api/frontend/settings", settings)
    app.router.add_get("/api/datasources", sources)
    app.router.add_get("/api/datasources/uid/main", source)
    app.router.add_route("*", "/api/datasources/proxy/uid/main/{path:.*}", proxied)
    app.router.add_route("*", "/api/datasources/uid/main/resources/{path:.*}", proxied)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def test_a_finding_cites_the_value_of_a_metric_that_grafana_read(
    tenant: Tenant, prometheus: MonitoringServer
) -> None:
    try:
        command = grafana_program()
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    component = shipped("grafana-tools")
    wanted = {field: component.server["spec"][field] for field in ("tools", "evidence", "masking", "instructions")}
    await tenant.use_model(f"""
agents:
  agent:
    - calls: [{{name: grafana.list_datasources, arguments: {{type: prometheus}}}}]
    - calls: [{{name: grafana.query_prometheus, arguments: {QUERY}}}]
    - text: {answer("High", ("grafana.query_prometheus", ',"4217"]}'), summary="4217 orders wait in the queue.")}
""")
    async with grafana_in_front_of(prometheus) as url:
        env = [{"name": "GRAFANA_URL", "value": url}, {"name": "GRAFANA_SERVICE_ACCOUNT_TOKEN", "value": TOKEN}]
        arguments = ["-t", "stdio", "--disable-write", "--usage-stats=disabled"]
        transport = {"type": "stdio", "stdio": {"command": str(command), "args": arguments, "env": env}}
        await tenant.put("MCPServer", "grafana", {"transport": transport, **wanted})
        await tenant.put("Agent", "agent", {"mcpServers": [{"name": "grafana"}]})
        await tenant.use_chain(["agent"])
        identity = await tenant.investigate()
        inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    sources, queried = await tenant.mcp_calls(identity)
    assert sources["state"] == queried["state"] == "completed", (sources["result"], queried["result"])
    assert "main" in sources["result"] and "4217" in queried["result"]
    finding = inv["status"]["finding"]
    assert (finding["supportedClaims"], finding["integrity"], finding["confidence"]) == (1, "A", "Medium")
