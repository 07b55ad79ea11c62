"""Tests counters and gauges, and that no label accepts values of users."""

import asyncio
import re
from pathlib import Path
from typing import get_args

import pytest

from for_each import for_each
from tarsy.controllers.readiness.metrics import AVAILABLE, NOTIFYING
from tarsy.llm.protocol import ModelErrorCode
from tarsy.observe import metric_table as table
from tarsy.observe.metrics import KEPT_SECONDS, UNMATCHED, Metrics, UndeclaredLabel
from tarsy.plan.model import HttpTransport, StdioTransport
from tarsy.record.finding import Confidence
from tarsy.record.history import BudgetLimit
from tarsy.record.run import ModelCallKind, StageKind, State
from tarsy.resources.v1alpha1 import KINDS, LLMProvider
from tarsy.resources.v1alpha1.common import Strategy
from tarsy.runtime.judge_models import JUDGE_KINDS

OPERATOR = Path(__file__).parents[3] / "operator" / "tarsy"


def told(metrics: Metrics) -> list[str]:
    return asyncio.run(metrics.text()).decode().splitlines()


def test_what_was_counted_is_told_as_prometheus_reads_it() -> None:
    metrics = Metrics()
    assert f"{table.SWEPT.name} 0.0" in told(metrics)

    metrics.add(table.SWEPT)
    metrics.add(table.SWEPT, 2)
    metrics.add(table.MODEL_TOKENS, 7, provider_type="google", kind="output")
    metrics.observe(table.TOOL_SECONDS, 0.3, transport="http")

    lines = told(metrics)
    assert f"# TYPE {table.SWEPT.name} counter" in lines
    assert f"{table.SWEPT.name} 3.0" in lines
    assert 'tarsy_llm_tokens_total{kind="output",provider_type="google"} 7.0' in lines
    assert 'tarsy_mcp_duration_seconds_bucket{le="0.25",transport="http"} 0.0' in lines
    assert 'tarsy_mcp_duration_seconds_bucket{le="0.5",transport="http"} 1.0' in lines
    assert 'tarsy_mcp_duration_seconds_count{transport="http"} 1.0' in lines
    assert not [line for line in lines if "_created" in line]


def test_every_closed_series_is_there_before_its_first_event() -> None:
    lines = told(Metrics())
    for state in ("completed", "failed", "cancelled", "timed_out"):
        assert f'tarsy_investigations_terminal_total{{kind="investigation",state="{state}"}} 0.0' in lines
    for fate in ("investigated", "folded", "resolved", "rejected"):
        assert f'tarsy_intake_notifications_total{{fate="{fate}"}} 0.0' in lines


def test_processes_count_for_themselves() -> None:
    one, other = Metrics(), Metrics()
    one.add(table.SWEPT)
    assert (one.value(table.SWEPT), other.value(table.SWEPT)) == (1.0, 0.0)


def test_what_nobody_declared_is_not_counted() -> None:
    metrics = Metrics()
    surprise = table.Metric("tarsy_surprises_total", "counter", "Never.")
    with pytest.raises(KeyError):
        metrics.add(surprise)
    with pytest.raises(KeyError):
        metrics.add(table.WAIT, kind="question")
    with pytest.raises(KeyError):
        metrics.observe(table.SWEPT, 1.0)


def test_a_label_takes_no_value_that_it_does_not_declare() -> None:
    metrics = Metrics()
    with pytest.raises(UndeclaredLabel):
        metrics.add(table.INTAKE, fate="kube-system/secret")
    metrics.add(table.MODEL_ERRORS, provider_type="team-a/openai", code="password=hunter2")
    metrics.add(table.HTTP_REQUESTS, route=metrics.route("/../etc"), method="BREW", status="4xx")
    text = "\n".join(told(metrics))
    assert 'tarsy_llm_errors_total{code="other",provider_type="other"} 1.0' in text
    assert f'tarsy_http_requests_total{{method="other",route="{UNMATCHED}",status="4xx"}} 1.0' in text
    assert not re.search("hunter2|team-a|kube-system|BREW|etc", text)


def test_only_the_routes_of_this_process_are_values_of_route() -> None:
    metrics = Metrics()
    metrics.know_routes(["/api/v1/namespaces/{namespace}/investigations/{name}"])
    assert metrics.route("/api/v1/namespaces/{namespace}/investigations/{name}").startswith("/api/v1/")
    assert metrics.route("/api/v1/namespaces/shop/investigations/secret") == UNMATCHED
    assert metrics.route(None) == UNMATCHED


@for_each("metric", table.ALL, ids=lambda metric: metric.name)
def test_every_metric_is_named_as_prometheus_wants_and_labelled_from_closed_sets(metric: table.Metric) -> None:
    assert re.fullmatch(r"tarsy_[a-z_]+", metric.name) and metric.help.endswith(".")
    assert (metric.type == "counter") == metric.name.endswith("_total")
    assert bool(metric.buckets) == (metric.type == "histogram") and list(metric.buckets) == sorted(metric.buckets)
    for label in metric.labels:
        assert label is table.ROUTE or (label.values and len(label.values) == len(set(label.values)) <= 20)
        assert label.name not in ("namespace", "name", "chain", "provider", "server", "user", "alert", "model", "tool")


def test_names_are_used_once() -> None:
    assert len({metric.name for metric in table.ALL}) == len(table.ALL)


