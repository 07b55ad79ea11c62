"""Puts the sample namespace into a cluster: a ConfigMap that changes, and then pods that crash, or a Deployment that is
well.

Decision: the change is made for real, so that the API server dates it; what kubelets would write has the times of the
sample files moved to now, and none of them is before the change.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from tarsy.kube.client import KubeClient
from tarsy_dev.objects import manifest, put, put_all

SHOP = "shop"
Scenario = Literal["crash-loop", "no-fault"]
"""Subjects of the demo."""

ALERTS: Mapping[Scenario, str] = {
    "crash-loop": "samples/demo/alert-kubepodcrashlooping.yaml",
    "no-fault": "samples/demo/alert-kubepodnotready.yaml",
}
_OBJECTS: Mapping[Scenario, str] = {
    "crash-loop": "samples/demo/crashloop.yaml",
    "no-fault": "samples/demo/no-fault.yaml",
}
_BEFORE = "samples/demo/before.yaml"
_NEWEST = datetime(2026, 11, 21, 9, 43, 44, tzinfo=UTC)
"""The latest time in the sample files."""

_TIME = re.compile(r"2026-11-21T\d\d:\d\d:\d\d(?:\.\d{3})?Z")
_APART = timedelta(seconds=1.1)
"""Times of the API are whole seconds: what is so far apart has different ones."""

_TO_FAIL = timedelta(seconds=2)
"""From the Deployment to its first failure."""


async def put_before(client: KubeClient) -> None:
    """Puts the namespace as it is before anything fails."""
    await put_all(client, manifest(_BEFORE))


async def put_scenario(client: KubeClient, scenario: Scenario) -> None:
    """Puts what the alert of a scenario is about.

    Args:
        client: the Kubernetes API.
        scenario: crash-loop changes the ConfigMap first, and then its pods crash; in no-fault nothing is wrong.
    """
    objects = [obj for obj in manifest(_OBJECTS[scenario]) if obj["kind"] != "Namespace"]
    await put_all(client, [obj for obj in objects if obj["kind"] == "ConfigMap"])
    await asyncio.sleep(_APART.total_seconds())
    move, owner = moved(datetime.now(UTC) + _TO_FAIL), None
    for obj in objects:
        if obj["kind"] == "ConfigMap":
            continue
        owned = owner is not None and obj["kind"] in ("ReplicaSet", "Pod")
        metadata = {**obj["metadata"], **({"ownerReferences": [owner]} if owned else {})}
        made = await put(client, move({**obj, "metadata": metadata}), status_by=_writer(obj["kind"]))
        if obj["kind"] in ("Deployment", "ReplicaSet"):
            of = {"kind": obj["kind"], "name": metadata["name"], "uid": made["metadata"]["uid"]}
            owner = {"apiVersion": "apps/v1", **of, "controller": True}


def _writer(kind: str) -> str:
    """Returns who writes the status of a kind in a cluster that runs pods: evidence counts by its writer."""
    return "kubelet" if kind == "Pod" else "kube-controller-manager"


async def let_agents_read(client: KubeClient, namespace: str) -> None:
    """Lets stages of kind Changes read a namespace, as the component `tenant-agents` and a role of its owner do."""
    shipped = (f"components/tenant-agents/{name}.yaml" for name in ("serviceaccount", "tokens", "run-secrets"))
    for name in (*shipped, "samples/demo/reader.yaml"):
        for obj in manifest(name):
            subjects = [
                {**one, "namespace": namespace} if one.get("namespace") == SHOP else one
                for one in obj.get("subjects", ())
            ]
            placed = {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
            await put(client, {**placed, "subjects": subjects} if subjects else placed)


async def sample_alert(client: KubeClient, scenario: Scenario) -> dict[str, Any]:
    """Returns the alert of a scenario; it fires since its pod became what it is.

    Args:
        client: the Kubernetes API.
        scenario: whose objects were put.
    """
    (alert,) = manifest(ALERTS[scenario])
    (pod, *_) = [obj for obj in manifest(_OBJECTS[scenario]) if obj["kind"] == "Pod"]
    there = await client.get("Pod", SHOP, pod["metadata"]["name"])
    (since,) = [one["lastTransitionTime"] for one in there["status"]["conditions"] if one["type"] == "Ready"]
    spec = {**alert["spec"], "data": _TIME.sub(since, alert["spec"]["data"])}
    return {**alert, "metadata": {**alert["metadata"], "namespace": SHOP}, "spec": spec}


def moved(earliest: datetime) -> Callable[[Any], Any]:
    """Returns a function that moves the times in a sample object to now, and none of them before a time.

    Args:
        earliest: the time.
    """
    by = datetime.now(UTC) - _NEWEST

    def at(match: re.Match[str]) -> str:
        found = max(datetime.fromisoformat(match[0]) + by, earliest)
        return f"{found:%Y-%m-%dT%H:%M:%S}Z"

    def move(value: Any) -> Any:
        match value:
            case str():
                return _TIME.sub(at, value)
            case dict():
                return {key: move(item) for key, item in value.items()}
            case list():
                return [move(item) for item in value]
            case _:
                return value

    return move
