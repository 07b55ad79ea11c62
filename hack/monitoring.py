"""Generates the table of all metrics and the Grafana dashboard.

`python hack/monitoring.py` writes both into `manifests/components/monitoring`; a test checks that they are current.
Decision: one source, `tarsy.observe.metric_table`; a panel here is a title, a unit and PromQL, and the rest of a
dashboard's JSON is made, so that a change of it can be read.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tarsy.observe.metric_table import ALL, Label, Metric

FOLDER = Path(__file__).parents[1] / "manifests" / "components" / "monitoring"
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 24


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph; `shown` are PromQL expressions with the names of their lines."""

    title: str
    unit: str
    shown: tuple[tuple[str, str], ...]


def rate(metric: str, by: str = "", where: str = "") -> str:
    """Returns the PromQL rate of a counter per second, by the labels `by`, filtered by `where`."""
    of = f"sum by ({by}) " if by else "sum"
    return f"{of}(rate({metric}{where}[$__rate_interval]))"


def grown(metric: str, by: str = "", where: str = "") -> str:
    """Returns the PromQL increase of a counter in a step of the graph, by the labels `by`, filtered by `where`."""
    of = f"sum by ({by}) " if by else "sum"
    return f"{of}(increase({metric}{where}[$__rate_interval]))"


