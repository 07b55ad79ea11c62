"""Counts and measures the metrics of a process, and formats them for Prometheus.

Decision: each process has one `Metrics`, created by the composition root and passed as an argument; there is no global
registry, and an undeclared metric is an error. Counting is a dictionary lookup and an addition, and never waits. Values
with a source of their own (a queue in Postgres, a pool) are not counted again but read at each scrape, within a time
limit and at most every few seconds; while they cannot be read, they are omitted. Series with declared labels start at
0, so that their first increase is visible.
"""

import asyncio
import itertools
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from tarsy.observe.metric_table import ALL, MASKING_FAILED, OTHER, RECORD_UP, Label, Metric

_log = logging.getLogger(__name__)
READ_SECONDS = 2.0
KEPT_SECONDS = 5.0
UNMATCHED = "unmatched"
_PREPARED = 256
"""Maximum number of label combinations that are created in advance."""

_Values = Mapping[tuple[str, ...], float]
"""Values by label values, in the order of the labels."""
GaugeReading = Mapping[Metric, _Values]


class UndeclaredLabel(ValueError):
    """A label does not declare the value."""


class Metrics:
    """All metrics of a process.

    Args:
        clock: monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._registry = CollectorRegistry()
        self._made = {metric: _made(metric, self._registry) for metric in ALL if not metric.asked}
        self._children: dict[tuple[Metric, tuple[str, ...]], Counter | Histogram] = {}
        self._routes = {UNMATCHED}
        self._pulled: list[tuple[Metric, Callable[[], _Values]]] = []
        self._reads: list[Callable[[], Awaitable[GaugeReading]]] = []
        self._record: GaugeReading = {}
        self._read_at = -math.inf
        self._reading = asyncio.Lock()
        self._prepared = False
        self._registry.register(_Asked(self._asked))

    def add(self, metric: Metric, by: float = 1, **labels: str) -> None:
        """Increases a counter.

        Args:
            metric: a counter.
            by: the increase.
            labels: values of its labels.

        Raises:
            KeyError: the metric is not a counter, or has other labels.
            UndeclaredLabel: a label does not declare the value.
        """
        child = self._child(metric, tuple([labels[label.name] for label in metric.labels]))
        if not isinstance(child, Counter):
            raise KeyError(metric.name)
        child.inc(by)

    def observe(self, metric: Metric, seconds: float, **labels: str) -> None:
        """Adds a duration to a histogram. Raises like `add`.

        Args:
            metric: a histogram.
            seconds: the duration.
            labels: values of its labels.
        """
        child = self._child(metric, tuple([labels[label.name] for label in metric.labels]))
        if not isinstance(child, Histogram):
            raise KeyError(metric.name)
        child.observe(max(0.0, seconds))

    def pull(self, metric: Metric, read: Callable[[], _Values]) -> None:
        """Registers a function that reads the values of a metric at each scrape; it must be fast."""
        self._pulled.append((metric, read))

    def read_record(self, read: Callable[[], Awaitable[GaugeReading]]) -> None:
        """Registers a function that reads gauges from Postgres at a scrape; while it fails, they are omitted."""
        self._reads.append(read)

    def know_routes(self, templates: Iterable[str]) -> None:
        """Declares the templates of routes, the values of the label `route`."""
        self._routes.update(templates)

    def route(self, template: str | None) -> str:
        """Returns the value of the label `route` for the template of a request."""
        return template if template in self._routes else UNMATCHED

    def value(self, metric: Metric, **labels: str) -> float:
        """Returns the value of a counter, or the number of observations of a histogram."""
        name = metric.name + "_count" if metric.type == "histogram" else metric.name
        return self._registry.get_sample_value(name, labels) or 0.0

    async def text(self) -> bytes:
        """Formats all metrics in the text format of Prometheus."""
        await self._read_all()
        self._prepare()
        return generate_latest(_WithoutBirthdays(self._registry))

    def watched(self, mask: Callable[[str], str], what: str) -> Callable[[str], str]:
        """Wraps a masker, and counts its failures.

        Args:
            mask: the masker.
            what: value of the label `what`.
        """

        def counted(text: str) -> str:
            try:
                return mask(text)
            except Exception:
                self.add(MASKING_FAILED, what=what)
                raise

        return counted

    async def _read_all(self) -> None:
        async with self._reading:  # concurrent scrapes share one read
            if not self._reads or self._clock() - self._read_at < KEPT_SECONDS:
                return
            found: dict[Metric, _Values] = {RECORD_UP: {(): 1.0}}
            try:
                async with asyncio.timeout(READ_SECONDS):
                    for read in self._reads:
                        found.update(await read())
            except Exception as error:  # other metrics are served anyway
                _log.warning("cannot read the metrics of the record: %s", str(error) or type(error).__name__)
                found = {RECORD_UP: {(): 0.0}}
            self._record, self._read_at = found, self._clock()

    def _asked(self) -> Iterator[tuple[Metric, _Values]]:
        yield from self._record.items()
        for metric, read in self._pulled:
            yield metric, read()

    def _prepare(self) -> None:
        """Creates the series with declared labels, at the first scrape: a `Metrics` that nobody scrapes stays small."""
        if self._prepared:
            return
        self._prepared = True
        for metric in self._made:
            closed = [label.values for label in metric.labels if label.values is not None]
            if len(closed) == len(metric.labels) and math.prod(map(len, closed)) <= _PREPARED:
                for combination in itertools.product(*closed):
                    self._child(metric, combination)

    def _child(self, metric: Metric, labels: tuple[str, ...]) -> Counter | Histogram:
        known = self._children.get((metric, labels))
        if known is None:
            values = tuple(self._value(label, given) for label, given in zip(metric.labels, labels, strict=True))
            known = self._children.get((metric, values))
            if known is None:
                made = self._made[metric]
                known = self._children[metric, values] = made.labels(*values) if values else made
        return known

    def _value(self, label: Label, given: str) -> str:
        if given in (self._routes if label.values is None else label.values):
            return given
        if label.values is not None and OTHER in label.values:
            return OTHER
        raise UndeclaredLabel(f"{given!r} is not a value of the label {label.name}")


class _Asked(Collector):
    """Collects metrics with a source of their own; several readings of one metric become one family."""

    def __init__(self, read: Callable[[], Iterable[tuple[Metric, _Values]]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Family]:
        told: dict[Metric, dict[tuple[str, ...], float]] = {}
        for metric, values in self._read():
            told.setdefault(metric, {}).update(values)
        for metric, values in told.items():
            names = [label.name for label in metric.labels]
            family = GaugeMetricFamily if metric.type == "gauge" else CounterMetricFamily
            made = family(metric.name, metric.help, labels=names)
            for labels, value in values.items():
                made.add_metric(list(labels), value)
            yield made

    def describe(self) -> Iterable[Family]:
        """Describes nothing, so that registration reads no values."""
        return ()


class _WithoutBirthdays(Collector):
    """Collects a registry without the `_created` series of the client library."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Family]:
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


def _made(metric: Metric, registry: CollectorRegistry) -> Counter | Histogram:
    names = [label.name for label in metric.labels]
    if metric.type == "counter":
        return Counter(metric.name, metric.help, names, registry=registry)
    return Histogram(metric.name, metric.help, names, buckets=metric.buckets, registry=registry)
