"""Builds a namespace with a Deployment whose pod cannot pull its image, after its ConfigMap changed."""

from typing import Any

from tarsy.kube.client import KubeClient

PRIVATE = "a very private value"
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "checkout"}},
    "spec": {
        "containers": [
            {
                "name": "app",
                "image": "registry.example/checkout:1.4",
                "envFrom": [{"configMapRef": {"name": "settings"}}],
            }
        ]
    },
}
WAITING = {
    "name": "app", "image": "registry.example/checkout:1.4", "imageID": "", "ready": False, "restartCount": 0,
    "state": {"waiting": {"reason": "ErrImagePull", "message": "registry.example/checkout:1.4: not found"}},
}  # fmt: skip


async def _made(kube: KubeClient, namespace: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    version = "apps/v1" if kind in ("Deployment", "ReplicaSet") else "v1"
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return await kube.create({"apiVersion": version, "kind": kind, "metadata": metadata, **fields})


async def build_shop(kube: KubeClient, namespace: str) -> None:
    """Creates its objects: ConfigMap, Deployment, pod, and a Service that selects nothing."""
    selector = {"matchLabels": {"app": "checkout"}}
    await _made(kube, namespace, "ConfigMap", "settings", data={"LEVEL": PRIVATE})
    spec = {"replicas": 1, "selector": selector, "template": TEMPLATE}
    owner = await _made(kube, namespace, "Deployment", "checkout", spec=spec)
    refs = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "checkout",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    pod = await _made(
        kube,
        namespace,
        "Pod",
        "checkout-1",
        spec=TEMPLATE["spec"],
        metadata={"labels": {"app": "checkout"}, "ownerReferences": refs},
    )
    status = {
        "phase": "Pending",
        "containerStatuses": [WAITING],
        "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": pod["metadata"]["creationTimestamp"]}
        ],
    }
    await kube.patch("Pod", namespace, "checkout-1", {"status": status}, subresource="status")
    ports = [{"port": 80, "targetPort": 8080}]
    await _made(
        kube, namespace, "Service", "checkout", spec={"selector": {"app": "chekout", "tier": "web"}, "ports": ports}
    )
