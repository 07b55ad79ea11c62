"""Implements the tools of Prometheus: queries, names of series and labels, rules, alerts and targets.

A request keeps to the namespaces that its caller names (`tarsy.kubernetes_tools.reach`): selectors are bound
(`binding`), alerts and targets filtered by their label, and rules that name another namespace are not shown.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from tarsy.kubernetes_tools.kinds import Refused
from tarsy.kubernetes_tools.reach import ENFORCED, reach_of
from tarsy.kubernetes_tools.tools import READ_ONLY
from tarsy.prometheus_tools.api import SECONDS, PrometheusError, PrometheusReader, ResponseTooLarge
from tarsy.prometheus_tools.binding import Binding, checked_length
from tarsy.prometheus_tools.render import (
    render_alerts,
    render_instant,
    render_labelsets,
    render_names,
    render_range,
    render_rules,
    render_targets,
)
from tarsy.prometheus_tools.series import read_series
from tarsy.prometheus_tools.settings import ToolSettings
from tarsy.prometheus_tools.statistics import Threshold
from tarsy.prometheus_tools.times import read_time, read_window

PROMETHEUS_INSTRUCTIONS = (
    "Read-only PromQL. Begin with list_alerts and list_rules of the alert's name: the rule's expression is the first "
    "query to make. query_range returns figures and the shape of each series, not samples; given a threshold, it tells "
    "when that was first breached. Selectors are limited to the namespaces of the investigation."
)
REMEDY = "aggregate with sum by (...) (...), take topk(10, ...), or give more matchers"

_Query = Annotated[str, Field(description="A PromQL expression.")]
_Start = Annotated[str, Field(description="Begin: -2h, an RFC 3339 time, or Unix seconds.")]
_End = Annotated[str, Field(description="End, in the same forms. Default: now.")]
_Match = Annotated[str, Field(description='A selector: up{job="shop"}.')]
_Name = Annotated[str | None, Field(description="Exact name of an alert or rule. Default: all.")]
_Label = Annotated[str | None, Field(description="Label whose values are listed. Default: list the names of labels.")]


def prometheus_server(
    prometheus: PrometheusReader,
    *,
    owner: str | None = None,
    settings: ToolSettings | None = None,
    clock: Callable[[], float] = time.time,
) -> MCPServer:
    """Creates the MCP server `prometheus`; closing it closes the reader.

    Args:
        prometheus: what is read.
        owner: the namespace of the MCPServers that it is for; requests must name their namespaces then.
        settings: which label has the namespace, and which metrics are about none.
        clock: the time now, in Unix seconds.
    """

    @asynccontextmanager
    async def lifespan(_: MCPServer) -> AsyncIterator[None]:
        async with prometheus:
            yield

    server = MCPServer("prometheus", instructions=PROMETHEUS_INSTRUCTIONS, lifespan=lifespan, log_level="WARNING")
    tool = server.tool(annotations=READ_ONLY, meta=ENFORCED, structured_output=False)

    tools = _PrometheusTools(prometheus, owner, settings or ToolSettings(), clock)
    for function in (
        tools.query,
        tools.query_range,
        tools.list_series,
        tools.list_labels,
        tools.list_rules,
        tools.list_alerts,
        tools.list_targets,
    ):
        tool(function)
    return server


class _PrometheusTools:
    """Reads Prometheus for the tools of the server."""

    def __init__(
        self, prometheus: PrometheusReader, owner: str | None, settings: ToolSettings, clock: Callable[[], float]
    ) -> None:
        self._prometheus = prometheus
        self._owner = owner
        self._settings = settings
        self._clock = clock

    def _binding(self, context: Context) -> Binding:
        reach = reach_of(context.request_context.meta, owner=self._owner)
        return Binding(reach, self._settings.namespace_label, self._settings.shared)

    async def _evaluated(self, path: str, query: str, parameters: list[tuple[str, str]]) -> tuple[Any, list[str]]:
        limits = [("timeout", f"{SECONDS:g}s")]
        try:
            return await self._prometheus.get(path, [("query", query), *parameters, *limits], doing="query")
        except ResponseTooLarge as error:
            raise ResponseTooLarge(f"{error}{await _how_many(self._prometheus, query)}: {REMEDY}") from error

    async def query(self, context: Context, query: _Query, time: str = "now") -> str:
        """Evaluates PromQL at one time; the largest value first."""
        with _told():
            bound = self._binding(context).bind(query)
            at = read_time(time, self._clock())
            data, warnings = await self._evaluated("query", bound, [("time", f"{at:.3f}")])
            return render_instant(read_series(data), warnings)

    async def query_range(
        self,
        context: Context,
        query: _Query,
        start: _Start = "-1h",
        end: _End = "now",
        step: Annotated[str | None, Field(description="Such as 1m. Default: fits the range.")] = None,
        threshold: Annotated[
            float | None, Field(description="Limit of the alert rule: its first breach is told.")
        ] = None,
        breach: Annotated[Literal["above", "below"], Field(description="Side of the limit that is bad.")] = "above",
    ) -> str:
        """Evaluates PromQL over a time: now, peak, low, slope, onset, gaps and shape of each series, worst first."""
        with _told():
            bound = self._binding(context).bind(query)
            window = read_window(start, end, step, self._clock())
            times = [("start", f"{window.start:.3f}"), ("end", f"{window.end:.3f}"), ("step", f"{window.step:.3f}")]
            data, warnings = await self._evaluated("query_range", bound, times)
            limit = Threshold(threshold, breach == "above") if threshold is not None else None
            return render_range(read_series(data), window, limit, warnings)

    async def list_series(self, context: Context, match: _Match, start: _Start = "-1h") -> str:
        """Lists series that match a selector, without samples."""
        with _told():
            parameters = [
                ("match[]", self._binding(context).bind(match)),
                ("start", f"{read_time(start, self._clock()):.3f}"),
            ]
            try:
                data, _ = await self._prometheus.get("series", parameters, doing="list series")
            except ResponseTooLarge as error:
                raise ResponseTooLarge(f"{error}: give more matchers") from error
            return render_labelsets([_labels(item) for item in data])

    async def list_labels(self, context: Context, label: _Label = None, match: str | None = None) -> str:
        """Lists names of labels, or the values of one; label=__name__ lists the metrics."""
        with _told():
            bound = self._binding(context)
            own = bound.matcher()
            selector = bound.bind(match) if match else (f"{{{own}}}" if own else None)
            path = f"label/{_label_name(label)}/values" if label else "labels"
            parameters = [("match[]", selector)] if selector else []
            try:
                data, _ = await self._prometheus.get(path, parameters, doing="list labels")
            except ResponseTooLarge as error:
                raise ResponseTooLarge(f"{error}: narrow by match") from error
            return render_names([str(name) for name in data], f"values of {label}" if label else "labels")

    async def list_rules(self, context: Context, name: _Name = None) -> str:
        """Lists alerting and recording rules with their expressions, of one name or all."""
        with _told():
            bound = self._binding(context)
            data, _ = await self._prometheus.get("rules", [], doing="list rules")
            rules = [rule for group in data.get("groups") or () for rule in group.get("rules") or ()]
            rules = [rule for rule in rules if name in (None, "", rule.get("name"))]
            shown = [rule for rule in rules if bound.admits(str(rule.get("query"))) and _in_reach(bound, rule, True)]
            return render_rules([_without_state(rule, bound) for rule in shown], len(rules) - len(shown))

    async def list_alerts(self, context: Context, name: _Name = None) -> str:
        """Lists pending and firing alerts as Prometheus has them now, with their values."""
        with _told():
            bound = self._binding(context)
            data, _ = await self._prometheus.get("alerts", [], doing="list alerts")
            alerts = [alert for alert in data.get("alerts") or () if _in_reach(bound, alert)]
            return render_alerts([a for a in alerts if name in (None, "", (a.get("labels") or {}).get("alertname"))])

    async def list_targets(self, context: Context) -> str:
        """Lists scrape targets and their errors, those that are down first."""
        with _told():
            bound = self._binding(context)
            data, _ = await self._prometheus.get("targets", [("state", "active")], doing="list targets")
            return render_targets([target for target in data.get("activeTargets") or () if _in_reach(bound, target)])


async def _how_many(prometheus: PrometheusReader, query: str) -> str:
    """Returns how many series a query has, in parentheses; nothing if that cannot be said."""
    try:
        data, _ = await prometheus.get(
            "query", [("query", f"count({query}\n)"), ("timeout", f"{SECONDS:g}s")], doing="count series"
        )
        (counted,) = read_series(data)
        return f" ({counted.points[-1].value:.0f} series)"
    except (PrometheusError, ValueError, IndexError):
        return ""


def _in_reach(bound: Binding, item: Mapping[str, Any], absent: bool = False) -> bool:
    """Reports whether the namespace label of an alert, target or rule is in reach; `absent`: also if it has none."""
    namespace = (item.get("labels") or {}).get(bound.label)
    return bound.reach.namespaces is None or (absent and namespace is None) or bound.reach.includes(namespace)


def _without_state(rule: Mapping[str, Any], bound: Binding) -> dict[str, Any]:
    """Returns a rule whose state is that of its alerts in reach: one that fires elsewhere is not said to fire."""
    if bound.reach.namespaces is None or rule.get("type") != "alerting":
        return dict(rule)
    states = {alert.get("state") for alert in rule.get("alerts") or () if _in_reach(bound, alert)}
    state = next((word for word in ("firing", "pending") if word in states), "inactive")
    return {**rule, "state": state}


def _labels(item: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in item.items()}


def _label_name(label: str) -> str:
    if not (label.isascii() and label.isidentifier() and checked_length(label)):
        raise Refused(f"{label[:40]!r} is not the name of a label")
    return label


@contextmanager
def _told() -> Iterator[None]:
    """Raises ToolError for a refused request."""
    try:
        yield
    except (PrometheusError, Refused) as error:
        raise ToolError(str(error)) from error
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ToolError(f"the answer of Prometheus is not understood: {type(error).__name__}") from error
