"""The metrics of several processes as those of one pod."""

import asyncio
from collections.abc import Callable

import pytest

from tarsy.observe import metric_table as table
from tarsy.observe.combined_metrics import combine, lasting
from tarsy.observe.metrics import Metrics


def process(change: Callable[[Metrics], None]) -> bytes:
    metrics = Metrics()
    change(metrics)
    return asyncio.run(metrics.text())


def lines(text: bytes) -> set[str]:
    return set(text.decode().splitlines())


def test_one_process_is_told_as_it_tells_itself() -> None:
    text = process(lambda metrics: metrics.add(table.SWEPT, 2))
    assert combine([text]) == text
    assert combine([b"", text]) == text
    assert combine([]) == b""


def test_counters_and_histograms_are_summed_by_their_labels() -> None:
    def one(metrics: Metrics) -> None:
        metrics.add(table.MODEL_TOKENS, 7, provider_type="google", kind="output")
        metrics.observe(table.TOOL_SECONDS, 0.3, transport="http")

    def other(metrics: Metrics) -> None:
        metrics.add(table.MODEL_TOKENS, 2, provider_type="google", kind="output")
        metrics.add(table.MODEL_TOKENS, 5, provider_type="openai", kind="output")
        metrics.observe(table.TOOL_SECONDS, 0.75, transport="http")

    told = lines(combine([process(one), process(other)]))
    assert {
        'tarsy_llm_tokens_total{kind="output",provider_type="google"} 9.0',
        'tarsy_llm_tokens_total{kind="output",provider_type="openai"} 5.0',
        'tarsy_mcp_duration_seconds_bucket{le="0.5",transport="http"} 1.0',
        'tarsy_mcp_duration_seconds_bucket{le="1.0",transport="http"} 2.0',
        'tarsy_mcp_duration_seconds_count{transport="http"} 2.0',
        'tarsy_mcp_duration_seconds_sum{transport="http"} 1.05',
    } <= told


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        (table.PLACES, (7, 6, 7), 20),
        (table.PROCESSES, (1, 1, 1), 3),
        (table.WORKERS, (3, 2, 3), 3),
        (table.RECORD_UP, (1, 0, 1), 0),
    ],
    ids=lambda value: getattr(value, "aggregate", None),
)
def test_a_gauge_is_combined_as_the_table_says(
    metric: table.Metric, values: tuple[float, ...], expected: float
) -> None:
    def told(value: float) -> bytes:
        return process(lambda metrics: metrics.pull(metric, lambda: {(): value}))

    assert f"{metric.name} {expected:.1f}" in lines(combine([told(value) for value in values]))


def test_what_an_ended_process_counted_lasts_and_its_gauges_do_not() -> None:
    def ended(metrics: Metrics) -> None:
        metrics.add(table.SWEPT, 3)
        metrics.observe(table.LIMIT_WAIT, 1)
        metrics.pull(table.PLACES, lambda: {(): 7})

    kept = lasting(process(ended))
    assert table.PLACES.name not in kept.decode()
    after = lines(combine([kept, process(lambda metrics: metrics.add(table.SWEPT))]))
    assert {f"{table.SWEPT.name} 4.0", f"{table.LIMIT_WAIT.name}_count 1.0"} <= after


def test_only_gauges_are_combined_otherwise_than_by_a_sum() -> None:
    assert {metric.type for metric in table.ALL if metric.aggregate != "sum"} == {"gauge"}
