"""Finds out whether people can write decisions in the name of others.

Decision: the policy `tarsy-approve` is believed to be in force because the API server just refused a forged decision in
its words, not because its objects exist. On an API server without such policies, or without the binding, the forgery
is admitted, and nothing is executed.
"""

from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.v1alpha1 import ToolApproval

APPROVE_POLICY = "tarsy-approve"
_FORGER = "tarsy.dev:forged-decision"
_REFUSED = ("must be your own", APPROVE_POLICY)


async def why_not_enforced(approval: ToolApproval, client: KubeClient) -> str | None:
    """Tries a forged decision by a dry run; returns why approvals do not count, None where it was refused.

    Args:
        approval: one that waits.
        client: the Kubernetes API, as the operator.

    Raises:
        ApiError: the API could not be reached.
    """
    meta, spec = approval.metadata, approval.spec
    raw = await client.get(approval.KIND, meta.namespace, meta.name)
    forged = {"username": _FORGER, "decision": "Approve", "argumentsDigest": spec.arguments_digest}
    body = {
        "metadata": {"uid": meta.uid},
        "spec": {"decisions": [*raw["spec"].get("decisions", []), forged]},
    }
    try:
        await client.patch(approval.KIND, meta.namespace, meta.name, body, dry_run=True)
    except ApiError as error:
        if error.transient:
            raise
        if error.status == 403 and all(words in error.message for words in _REFUSED):
            return None
        return f"a forged decision was refused by something else than the policy {APPROVE_POLICY}: {error.message}"
    return (
        "the API server admitted a decision in another name, so a username in spec.decisions proves nothing: install "
        f"the policy {APPROVE_POLICY} with its binding (manifests/components/policies, Kubernetes 1.30 or newer)"
    )
