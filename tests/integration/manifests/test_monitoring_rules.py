"""Loads the rules and the queries of the component `monitoring` into a real Prometheus."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from e2e.waiting import until
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.apiserver.progress import BuildProgress
from tarsy_dev.monitoring.binaries import acquire_monitoring
from tarsy_dev.monitoring.exporter import Exporter
from tarsy_dev.monitoring.servers import MonitoringServer, running_prometheus
from unit.manifests.test_monitoring import ALERTS, SHOWN

_VARIABLE = re.compile(r"\$__rate_interval")


@pytest.fixture
async def prometheus(tmp_path: Path) -> AsyncIterator[MonitoringServer]:
    """A Prometheus with the shipped rules, which scrapes an installation with one exceeded quota."""
    try:
        binaries = acquire_monitoring(BuildProgress())
    except LocalKubernetesError as error:
        pytest.skip(f"no Prometheus: {error}")
    async with Exporter() as exporter:
        exporter.set("tarsy_quotas", {"state": "exceeded"}, 1)
        exporter.set("tarsy_quotas", {"state": "within"}, 3)
        async with running_prometheus(
            binaries, tmp_path, targets={"tarsy": exporter.target}, rules=ALERTS, alertmanagers=[]
        ) as server:
            yield server


async def test_prometheus_evaluates_every_rule_and_sees_the_quota_that_is_exceeded(
    prometheus: MonitoringServer,
) -> None:
    async def evaluated() -> dict[str, Any] | None:
        groups = (await prometheus.get("/api/v1/rules"))["data"]["groups"]
        rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
        waits = any(rule["health"] == "unknown" for rule in rules.values())
        return None if waits or rules["TarsyQuotaExceeded"]["state"] == "inactive" else rules

    rules = await until("every rule is evaluated, and the quota is seen", evaluated, 60)
    assert rules.keys() == {rule["alert"] for rule in ALERTS}
    assert [(name, rule.get("lastError")) for name, rule in rules.items() if rule["health"] != "ok"] == []
    assert rules["TarsyQuotaExceeded"]["state"] == "pending"  # for 15 minutes
    (alert,) = rules["TarsyQuotaExceeded"]["alerts"]
    assert alert["labels"]["tarsy_self"] == "true"


async def test_prometheus_understands_every_query_of_the_dashboard(prometheus: MonitoringServer) -> None:
    assert SHOWN
    for query in SHOWN:
        answer = await prometheus.get("/api/v1/query", query=_VARIABLE.sub("1m", query))
        assert answer["status"] == "success", query
