"""Pods of the overlay `ha` on nodes: they come up, are rolled and evicted, and no investigation is lost."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from cluster.conftest import CALLS, SYSTEM, Cluster, Complaint, wait_until
from tarsy.resources.meta import API_VERSION
from tarsy_dev.model import ScriptedModel
from tarsy_dev.model.journal import RequestOutcome

pytestmark = pytest.mark.timeout(1500)
MANY = 6
"""Investigations under way while pods come and go; two workers take them all at once."""


def alert(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "Alert",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"alertType": "KubePodCrashLooping", "data": f"{name} restarts"},
    }


async def begun(cluster: Cluster, namespace: str, model: ScriptedModel, count: int = 1) -> None:
    """Investigations whose first model calls wait behind their gate."""
    alerts = [alert(f"checkout-{number}", namespace) for number in range(count)]
    await asyncio.to_thread(cluster.apply, *alerts)
    await model.journal.wait_for(lambda requests: len(requests) >= count, 300)


async def end_well(cluster: Cluster, namespace: str, model: ScriptedModel, count: int = 1) -> list[dict[str, Any]]:
    """The investigations once all are finished; each call of the model was answered once for each."""
    for gate in ("first", "second"):
        model.open_gate(gate)
    found: list[dict[str, Any]] = []

    def unfinished() -> Complaint:
        found[:] = cluster.json("get", "inv", "-n", namespace)["items"]
        finished = [condition(investigation, "Finished") for investigation in found]
        return None if finished == ["True"] * count else f"{[investigation.get('status') for investigation in found]}"

    await wait_until(f"{count} investigations are finished", unfinished)
    assert {condition(investigation, "Succeeded") for investigation in found} == {"True"}, found
    answered = Counter((r.agent, r.turn) for r in model.journal.requests if r.outcome is RequestOutcome.FINISHED)
    assert set(answered) >= CALLS and set(answered.values()) == {count}
    return found


def condition(investigation: dict[str, Any], kind: str) -> str | None:
    conditions = investigation.get("status", {}).get("conditions", ())
    return next((one["status"] for one in conditions if one["type"] == kind), None)


async def replaced(cluster: Cluster, name: str, before: set[str]) -> None:
    def old() -> Complaint:
        pods = cluster.pods(name)
        return None if len(pods) == 2 and all(pods.values()) and before.isdisjoint(pods) else f"{pods}"

    await wait_until(f"the pods of {name} are new ones", old)


async def test_an_alert_is_investigated_by_pods(cluster: Cluster, namespace: str, model: ScriptedModel) -> None:
    await begun(cluster, namespace, model)
    (investigation,) = await end_well(cluster, namespace, model)
    assert investigation["status"]["attempt"] == 1


async def test_a_restart_of_all_pods_under_investigations_loses_nothing(
    cluster: Cluster, namespace: str, model: ScriptedModel
) -> None:
    before = {name: set(cluster.pods(name)) for name in ("tarsy-operator", "tarsy-worker")}
    await begun(cluster, namespace, model, MANY)
    for name in before:
        cluster.kubectl("rollout", "restart", f"deployment/{name}", "-n", SYSTEM)
    for name, pods in before.items():
        await replaced(cluster, name, pods)
    investigations = await end_well(cluster, namespace, model, MANY)
    assert all(investigation["status"]["attempt"] >= 2 for investigation in investigations)


async def test_an_eviction_takes_one_worker_at_a_time_and_loses_nothing(
    cluster: Cluster, namespace: str, model: ScriptedModel
) -> None:
    def held_up() -> Complaint:
        status = cluster.json("get", "pdb", "tarsy-worker", "-n", SYSTEM)["status"]
        return None if status["disruptionsAllowed"] == 1 else f"{status}"

    before = cluster.pods("tarsy-worker")
    await begun(cluster, namespace, model, MANY)
    await wait_until("the budget lets one go", held_up)
    first, second = before
    assert cluster.evict(first) == ""
    assert "disruption budget" in cluster.evict(second)
    await wait_until("the first is replaced", lambda: None if held_up() is None else "not yet")
    assert cluster.evict(second) == ""
    await replaced(cluster, "tarsy-worker", set(before))
    await end_well(cluster, namespace, model, MANY)


async def test_the_webhook_answers_without_a_gap_while_operators_are_replaced(cluster: Cluster, namespace: str) -> None:
    before = set(cluster.pods("tarsy-operator"))
    cluster.kubectl("rollout", "restart", "deployment/tarsy-operator", "-n", SYSTEM)
    replacing = asyncio.create_task(replaced(cluster, "tarsy-operator", before))
    made, refused = 0, []
    while not replacing.done():
        cluster_says = await asyncio.to_thread(create, cluster, namespace, made)
        refused += [cluster_says] if cluster_says else []
        made += 1
    await replacing
    assert made and refused == []


def create(cluster: Cluster, namespace: str, number: int) -> str:
    """Has an alert admitted, but not kept; what the API server says against it."""
    name = f"alert-{number}"
    made = cluster.kubectl(
        "create", "--validate=false", "--dry-run=server", "-o", "name", "-f", "-",
        stdin=json.dumps(alert(name, namespace)), ok=False,
    )  # fmt: skip
    return "" if made.returncode == 0 else made.stderr
