"""Exports metrics whose values the caller sets, in Prometheus' text format."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from aiohttp import web

from tarsy.prometheus_tools.series import quote


class Exporter:
    """An HTTP server on a free port of 127.0.0.1 while it is entered. Every metric is a gauge."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    def set(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Sets the value that the next scrape reads."""
        self._values[name, tuple(sorted(labels.items()))] = value

    @property
    def target(self) -> str:
        """Host and port for a scrape configuration."""
        host, port = self._runner.addresses[0][:2]
        return f"{host}:{port}"

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        lines = []
        for (name, labels), value in self._values.items():
            written = ",".join(f"{label}={quote(text)}" for label, text in labels)
            lines.append(f"{name}{{{written}}} {value:g}\n")
        return web.Response(text="".join(lines), content_type="text/plain")
