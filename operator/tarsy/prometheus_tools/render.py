"""Renders results of Prometheus for a model: few rows, the most telling first, and what was left out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tarsy.prometheus_tools.picture import write_picture, write_time
from tarsy.prometheus_tools.series import NAME, Series, is_number, quote, write_labels, write_value
from tarsy.prometheus_tools.statistics import Threshold, summarize
from tarsy.prometheus_tools.times import TimeRange

MOST_ROWS, MOST_PICTURES, MOST_NAMES = 50, 10, 300
LONGEST_ROW = 800
_COUNTERS = ("_total", "_count", "_sum", "_bucket")


def render_instant(series: Sequence[Series], warnings: Iterable[str]) -> str:
    """Renders the result of an instant query, the largest value first; NaN comes last."""
    if not series:
        return "no series: nothing matches now. A metric that never existed and one that is gone look the same."
    when = max((point.time for one in series for point in one.points), default=None)
    lines = [f"{len(series)} series" + (f" at {write_time(when)}" if when is not None else "")]
    if note := _common(series):
        lines.append(f"all have {note}")
    shared = _shared(series)
    rows = sorted(series, key=lambda one: _order(one.points[-1].value if one.points else float("nan")))
    for one in rows[:MOST_ROWS]:
        labels = write_labels({key: value for key, value in one.labels.items() if key not in shared})
        value = write_value(one.points[-1].value) if one.points else "no sample"
        lines.append(cut(f"{labels} {value}"))
    lines += left_out(len(series), MOST_ROWS, "series", "aggregate with sum by (...), or take topk(10, ...)")
    return "\n".join([*lines, *(f"[Prometheus warns: {word}]" for word in warnings)])


def render_range(
    series: Sequence[Series], window: TimeRange, threshold: Threshold | None, warnings: Iterable[str]
) -> str:
    """Renders the result of a range query as figures and shapes: breaches first, then the clearest changes.

    Args:
        series: the result.
        window: times and step of the query.
        threshold: of the alert; None: it has none.
        warnings: of Prometheus.
    """
    head = f"{len(series)} series from {write_time(window.start)} to {write_time(window.end)}, step {window.step:g}s"
    if not series:
        return f"{head}: nothing matched in this time"
    finite = [one for one in series if any(is_number(point.value) for point in one.points)]
    finite.sort(key=lambda one: _interest(one, threshold), reverse=True)
    lines = [head]
    for one in finite[:MOST_PICTURES]:
        counter = is_counter(one.labels)
        if summary := summarize(one.points, window.step, threshold=threshold, counter=counter):
            lines.append(write_picture(cut(one.title), one.points, summary, window.start, window.end, threshold))
        if counter:
            lines.append("  [this is a counter: query rate(...[5m]) of it to see how fast it grows]")
    lines += left_out(len(finite), MOST_PICTURES, "series", "they changed less; aggregate, or narrow the labels")
    if len(finite) < len(series):
        lines.append(f"[{len(series) - len(finite)} series have no finite sample in this time]")
    return "\n".join([*lines, *(f"[Prometheus warns: {word}]" for word in warnings)])


def render_names(names: Sequence[str], what: str) -> str:
    """Renders names or values of labels, one a line, quoted where they have other than plain characters."""
    lines = [f"{len(names)} {what}"]
    lines += [
        cut(name if name.replace("_", "").replace(":", "").isalnum() else quote(name)) for name in names[:MOST_NAMES]
    ]
    return "\n".join([*lines, *left_out(len(names), MOST_NAMES, what, "narrow by match")])


def render_labelsets(found: Sequence[Mapping[str, str]]) -> str:
    """Renders series without their samples."""
    if not found:
        return "no series match"
    lines = [f"{len(found)} series", *(cut(write_labels(labels)) for labels in found[:MOST_ROWS])]
    return "\n".join([*lines, *left_out(len(found), MOST_ROWS, "series", "narrow by more matchers")])


def render_alerts(alerts: Sequence[Mapping[str, Any]]) -> str:
    """Renders alerts of Prometheus with their values, firing ones first."""
    if not alerts:
        return "no alert is pending or firing"
    rows = sorted(alerts, key=lambda alert: (alert.get("state") != "firing", str(alert.get("activeAt"))))
    lines = []
    for alert in rows[:MOST_ROWS]:
        labels = {str(k): str(v) for k, v in (alert.get("labels") or {}).items()}
        notes = alert.get("annotations") or {}
        said = " ".join(str(notes.get("summary") or notes.get("description") or notes.get("message") or "").split())
        name = labels.pop("alertname", "?")
        lines.append(
            cut(
                f"{alert.get('state')} {name}{write_labels(labels)} value={alert.get('value')} "
                f"since={alert.get('activeAt')} {said}".rstrip()
            )
        )
    return "\n".join([f"{len(alerts)} alerts", *lines, *left_out(len(rows), MOST_ROWS, "alerts", "narrow by name")])


def render_rules(rules: Sequence[Mapping[str, Any]], hidden: int) -> str:
    """Renders rules with their expressions; `hidden` is how many are about namespaces out of reach."""
    lines = []
    for rule in rules[:MOST_ROWS]:
        kind = "alert" if rule.get("type") == "alerting" else "record"
        words = [f"{kind} {rule.get('name')}: {' '.join(str(rule.get('query')).split())}"]
        if rule.get("duration"):
            words.append(f"for={rule['duration']:g}s")
        words.append(f"state={rule.get('state', '-')} health={rule.get('health')}")
        if labels := rule.get("labels"):
            words.append(f"labels={write_labels({str(k): str(v) for k, v in labels.items()})}")
        lines.append(cut(" ".join(words)))
    lines += left_out(len(rules), MOST_ROWS, "rules", "narrow by name")
    if hidden:
        lines.append(f"[{hidden} rules that match are about other namespaces and not shown]")
    return "\n".join(lines) or "no rule matches"


def render_targets(targets: Sequence[Mapping[str, Any]]) -> str:
    """Renders scrape targets, those that are down first."""
    if not targets:
        return "no scrape target in reach"
    rows = sorted(targets, key=lambda target: target.get("health") == "up")
    lines = [f"{len(rows)} targets, {sum(row.get('health') != 'up' for row in rows)} of them not up"]
    for target in rows[:MOST_ROWS]:
        labels = write_labels({str(k): str(v) for k, v in (target.get("labels") or {}).items()})
        error = f" error: {' '.join(str(target['lastError']).split())}" if target.get("lastError") else ""
        lines.append(cut(f"{target.get('health')} {labels} last scrape {target.get('lastScrape')}{error}"))
    return "\n".join([*lines, *left_out(len(rows), MOST_ROWS, "targets", "they are up or like these")])


def left_out(count: int, most: int, what: str, remedy: str) -> list[str]:
    """Returns the line about rows beyond `most`, if there are any."""
    return [f"[{count - most} more {what} are left out: {remedy}]"] if count > most else []


def cut(text: str) -> str:
    """Returns a row of at most LONGEST_ROW characters."""
    return text if len(text) <= LONGEST_ROW else f"{text[:LONGEST_ROW]}... ({len(text)} characters)"


def is_counter(labels: Mapping[str, str]) -> bool:
    """Reports whether a series is a counter, by its name; a result of a function has none."""
    return labels.get(NAME, "").endswith(_COUNTERS)


def _interest(series: Series, threshold: Threshold | None) -> tuple[bool, float]:
    """Returns what sorts a series: whether it breached the threshold, then its height in relation to its level."""
    values = [point.value for point in series.points if is_number(point.value)]
    low, high = min(values), max(values)
    level = max(abs(low), abs(high))
    breached = threshold is not None and (threshold.breached(high) or threshold.breached(low))
    return breached, high / level - low / level if level else 0.0


def _order(value: float) -> tuple[bool, float]:
    return (value != value, -value if value == value else 0.0)


def _shared(series: Sequence[Series]) -> frozenset[str]:
    """Returns the labels that all of several series have with the same value, the metric's name not among them."""
    if len(series) < 3:
        return frozenset()
    first = series[0].labels
    return frozenset(
        key for key, value in first.items() if key != NAME and all(s.labels.get(key) == value for s in series)
    )


def _common(series: Sequence[Series]) -> str:
    shared = _shared(series)
    return write_labels({key: value for key, value in series[0].labels.items() if key in shared}) if shared else ""
