"""Defines the changes that `tarsy demo --scenario remediation` shows, each with its sample objects, its alert and "
"its check.

Each is a change that the chain of the component `remediation` may propose: a key of a ConfigMap, replicas, a restart,
an earlier image. The runbook of the last names no image: that the Deployment ran it before is what the stage `changes`
reads of its ReplicaSets (class K).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tarsy.kube.client import KubeClient
from tarsy_dev.objects import manifest, put
from tarsy_dev.sample import SHOP, sample_alert

CHAIN = "kubernetes-remediation"
RUNBOOK = """\
# checkout
- It reads its configuration from ConfigMap checkout-config and does not start without PAYMENT_API_URL.
- The payment service is at http://payments.shop.svc:8080.
"""
"""A call leads to no address that only results of tools name: this one is known from the team."""

RemedyChoice = Literal["key", "scale", "restart", "rollback", "all"]
_OBJECTS = "samples/demo/remedies.yaml"
_RESTARTED = "kubectl.kubernetes.io/restartedAt"


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change.

    Args:
        script: name of the script of its agents.
        kind: of the object that is changed.
        name: of the object.
        what: the change as a sentence, after the name of the object.
        made: whether the object has the change.
        by_kubectl: whether the approver uses plain kubectl where it is installed, not the plugin.
    """

    script: str
    kind: str
    name: str
    what: str
    made: Callable[[Mapping[str, Any]], bool]
    by_kubectl: bool = False


REMEDIES: Mapping[str, Remedy] = {
    "key": Remedy(
        "remediation",
        "ConfigMap",
        "checkout-config",
        "the key PAYMENT_API_URL",
        lambda obj: "PAYMENT_API_URL" in obj["data"],
    ),
    "scale": Remedy(
        "remediation-scale", "Deployment", "catalog", "3 replicas", lambda obj: obj["spec"]["replicas"] == 3, True
    ),
    "restart": Remedy(
        "remediation-restart",
        "Deployment",
        "search",
        f"the annotation {_RESTARTED}",
        lambda obj: _RESTARTED in obj["spec"]["template"]["metadata"].get("annotations", {}),
        True,
    ),
    "rollback": Remedy(
        "remediation-rollback",
        "Deployment",
        "basket",
        "the image of release 2.3.9",
        lambda obj: obj["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":2.3.9"),
    ),
}


def chosen_remedies(choice: RemedyChoice) -> tuple[Remedy, ...]:
    """Returns the changes to show."""
    return tuple(REMEDIES.values()) if choice == "all" else (REMEDIES[choice],)


async def put_remedy(client: KubeClient, remedy: Remedy) -> None:
    """Puts the sample objects of a change; those of the key are there with the sample namespace."""
    owner: dict[str, Any] | None = None
    for obj in manifest(_OBJECTS):
        if obj["kind"] == "Alert" or not obj["metadata"]["name"].startswith(remedy.name):
            continue
        owned = {"ownerReferences": [owner]} if owner is not None else {}
        made = await put(client, {**obj, "metadata": {**obj["metadata"], **owned}})
        if obj["kind"] == "Deployment":
            uid = made["metadata"]["uid"]
            owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": remedy.name, "uid": uid, "controller": True}


async def alert_of(client: KubeClient, remedy: Remedy) -> dict[str, Any]:
    """Returns the alert of a change, which names the chain.

    Args:
        client: the Kubernetes API.
        remedy: whose objects were put.
    """
    if remedy.kind == "ConfigMap":
        alert = await sample_alert(client, "crash-loop")
        return {**alert, "spec": {**alert["spec"], "chainRef": {"name": CHAIN}, "runbook": {"inline": RUNBOOK}}}
    (found,) = [
        obj
        for obj in manifest(_OBJECTS)
        if obj["kind"] == "Alert" and obj["metadata"]["name"].startswith(f"{remedy.name}-")
    ]
    return {**found, "metadata": {**found["metadata"], "namespace": SHOP}}
