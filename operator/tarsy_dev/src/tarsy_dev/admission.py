"""Installs the shipped admission on one machine: the webhook at a local port, and the policies.

Decision: as for the aggregated API, the Service is of type ExternalName, so configuration, certificate and policies are
those of a cluster.
"""

from tarsy.kube.client import KubeClient
from tarsy_dev.objects import manifest, put, put_all

POLICIES = "components/policies"
POLICIES_SINCE = (1, 30)
"""The first Kubernetes version with ValidatingAdmissionPolicies."""
CONDITIONS_SINCE = (1, 28)
"""The first Kubernetes version that keeps the conditions of a webhook. Without them, all objects would go to it."""


async def install_admission(client: KubeClient, port: int, version: tuple[int, int]) -> None:
    """Installs the admission of the manifests, which stamps authors and refuses forged ones.

    Until an operator serves the webhook at `port`, the API refuses to create what has an author.

    Args:
        client: as an administrator.
        port: the operator's `--admission-port`, on loopback.
        version: of the Kubernetes API.
    """
    for obj in manifest("base/admission.yaml"):
        if obj["kind"] == "Service":
            obj = {**obj, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}
        if "webhooks" in obj:
            hooks = [hook for hook in obj["webhooks"] if "matchConditions" not in hook or version >= CONDITIONS_SINCE]
            for hook in hooks:
                hook["clientConfig"]["service"]["port"] = port
            obj = {**obj, "webhooks": hooks}
        await put(client, obj)
    if version >= POLICIES_SINCE:
        (component,) = manifest(f"{POLICIES}/kustomization.yaml")
        for name in component["resources"]:
            await put_all(client, manifest(f"{POLICIES}/{name}"))