def quantile(q: float, metric: str, by: str = "", where: str = "") -> str:
    """Returns the PromQL quantile `q` (0 to 1) of a histogram `metric`, by the labels `by`, filtered by `where`."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({q}, sum by ({labels}) (rate({metric}_bucket{where}[$__rate_interval])))"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Investigations",
        (
            Panel(
                "Waiting and running",
                "short",
                (
                    ("max(tarsy_investigations_queued)", "waiting"),
                    ("max(tarsy_investigations_running)", "running"),
                    ("max by (reason) (tarsy_investigations_parked)", "parked, {{reason}}"),
                    ("max by (state) (tarsy_questions_open)", "questions, {{state}}"),
                ),
            ),
            Panel(
                "Begun and ended",
                "short",
                (
                    (grown("tarsy_investigations_submitted_total", "kind"), "{{kind}} accepted"),
                    (grown("tarsy_investigations_terminal_total", "kind, state"), "{{kind}} {{state}}"),
                    (grown("tarsy_defaulted_alerts_total"), "taken by a default chain"),
                ),
            ),
            Panel(
                "How long they take",
                "s",
                (
                    (quantile(0.5, "tarsy_investigation_duration_seconds", "kind"), "{{kind}}, half"),
                    (quantile(0.95, "tarsy_investigation_duration_seconds", "kind"), "{{kind}}, 95 %"),
                ),
            ),
            Panel(
                "How long they wait",
                "s",
                (
                    (quantile(0.95, "tarsy_investigation_wait_seconds", "kind"), "{{kind}}, 95 %"),
                    ("max(tarsy_investigations_queued_oldest_seconds)", "the oldest that waits"),
                    (quantile(0.95, "tarsy_investigation_parked_seconds", "reason"), "parked, {{reason}}, 95 %"),
                ),
            ),
            Panel(
                "Stages and agents",
                "short",
                (
                    (grown("tarsy_stages_total", "kind, state"), "stage, {{kind}} {{state}}"),
                    (grown("tarsy_agent_executions_total", "strategy, state"), "{{strategy}} {{state}}"),
                    (grown("tarsy_sub_agent_dispatches_total", "result"), "sub-agent {{result}}"),
                    (grown("tarsy_skill_loads_total", "outcome"), "skill load {{outcome}}"),
                    (
                        grown("tarsy_action_stages_total", "acted, model_says"),
                        "action stage, acted: {{acted}}, its model says {{model_says}}",
                    ),
                    (grown("tarsy_escalations_total", "outcome"), "escalation {{outcome}}"),
                    (grown("tarsy_handed_on_answers_total"), "call answered by a first attempt"),
                ),
            ),
            Panel(
                "Findings and their evidence",
                "short",
                (
                    (grown("tarsy_findings_total", "confidence"), "{{confidence}}"),
                    (grown("tarsy_evidence_citations_total", "outcome"), "citations that {{outcome}}"),
                    (grown("tarsy_evidence_degraded_total"), "without a tool server"),
                ),
            ),
            Panel(
                "Times of schedules",
                "short",
                ((grown("tarsy_schedule_firings_total", "result"), "{{result}}"),),
            ),
            Panel(
                "Verdicts on findings",
                "short",
                ((grown("tarsy_finding_verdicts_total", "confidence, verdict"), "{{confidence}}: {{verdict}}"),),
            ),
            Panel(
                "Scores by judges",
                "short",
                (
                    (grown("tarsy_scores_total", "result"), "{{result}}"),
                    (quantile(0.5, "tarsy_score_points"), "points, median"),
                    (grown("tarsy_scoring_tokens_total") + " / 1000", "thousand tokens"),
                ),
            ),
            Panel(
                "Outcomes of incidents",
                "short",
                ((grown("tarsy_incident_outcomes_total", "confidence, outcome"), "{{confidence}}: {{outcome}}"),),
            ),
            Panel(
                "Earlier investigations",
                "short",
                (
                    (grown("tarsy_precedent_searches_total", "outcome"), "searches: {{outcome}}"),
                    (grown("tarsy_precedents_told_total", "ending"), "told, {{ending}}"),
                ),
            ),
            Panel(
                "Evaluations",
                "short",
                (
                    (grown("tarsy_eval_samples_total", "outcome"), "samples {{outcome}}"),
                    (grown("tarsy_eval_runs_total", "verdict"), "EvalRuns {{verdict}}"),
                ),
            ),
        ),
    ),
    (
        "Models",
        (
            Panel(
                "Calls",
                "short",
                ((grown("tarsy_llm_calls_total", "provider_type, kind"), "{{provider_type}} {{kind}}"),),
            ),
            Panel(
                "Errors and changes of provider",
                "short",
                (
                    (grown("tarsy_llm_errors_total", "provider_type, code"), "{{provider_type}} {{code}}"),
                    (grown("tarsy_llm_fallbacks_total", "code"), "changed for {{code}}"),
                ),
            ),
            Panel(
                "How long calls take",
                "s",
                (
                    (quantile(0.5, "tarsy_llm_duration_seconds", "provider_type"), "{{provider_type}}, half"),
                    (quantile(0.95, "tarsy_llm_duration_seconds", "provider_type"), "{{provider_type}}, 95 %"),
                    (quantile(0.95, "tarsy_llm_limit_wait_seconds"), "waiting for its turn, 95 %"),
                ),
            ),
            Panel(
                "Tokens",
                "short",
                ((rate("tarsy_llm_tokens_total", "provider_type, kind"), "{{provider_type}} {{kind}}"),),
            ),
            Panel(
                "Share of input from prompt caches",
                "percentunit",
                (
                    (
                        rate("tarsy_llm_tokens_total", "provider_type", '{kind="cached"}')
                        + " / "
                        + rate("tarsy_llm_tokens_total", "provider_type", '{kind="input"}'),
                        "{{provider_type}}",
                    ),
                ),
            ),
            Panel(
                "US dollars",
                "currencyUSD",
                (
                    (grown("tarsy_llm_cost_usd_total", "provider_type"), "{{provider_type}}"),
                    (
                        grown("tarsy_llm_unpriced_calls_total", "provider_type"),
                        "{{provider_type}}, calls without a price",
                    ),
                ),
            ),
            Panel(
                "What stopped agents",
                "short",
                (
                    (grown("tarsy_budget_stops_total", "limit"), "budget of {{limit}}"),
                    ("max by (state) (tarsy_quotas)", "quotas, {{state}}"),
                    (grown("tarsy_guard_stops_total"), "repeated themselves"),
                    (grown("tarsy_guard_answers_total"), "calls answered from the record"),
                ),
            ),
        ),
    ),
    (
        "Tools",
        (
            Panel(
                "Calls", "short", ((grown("tarsy_mcp_calls_total", "transport, outcome"), "{{transport}} {{outcome}}"),)
            ),
            Panel(
                "Refused or failed",
                "short",
                (
                    (grown("tarsy_mcp_errors_total", "transport, outcome"), "{{transport}} {{outcome}}"),
                    (grown("tarsy_refused_tool_calls_total"), "refused by a policy"),
                    (grown("tarsy_masking_failures_total", "what"), "could not be masked: {{what}}"),
                ),
            ),
            Panel(
                "How long calls take",
                "s",
                ((quantile(0.95, "tarsy_mcp_duration_seconds", "transport"), "{{transport}}, 95 %"),),
            ),
        ),
    ),
    (
        "Alerts that come in",
        (
            Panel(
                "Notifications by fate",
                "short",
                (
                    (grown("tarsy_intake_notifications_total", "fate"), "{{fate}}"),
                    (grown("tarsy_intake_unrouted_notifications_total"), "of those rejected: no route"),
                    (grown("tarsy_intake_queue_full_total"), "sent back, too many wait"),
                ),
            ),
            Panel("Alerts owed", "short", (("max(tarsy_intake_alerts_owed)", "owed"),)),
            Panel("The oldest that is owed", "s", (("max(tarsy_intake_alerts_owed_oldest_seconds)", "age"),)),
        ),
    ),
    (
        "Notifications",
        (
            Panel(
                "Told, and not told",
                "short",
                ((grown("tarsy_notifications_total", "kind, outcome"), "{{kind}} {{outcome}}"),),
            ),
            Panel("Notifications owed", "short", (("max(tarsy_notifications_owed)", "owed"),)),
            Panel("The oldest notification owed", "s", (("max(tarsy_notifications_owed_oldest_seconds)", "age"),)),
            Panel(
                "Questions from Slack",
                "short",
                (
                    (grown("tarsy_slack_questions_total", "outcome"), "{{outcome}}"),
                    ("max(tarsy_slack_connected)", "connected"),
                ),
            ),
        ),
    ),
    (
        "History of objects",
        (
            Panel(
                "Changes",
                "short",
                (
                    (grown("tarsy_history_changes_total", "type"), "{{type}}"),
                    (grown("tarsy_history_shed_changes_total"), "not recorded"),
                    (grown("tarsy_history_evicted_versions_total"), "deleted for want of room"),
                ),
            ),
            Panel("Watches", "short", (("sum by (state) (tarsy_history_watches)", "{{state}}"),)),
        ),
    ),
    (
        "Workers and controller",
        (
            Panel(
                "Workers",
                "short",
                (
                    ("max(tarsy_workers)", "alive"),
                    ("sum(tarsy_worker_processes)", "processes"),
                    ("sum(tarsy_worker_places)", "places"),
                    ("sum by (kind) (tarsy_worker_runs)", "held, {{kind}}"),
                ),
            ),
            Panel(
                "Runs that changed hands",
                "short",
                (
                    (grown("tarsy_investigations_claimed_total", "kind, attempt"), "{{kind}} {{attempt}}"),
                    (grown("tarsy_lease_losses_total"), "lease lost"),
                    (grown("tarsy_worker_losses_total"), "worker counted as dead"),
                    (grown("tarsy_worker_process_restarts_total"), "worker process replaced"),
                    (grown("tarsy_fence_refusals_total"), "late write refused"),
                    (grown("tarsy_runs_left_total"), "left, Postgres away"),
                    (grown("tarsy_swept_investigations_total"), "ended by the sweep"),
                ),
            ),
            Panel(
                "Controller",
                "short",
                (
                    ("sum(tarsy_controller_active)", "active"),
                    ("max(tarsy_projection_pending)", "runs whose status is behind"),
                    ("max(tarsy_projection_lag_seconds)", "seconds the oldest end is behind"),
                ),
            ),
            Panel(
                "Configuration that is not in order",
                "short",
                (
                    (
                        'max by (kind, condition, status) (tarsy_configuration_objects{status!="True"})',
                        "{{kind}} {{condition}}={{status}}",
                    ),
                ),
            ),
            Panel(
                "Postgres",
                "short",
                (
                    ("min(tarsy_record_up)", "answers"),
                    ("sum by (pool, state) (tarsy_postgres_connections)", "{{pool}} {{state}}"),
                    (grown("tarsy_postgres_pool_waits_total", "pool"), "{{pool}}, waited for a connection"),
                    (grown("tarsy_postgres_slow_calls_total", "pool"), "{{pool}}, slow calls"),
                ),
            ),
            Panel(
                "HTTP",
                "reqps",
                (
                    (rate("tarsy_http_requests_total", "status"), "{{status}}"),
                    (rate("tarsy_http_refusals_total", "reason"), "{{reason}}"),
                    (quantile(0.95, "tarsy_http_duration_seconds"), "seconds, 95 %"),
                    ("sum(tarsy_ws_connections_active)", "connections that follow"),
                ),
            ),
        ),
    ),
)


def dashboard() -> str:
    """Returns the dashboard as JSON for Grafana."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"h": 1, "w": _COLUMNS, "x": 0, "y": y},
            }
        )
        y += 1
        for i, panel in enumerate(row):
            x = i * _WIDTH % _COLUMNS
            panels.append(_panel(panel, len(panels) + 1, x, y))
            if x + _WIDTH == _COLUMNS or panel is row[-1]:
                y += _HEIGHT
    board = {
        "uid": "tarsy",
        "title": "TARSy",
        "tags": ["tarsy"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}],
        },
        "panels": panels,
    }
    return json.dumps(board, indent=2) + "\n"


