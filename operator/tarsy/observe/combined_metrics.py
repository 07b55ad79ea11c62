"""Combines the metrics of the processes of a pod into those of the pod.

Each process formats its own metrics as text; the table says how the values of several processes become one. What a
process that has ended counted stays part of the totals, so a counter never decreases when a process is replaced.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from tarsy.observe.metric_table import ALL

_COMBINE: Final[dict[str, Callable[[float, float], float]]] = {
    metric.name: {"max": max, "min": min}[metric.aggregate] for metric in ALL if metric.aggregate != "sum"
}


def combine(texts: Iterable[bytes]) -> bytes:
    """Returns the metrics of several processes as those of one, in the text format of Prometheus.

    Args:
        texts: the metrics of each process, in the same format; an empty text has none.
    """
    families: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, frozenset[tuple[str, str]]], int]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text.decode()):
            made = families.setdefault(family.name, Family(family.name, family.documentation, family.type))
            places = values.setdefault(family.name, {})
            together = _COMBINE.get(family.name)
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                place = places.setdefault(key, len(made.samples))
                if place == len(made.samples):
                    made.samples.append(sample)
                else:
                    before = made.samples[place]
                    value = together(before.value, sample.value) if together else before.value + sample.value
                    made.samples[place] = sample._replace(value=value)
    return _text(families.values())


def lasting(text: bytes) -> bytes:
    """Returns what stays true of a process that has ended: its counters and histograms, no gauges."""
    return _text(family for family in text_string_to_metric_families(text.decode()) if family.type != "gauge")


@dataclass(frozen=True, slots=True)
class _Families(Collector):
    found: Iterable[Family]

    def collect(self) -> Iterator[Family]:
        yield from self.found


def _text(families: Iterable[Family]) -> bytes:
    return generate_latest(_Families(families))
