"""Rules, dashboard, table and autoscaler ask for metrics that are there, with labels and values that they have."""

import importlib.util
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
import yaml

from for_each import for_each
from tarsy.observe.metric_table import ALL, Label, Metric
from tarsy.plan.matching import OWN_LABEL
from unit.manifests.shipped import MANIFESTS, ROOT, configuration, documents, installed

FOLDER = MANIFESTS / "components" / "monitoring"
METRICS = {metric.name: metric for metric in ALL}
(RULES,) = documents(FOLDER / "rules.yaml")
ALERTS = [rule for group in RULES["spec"]["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
SHOWN = [target["expr"] for panel in PANELS for target in panel["targets"]]
README = (FOLDER / "README.md").read_text("utf-8")
_SERIES = re.compile(r"\b(tarsy_\w+)(?:\{([^}]*)\})?(\[)?")
_MATCHER = re.compile(r'\s*(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"\s*(?:,|$)')
_BY = re.compile(r"\bby \(([^)]*)\)")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("monitoring", ROOT / "hack" / "monitoring.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def metric_of(series: str) -> tuple[Metric, str]:
    """The metric of a series, and which part of a histogram it is."""
    if series in METRICS:
        return METRICS[series], ""
    base, _, part = series.rpartition("_")
    assert base in METRICS and part in ("bucket", "sum", "count"), f"there is no metric {series}"
    assert METRICS[base].type == "histogram", f"{base} is no histogram"
    return METRICS[base], part


def used(expression: str) -> Iterator[tuple[Metric, str, dict[str, str], bool]]:
    """Each series of an expression: metric, part of a histogram, matchers, and whether a range of it is asked for."""
    for name, matchers, ranged in _SERIES.findall(expression):
        metric, part = metric_of(name)
        found = {label: value for label, _, value in _MATCHER.findall(matchers)}
        assert _MATCHER.sub("", matchers) == "", f"cannot read {{{matchers}}}"
        yield metric, part, found, bool(ranged)


def values(label: Label, value: str) -> list[str]:
    return [word for word in value.split("|") if label.values is None or word in label.values]


@for_each("expression", [*(rule["expr"] for rule in ALERTS), *SHOWN])
def test_an_expression_asks_for_what_is_there(expression: str) -> None:
    series = list(used(expression))
    assert series
    known: set[str] = {"le"}
    for metric, part, matchers, ranged in series:
        labels = {label.name: label for label in metric.labels}
        assert set(matchers) <= set(labels), f"{metric.name} has the labels {sorted(labels)}"
        for name, value in matchers.items():
            assert values(labels[name], value) == value.split("|"), f"{name} of {metric.name} is never {value}"
        assert ranged == (metric.type != "gauge"), f"{metric.name} is a {metric.type}"
        assert metric.type != "histogram" or part
        known |= set(labels)
    for group in _BY.findall(expression):
        assert {name.strip() for name in group.split(",")} <= known
    assert expression.count("(") == expression.count(")")
    if any(metric.aggregate == "max" for metric, *_ in series):
        assert "sum" not in expression, "every process says the same: take max"


@for_each("panel", PANELS, ids=lambda panel: panel["title"])
def test_the_name_of_a_line_is_made_of_labels_that_are_left(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        left = {name.strip() for group in _BY.findall(target["expr"]) for name in group.split(",")}
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= left


def test_panels_lie_side_by_side_and_have_numbers_of_their_own() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    places = [(p["gridPos"]["y"], p["gridPos"]["x"]) for p in DASHBOARD["panels"]]
    assert all(before < after for before, after in pairwise(places))


def test_every_metric_is_on_the_dashboard_or_in_a_rule() -> None:
    shown = {metric.name for expression in [*SHOWN, *(r["expr"] for r in ALERTS)] for metric, *_ in used(expression)}
    assert shown == set(METRICS)


def test_table_and_dashboard_are_current(generator: ModuleType) -> None:
    assert generator.readme() == README, "run hack/monitoring.py"
    assert generator.dashboard() == (FOLDER / "dashboard.json").read_text("utf-8"), "run hack/monitoring.py"
    assert re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE) == list(METRICS)


@for_each("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_about_tarsy_says_so_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"][OWN_LABEL] == "true", "the intake would investigate it"
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "runbook"}
    assert all(text.rstrip().endswith(".") for text in rule["annotations"].values())
    left = {name.strip() for group in _BY.findall(rule["expr"]) for name in group.split(",")}
    assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= left


def test_alerts_have_names_of_their_own() -> None:
    assert len({rule["alert"] for rule in ALERTS}) == len(ALERTS)


def test_the_autoscaler_asks_for_gauges_that_the_adapter_is_told_of() -> None:
    (scaler,) = documents(MANIFESTS / "overlays" / "ha" / "autoscaler.yaml")
    wanted = {m["external"]["metric"]["name"] for m in scaler["spec"]["metrics"]}
    assert all(METRICS[name].type == "gauge" and not METRICS[name].labels for name in wanted)
    (adapter,) = (text for text in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL) if "seriesQuery" in text)
    rules = yaml.safe_load(adapter)["rules"]["external"]
    assert {metric.name for rule in rules for metric, *_ in used(rule["seriesQuery"].partition("{")[0])} == wanted
    assert all(rule["metricsQuery"].startswith("max(") for rule in rules)


def test_prometheus_finds_the_port_of_every_pod_and_is_let_in_there_only() -> None:
    scraping = documents(FOLDER / "scraping.yaml")
    (monitor,) = (obj for obj in scraping if obj["kind"] == "ServiceMonitor")
    services = [obj for obj in scraping if obj["kind"] == "Service"]
    deployed = [w for w in installed("Deployment") if w["metadata"]["namespace"] == "tarsy-system"]
    pods = {w["metadata"]["name"]: w["spec"]["template"] for w in deployed}
    assert {s["spec"]["selector"]["app.kubernetes.io/name"] for s in services} == set(pods) - {"git-fetcher"}
    for service in services:
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        (port,) = service["spec"]["ports"]
        assert monitor["spec"]["endpoints"][0]["port"] == port["name"]
        (container,) = pods[service["spec"]["selector"]["app.kubernetes.io/name"]]["spec"]["containers"]
        ports = {p["name"]: p["containerPort"] for p in container["ports"]}
        assert ports[port["targetPort"]] == port["port"]
        observed = configuration()["observability"]
        assert observed["metricsPort"] == port["port"]
        assert observed["metricsHost"] == "0.0.0.0", "on loopback nobody could read them"


def test_the_dashboard_is_shipped_as_grafana_looks_for_it() -> None:
    (kustomization,) = documents(FOLDER / "kustomization.yaml")
    (made,) = kustomization["configMapGenerator"]
    assert made["files"] == ["tarsy.json=dashboard.json"]
    assert made["options"]["labels"]["grafana_dashboard"] == "1" and made["options"]["disableNameSuffixHash"]
    assert {*kustomization["resources"]} == {"rules.yaml", "scraping.yaml"}
