"""Tests who is told why they cannot decide, and what is written for a decision."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tarsy.http.decision_entry import entry_patch, policy_refusal, why_undecidable
from tarsy.http.views.approvals import ApprovalView
from tarsy.resources.v1alpha1.common import MAX_GROUPS

END = datetime(2026, 11, 24, 14, tzinfo=UTC)
DIGEST = f"sha256:{'a' * 64}"


def raw(*decisions: dict[str, Any], **status: Any) -> dict[str, Any]:
    """A ToolApproval as the Kubernetes API returns it, with a field that only a newer version knows."""
    spec = {
        "runRef": {"name": "checkout-down", "uid": "1", "kind": "Investigation"},
        "call": {"id": "call_1", "server": "deploy", "serverNamespace": "shop", "tool": "scale", "access": "changes"},
        "argumentsDigest": DIGEST,
        "arguments": '{"replicas": 3}',
        "preview": {"kind": "None"},
        "why": {"claim": "It has too few replicas.", "evidence": ["call_0"]},
        "expiresAt": "2026-11-24T14:00:00Z",
        "required": 1,
        "requesters": ["rita"],
        "decisions": list(decisions),
        "fieldOfTomorrow": {"x": 1},
    }
    meta = {
        "name": "scale",
        "namespace": "shop",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-11-24T12:00:00Z",
    }
    return {"metadata": meta, "spec": spec, "status": status}


def entry(username: str, decision: str = "Approve") -> dict[str, Any]:
    return {"username": username, "decision": decision, "argumentsDigest": DIGEST}


BEFORE, AT = END - timedelta(seconds=1), END


@pytest.mark.parametrize(
    ("found", "decision", "username", "now", "words"),
    [
        (raw(), "Approve", "anna", BEFORE, None),
        (raw(), "Approve", "", BEFORE, None),
        (raw(), "Approve", "anna", AT, "expired at 2026-11-24 14:00 UTC: the call is not made"),
        (raw(), "Approve", "rita", BEFORE, "so you cannot approve its calls: ask a colleague, or reject it"),
        (raw(), "Reject", "rita", BEFORE, None),
        (
            raw(entry("anna", "Reject")),
            "Approve",
            "anna",
            BEFORE,
            "you have already decided about ToolApproval shop/scale",
        ),
        (raw(entry("ben")), "Approve", "anna", BEFORE, None),
        (
            raw(phase="Rejected", decidedBy=["ben"], outcome="Rejected; the call was not sent."),
            "Approve",
            "anna",
            BEFORE,
            "is already decided: Rejected by ben. Rejected; the call was not sent.",
        ),
        (raw(phase="Expired"), "Approve", "anna", AT, "is already decided: Expired."),
    ],
)
def test_each_hindrance_is_one_sentence(
    found: dict[str, Any], decision: Any, username: str, now: datetime, words: str | None
) -> None:
    why = why_undecidable(ApprovalView.of(found), decision, username, now)
    assert (why is None) if words is None else (why is not None and words in why and "\n" not in why)


def test_entry_is_appended_to_the_state_that_was_read_and_to_no_other() -> None:
    first = entry("ben") | {"at": "2026-11-24T12:30:00Z"}
    patch = entry_patch(raw(first), "Approve", DIGEST, "anna", ("database", "on-call"), None)
    assert patch["metadata"] == {"uid": "u", "resourceVersion": "7"}
    assert patch["spec"] == {"decisions": [first, entry("anna") | {"groups": ["database", "on-call"]}]}
    many = [f"g{n}" for n in range(MAX_GROUPS + 1)]
    (one,) = entry_patch(raw(), "Reject", DIGEST, "anna", many, "no")["spec"]["decisions"]
    assert len(one["groups"]) == MAX_GROUPS and one["reason"] == "no" and one["decision"] == "Reject"


def test_sentence_of_the_policy_is_taken_out_of_the_refusal() -> None:
    said = "toolapprovals.tarsy.dev \"x\" is forbidden: ValidatingAdmissionPolicy 'tarsy-approve' with binding "
    said += "'tarsy-approve' denied request: spec.decisions: groups of your entry must be your own"
    assert policy_refusal(said) == "groups of your entry must be your own"
    assert policy_refusal("ValidatingAdmissionPolicy 'other' denied request: no") is None
    assert policy_refusal('User "anna" cannot patch resource "toolapprovals" of \'tarsy-approve\'') is None


def test_object_of_a_newer_operator_is_read_and_a_preview_is_optional_in_parts() -> None:
    view = ApprovalView.of(raw(entry("ben"), entry("carl", "Reject"), target="Deployment/checkout"))
    assert (view.phase, view.approvals, view.required, view.target) == ("Pending", 1, 1, "Deployment/checkout")
    standing = ApprovalView.of(raw(entry("ben"), phase="Pending", decidedBy=["ben", "carl"]))
    assert standing.approvals == 2, "carl approved beforehand"
    assert view.undo is None and view.preview.diff == "" and view.decided_by == () and view.conditions == ()