def _panel(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${source}"}
    targets = [
        {"refId": chr(ord("A") + i), "datasource": source, "expr": expression, "legendFormat": legend}
        for i, (expression, legend) in enumerate(panel.shown)
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": x, "y": y},
        "targets": targets,
    }


TEXT = """\
<!-- Generated by hack/monitoring.py from operator/tarsy/observe/metric_table.py: change those. -->
# Metrics of TARSy

A component for a cluster with the Prometheus Operator and a Grafana that finds dashboards by label:

```yaml
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - manifests/overlays/ha
components:
  - manifests/components/monitoring
```

It adds Services for the port `metrics` (9090) of operators and workers, a ServiceMonitor, a PrometheusRule and a
ConfigMap with the dashboard (label `grafana_dashboard: "1"`). The port is open to the namespace `monitoring` only; if
Prometheus is elsewhere, change the NetworkPolicy `tarsy-metrics`. The port serves only `/metrics`, without
authentication: the metrics below. No label contains text that people wrote.

Every rule has the label `tarsy_self: "true"`. The intake records such an alert but never investigates it, so problems
of TARSy create no work for TARSy. The annotations of a rule (`rules.yaml`) explain it and its remedy.

## Metrics that all operators share
Every operator reports the state of the whole installation (queue, workers, delays, configuration): aggregate these
metrics with `max`, never with `sum`. They are read from Postgres at a scrape, at most every five seconds and within two
seconds. If Postgres does not answer they are missing, and `tarsy_record_up` is 0. All other metrics describe one
pod: aggregate them with `sum`. A worker pod with several processes reports their values together, aggregated as the
table says; a process that ended stays part of the totals.

## Number of workers
The autoscaler of `overlays/ha` uses two of the metrics as external metrics. For prometheus-adapter:

```yaml
rules:
  external:
    - seriesQuery: 'tarsy_investigations_queued{namespace!=""}'
      resources: {overrides: {namespace: {resource: namespace}}}
      metricsQuery: 'max(<<.Series>>{<<.LabelMatchers>>})'
    - seriesQuery: 'tarsy_investigations_running{namespace!=""}'
      resources: {overrides: {namespace: {resource: namespace}}}
      metricsQuery: 'max(<<.Series>>{<<.LabelMatchers>>})'
```

The adapter needs no additional rights. An HPA in `tarsy-system` gets the metrics of the pods in `tarsy-system`.

## All metrics
"""


def readme() -> str:
    """Returns the README of the component with the table of all metrics."""
    lines = ["| metric | type | aggregate | labels | meaning |", "|---|---|---|---|---|"]
    lines += [f"| `{m.name}` | {_kind(m)} | {_take(m)} | {_labels(m.labels)} | {m.help} |" for m in ALL]
    return TEXT + "\n".join(lines) + "\n"


def _kind(metric: Metric) -> str:
    if not metric.buckets:
        return metric.type
    return f"{metric.type}, {metric.buckets[0]:g} to {metric.buckets[-1]:g}"


def _take(metric: Metric) -> str:
    return metric.aggregate


def _labels(labels: tuple[Label, ...]) -> str:
    told = (
        f"`{label.name}` (" + (", ".join(label.values) if label.values else "templates of our routes, unmatched") + ")"
        for label in labels
    )
    return "<br>".join(told)


if __name__ == "__main__":
    (FOLDER / "dashboard.json").write_text(dashboard(), "utf-8")
    (FOLDER / "README.md").write_text(readme(), "utf-8")