def test_every_metric_is_counted_somewhere() -> None:
    roots = (OPERATOR, OPERATOR / "controllers")  # a link, which `rglob` does not follow
    files = (path for root in roots for path in root.rglob("*.py") if path.name != "metric_table.py")
    words = {word for path in files for word in re.findall(r"\w+", path.read_text())}
    metrics = {name for name, found in vars(table).items() if isinstance(found, table.Metric)}
    assert metrics - words == set()


def closed(label: table.Label) -> set[str]:
    return {value for value in label.values or () if value != table.OTHER}


def test_labels_know_the_words_of_the_other_rooms() -> None:
    assert closed(table.ENDS) == {state.value for state in State if state.finished}
    assert closed(table.STAGE_KIND) == {kind.value for kind in StageKind}
    assert closed(table.CALL_KIND) == {kind.value for kind in ModelCallKind} | set(JUDGE_KINDS.values())
    assert closed(table.MODEL_ERROR) == {code.value for code in ModelErrorCode}
    assert closed(table.CONFIDENCE) == {*(found.value for found in Confidence), "none"}
    assert closed(table.LIMIT) == {limit.value for limit in BudgetLimit}
    assert closed(table.STRATEGY) == set(get_args(Strategy))
    spec = LLMProvider.model_fields["spec"].annotation
    assert spec is not None
    assert closed(table.PROVIDER_TYPE) == set(get_args(spec.model_fields["type"].annotation))
    transports = {t for of in (StdioTransport, HttpTransport) for t in get_args(of.model_fields["type"].annotation)}
    assert closed(table.TRANSPORT) == transports
    assert closed(table.CONFIGURATION) == set(KINDS) - {
        "Alert",
        "Investigation",
        "ChatMessage",
        "EvalRun",
        "ToolApproval",
        "Review",
    }
    assert closed(table.CONFIGURATION) >= {AVAILABLE, *NOTIFYING}
    assert {kind for kind in KINDS if "notify" in KINDS[kind].model_fields["spec"].annotation.model_fields} == set(
        NOTIFYING
    )


def test_what_is_kept_elsewhere_is_read_when_somebody_asks() -> None:
    metrics, places = Metrics(), 3
    metrics.pull(table.PLACES, lambda: {(): places})
    metrics.pull(table.CONNECTIONS, lambda: {("runs", "used"): 1, ("runs", "idle"): 2})
    metrics.pull(table.CONNECTIONS, lambda: {("http", "used"): 4})
    metrics.pull(table.SLOW, lambda: {("runs",): 5})
    assert "tarsy_worker_places 3.0" in told(metrics)
    places = 4
    lines = told(metrics)
    assert "tarsy_worker_places 4.0" in lines
    assert 'tarsy_postgres_connections{pool="http",state="used"} 4.0' in lines
    assert 'tarsy_postgres_slow_calls_total{pool="runs"} 5.0' in lines
    assert lines.count("# TYPE tarsy_postgres_connections gauge") == 1


class Record:
    """Postgres, as far as metrics ask it; `now` is the clock."""

    def __init__(self) -> None:
        self.now, self.asked = 1000.0, 0
        self.error: Exception | None = None
        self.metrics = Metrics(clock=lambda: self.now)
        self.metrics.read_record(self.read)

    async def read(self) -> dict[table.Metric, dict[tuple[str, ...], float]]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return {table.QUEUED: {(): self.asked}, table.QUESTIONS: {("queued",): 2}}


def test_the_record_is_asked_once_in_a_while_however_many_scrape() -> None:
    record = Record()

    async def scrape() -> None:
        await asyncio.gather(*(record.metrics.text() for _ in range(5)))

    asyncio.run(scrape())
    assert record.asked == 1
    record.now += KEPT_SECONDS - 0.1
    assert "tarsy_investigations_queued 1.0" in told(record.metrics)
    record.now += 0.1
    lines = told(record.metrics)
    assert "tarsy_investigations_queued 2.0" in lines and "tarsy_record_up 1.0" in lines
    assert 'tarsy_questions_open{state="queued"} 2.0' in lines


def test_while_the_record_is_away_what_it_said_is_not_told_and_the_rest_is() -> None:
    record = Record()
    told(record.metrics)
    record.now, record.error = record.now + KEPT_SECONDS, OSError("postgres://me:hunter2@db is away")
    record.metrics.add(table.SWEPT)

    lines = told(record.metrics)

    assert "tarsy_record_up 0.0" in lines and f"{table.SWEPT.name} 1.0" in lines
    assert not [line for line in lines if line.startswith("tarsy_investigations_queued")]
    assert "hunter2" not in "\n".join(lines)


async def test_a_record_that_does_not_answer_holds_up_no_scrape_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.observe.metrics.READ_SECONDS", 0.01)
    metrics = Metrics()
    metrics.read_record(lambda: asyncio.Event().wait())  # type: ignore[arg-type,return-value]
    assert b"tarsy_record_up 0.0" in await metrics.text()


def test_a_text_that_cannot_be_masked_is_counted_and_still_an_error() -> None:
    def mask(text: str) -> str:
        if text == "bad":
            raise ValueError(text)
        return text.upper()

    metrics = Metrics()
    watched = metrics.watched(mask, "tool_results")
    assert watched("good") == "GOOD"
    with pytest.raises(ValueError, match="bad"):
        watched("bad")
    assert metrics.value(table.MASKING_FAILED, what="tool_results") == 1
