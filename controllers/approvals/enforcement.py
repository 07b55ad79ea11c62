"""Checks whether users can forge decisions and acceptances of others.

Decision: the policies `tarsy-approve` and `tarsy-accept` are believed to be in force because the API server just
refused a forgery in their words, not because their objects exist. On an API server without such policies, or without
the binding, the forgery is admitted; then nothing is executed, and no acceptance counts.
"""

from collections.abc import Mapping
from typing import Any

from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.v1alpha1 import MCPServer, ToolApproval
from tarsy.resources.v1alpha1.tool_pin import MAX_ACCEPTANCES

APPROVE_POLICY = "tarsy-approve"
_FORGER = "tarsy.dev:forged-decision"
ACCEPT_POLICY = "tarsy-accept"
_OWN = "must be your own"
_OF_CHAINS = "spec.preApproved of a Chain"


async def why_not_enforced(approval: ToolApproval, client: KubeClient, *, of_chains: bool = False) -> str | None:
    """Tries a forged decision by a dry run; returns why approvals do not count, None where it was refused.

    Args:
        approval: one that waits.
        client: the Kubernetes API, as the operator.
        of_chains: whether the policy must be one that holds `spec.preApproved` of Chains as well, as its words tell.

    Raises:
        ApiError: the API could not be reached.
    """
    spec = approval.spec
    raw = await client.get(approval.KIND, approval.metadata.namespace, approval.metadata.name)
    forged = {"username": _FORGER, "decision": "Approve", "argumentsDigest": spec.arguments_digest}
    changed = {"decisions": [*raw["spec"].get("decisions", []), forged]}
    held = _OF_CHAINS if of_chains else ""
    return await _why_admitted(approval, changed, "decision", APPROVE_POLICY, client, held)


async def why_acceptance_not_enforced(server: MCPServer, client: KubeClient) -> str | None:
    """Tries a forged acceptance by a dry run; returns why acceptances do not count, None where it was refused.

    Args:
        server: one with acceptances.
        client: the Kubernetes API, as the operator.

    Raises:
        ApiError: the API could not be reached.
    """
    raw = await client.get(server.KIND, server.metadata.namespace, server.metadata.name)
    entries = raw["spec"].get("acceptedTools", [])[: MAX_ACCEPTANCES - 1]
    forged = {"username": _FORGER, "tools": []}
    return await _why_admitted(server, {"acceptedTools": [*entries, forged]}, "acceptance", ACCEPT_POLICY, client)


async def _why_admitted(
    obj: ToolApproval | MCPServer, spec: Mapping[str, Any], what: str, policy: str, client: KubeClient, held: str = ""
) -> str | None:
    """Tries a forgery; `held` is what the words of the policy must say that it holds as well."""
    meta = obj.metadata
    body = {"metadata": {"uid": meta.uid}, "spec": spec}
    try:
        await client.patch(obj.KIND, meta.namespace, meta.name, body, dry_run=True)
    except ApiError as error:
        if error.transient:
            raise
        if error.status == 403 and _OWN in error.message and policy in error.message:
            if held not in error.message:
                return f"the policy {policy} is older than {held}; apply manifests/components/policies"
            return None
        return f"a forged {what} was refused by something other than the policy {policy}: {error.message}"
    return (
        f"the API server admitted {'an' if what == 'acceptance' else 'a'} {what} in another name, so a username in "
        f"spec.{next(iter(spec))} proves nothing: install "
        f"the policy {policy} with its binding (manifests/components/policies, Kubernetes 1.30 or newer)"
    )
