"""Renders what containers use (metrics API) beside what they request and may use at most."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tarsy.kubernetes_tools.quantities import format_bytes, format_cpu, format_share, parse_quantity

MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """Use of one container in cores and bytes; None: not measured, or not declared."""

    pod: str
    container: str
    cpu: float | None
    memory: float | None
    requests: tuple[float | None, float | None] = (None, None)
    limits: tuple[float | None, float | None] = (None, None)

    @property
    def pressure(self) -> float:
        """Returns the largest share of a limit, or of a request where there is no limit, that is in use."""
        shares = []
        for used, limit, request in zip((self.cpu, self.memory), self.limits, self.requests, strict=True):
            total = limit or request
            if used is not None and total:
                shares.append(used / total)
        return max(shares, default=-1.0)

    def line(self) -> str:
        """Returns the row of this container."""
        parts = [f"{self.pod} {self.container}"]
        for name, used, request, limit, write in zip(
            ("cpu", "memory"),
            (self.cpu, self.memory),
            self.requests,
            self.limits,
            (format_cpu, format_bytes),
            strict=True,
        ):
            shown = "not-measured" if used is None else write(used)
            of = f"limit={write(limit) if limit else 'none'}"
            share = f" ({format_share(used, limit)} of limit)" if used is not None and limit else ""
            parts.append(f"{name}={shown} request={write(request) if request else 'none'} {of}{share}")
        return " | ".join(parts)


def container_usage(
    pods: Iterable[Mapping[str, Any]], measured: Iterable[Mapping[str, Any]]
) -> tuple[ContainerUsage, ...]:
    """Joins pods with PodMetrics by name, the container nearest to its limit first."""
    used = {
        (_name(item), str(container.get("name"))): container.get("usage") or {}
        for item in measured
        for container in item.get("containers") or ()
    }
    rows = []
    for pod in pods:
        for container in (pod.get("spec") or {}).get("containers") or ():
            key = (_name(pod), str(container.get("name")))
            resources, now = container.get("resources") or {}, used.get(key) or {}
            cpu, memory = _pair(now)
            rows.append(
                ContainerUsage(*key, cpu, memory, _pair(resources.get("requests")), _pair(resources.get("limits")))
            )
    return tuple(sorted(rows, key=lambda row: (-row.pressure, row.pod, row.container)))


def render_usage(rows: Iterable[ContainerUsage], when: str | None) -> str:
    """Renders at most MOST_ROWS rows, with what was left out."""
    rows = tuple(rows)
    if not rows:
        return "no pods"
    head = f"measured at {when}; " if when else "the metrics API has measured none of these pods yet; "
    lines = [f"{head}the container nearest to its limit first"]
    lines += [row.line() for row in rows[:MOST_ROWS]]
    if len(rows) > MOST_ROWS:
        lines.append(f"[{len(rows) - MOST_ROWS} more containers use less of their limits; narrow by label_selector]")
    return "\n".join(lines)


def _pair(resources: Mapping[str, Any] | None) -> tuple[float | None, float | None]:
    found = resources or {}
    return (
        parse_quantity(found["cpu"]) if "cpu" in found else None,
        parse_quantity(found["memory"]) if "memory" in found else None,
    )


def _name(item: Mapping[str, Any]) -> str:
    return str((item.get("metadata") or {}).get("name"))
