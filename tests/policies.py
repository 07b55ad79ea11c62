"""Puts the policy about approvals in force, and lifts it: an API server enforces a policy a moment after it is written,
and a deleted one a moment longer. Tests that share a server must not meet the policy of another one."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from e2e.waiting import until
from tarsy.kube.client import ApiError, KubeClient
from tarsy_dev.objects import manifest, put

APPROVE = "components/policies/approve.yaml"


async def put_approve(kube: KubeClient) -> None:
    """Writes the policy `tarsy-approve` and its binding."""
    for obj in manifest(APPROVE):
        await put(kube, obj)


async def wait_until_refused(
    kube: KubeClient, policy: str, target: tuple[str, str, str], spec: Mapping[str, Any]
) -> None:
    """Waits until the API server refuses a forged change by a policy (as a dry run).

    Args:
        kube: as an administrator.
        policy: the name of the policy.
        target: kind, namespace and name of the object.
        spec: the forged change.
    """

    async def refused() -> bool:
        try:
            await kube.patch(*target, {"spec": spec}, dry_run=True)
        except ApiError as error:
            assert policy in error.message, error
            return True
        return False

    await until(f"the policy {policy} is in force", refused)


async def lift_approve(kube: KubeClient, namespace: str) -> None:
    """Deletes the policy, and waits until the API server no longer enforces it.

    Args:
        kube: as an administrator.
        namespace: where a write that the policy refuses is tried (as a dry run).
    """
    for obj in manifest(APPROVE):
        await kube.delete(obj["kind"], None, obj["metadata"]["name"])
    soon = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = {"server": "x", "tool": "x", "when": "true", "until": soon, "author": {"username": "somebody-else"}}
    forged = {
        "apiVersion": "tarsy.dev/v1alpha1",
        "kind": "Chain",
        "metadata": {"name": "forged", "namespace": namespace},
        "spec": {"stages": [{"name": "x", "agents": [{"name": "x"}]}], "preApproved": [entry]},
    }

    async def lifted() -> bool:
        try:
            await kube.create(forged, dry_run=True)
        except ApiError as error:
            assert "tarsy-approve" in error.message, error
            return False
        return True

    await until("the policy is lifted", lifted)
