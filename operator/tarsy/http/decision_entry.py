"""Makes the entry by which a person decides about a tool call, for the route and for the plugin alike.

Decision: everything here is for people's eyes. The policy `tarsy-approve` decides who may append what, and the operator
checks it again; what is refused here would be refused there, in less helpful words.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from tarsy.http.views.approvals import ApprovalView
from tarsy.resources.v1alpha1.common import MAX_GROUPS

Verdict = Literal["Approve", "Reject"]
APPROVE_POLICY: Final = "tarsy-approve"
_DENIED: Final = "denied request: "


def why_undecidable(view: ApprovalView, decision: Verdict, username: str, now: datetime) -> str | None:
    """Returns why a person cannot decide so, as a sentence; None: they can, as far as the object tells.

    Args:
        view: the approval as it is now.
        decision: of the person.
        username: of the person; empty: unknown.
        now: the time.
    """
    which = f"ToolApproval {view.namespace}/{view.name}"
    if view.phase != "Pending":
        by = f" by {', '.join(view.decided_by)}" if view.decided_by else ""
        return f"{which} is already decided: {view.phase}{by}. {view.outcome or ''}".rstrip()
    if now >= view.expires_at:
        return f"{which} expired at {view.expires_at:%Y-%m-%d %H:%M} UTC: the call is not made"
    if (own := next((one for one in view.decisions if one.username == username), None)) is not None:
        return f"you have already decided about {which} ({own.decision}), and a decision cannot be changed"
    if decision == "Approve" and username in view.requesters:
        return (
            f"you started the run that asks ({view.run.name}), so you cannot approve its calls: ask a colleague, or "
            f"reject it"
        )
    return None


def entry_patch(
    raw: Mapping[str, Any], decision: Verdict, digest: str, username: str, groups: Sequence[str], reason: str | None
) -> dict[str, Any]:
    """Returns the merge patch that appends a decision to the object as it was read, and to no other state of it.

    Args:
        raw: the object.
        decision: of the person.
        digest: `argumentsDigest` of what the person was shown.
        username: of the person.
        groups: of the person; the operator asks for the right of any of them again.
        reason: of the person; None: none.
    """
    entry: dict[str, Any] = {"username": username, "decision": decision, "argumentsDigest": digest}
    if groups:
        entry["groups"] = list(groups[:MAX_GROUPS])
    if reason:
        entry["reason"] = reason
    meta = raw["metadata"]
    return {
        "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
        "spec": {"decisions": [*(raw["spec"].get("decisions") or ()), entry]},
    }


def policy_refusal(message: str) -> str | None:
    """Returns the sentence of the policy in a refusal of the Kubernetes API; None: something else refused."""
    if f"'{APPROVE_POLICY}'" not in message or _DENIED not in message:
        return None
    return message.partition(_DENIED)[2].removeprefix("spec.decisions: ").strip()
