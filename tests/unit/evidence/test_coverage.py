"""Holds the page of the rules: every rule is on it, and every analyzer of the checklist has a row."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from for_each import for_each
from tarsy.evidence.rules.table import RULES

DOCS = Path(__file__).parents[3] / "docs"
ANALYZERS = (
    "Pod", "DaemonSet", "Deployment", "ReplicaSet", "PersistentVolumeClaim", "Service", "Ingress", "StatefulSet", "Job",
    "CronJob", "Node", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ConfigMap",
    "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", "Log", "GatewayClass", "Gateway", "HTTPRoute",
    "Storage", "Security", "ClusterCatalog", "ClusterExtension", "ClusterServiceVersion", "Subscription", "InstallPlan",
    "CatalogSource", "OperatorGroup", "ValidatingAdmissionPolicy",
)  # fmt: skip
"""The core and additional analyzers of k8sgpt (pkg/analyzer/analyzer.go, 2026)."""


def _rows(heading: str) -> Iterator[Sequence[str]]:
    """Yields the rows of the table below a heading or, above the first, below the title."""
    parts = re.split(r"^#+ (.+)$", (DOCS / "rules.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    below = dict(zip(parts[1::2], parts[2::2], strict=True))[heading]
    lines = [line for line in below.splitlines() if line.startswith("|")]
    yield from ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:])


def _named(cell: str) -> Sequence[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_rule_is_on_the_page_once() -> None:
    named = [name for row in _rows("Rules of triage") for name in _named(row[1])]
    assert sorted(named) == sorted(one.name for one in RULES)


def test_every_analyzer_of_the_checklist_has_a_row() -> None:
    assert sorted(row[0] for row in _rows("Coverage")) == sorted(ANALYZERS)


@for_each("row", list(_rows("Coverage")), ids=lambda row: row[0])
def test_an_analyzer_has_rules_that_exist_or_a_reason(row: Sequence[str]) -> None:
    rules = _named(row[1])
    assert set(rules) <= {one.name for one in RULES}
    assert rules or row[2]


@pytest.mark.parametrize("page", ["rules.md", "use.md"])
def test_pages_tell_the_number_of_rules(page: str) -> None:
    numbers = re.findall(r"(\d+) rules\b", (DOCS / page).read_text(encoding="utf-8"))
    assert numbers == [str(len(RULES))]
