"""Tests that calls which wait for people become objects, and that decisions count only where they hold."""

from typing import Any
from uuid import uuid4

import pytest

import rights
from e2e.waiting import until
from integration.controllers.desk import Desk, eventually
from tarsy.record.approval import ApprovalState, GatedCall
from tarsy.record.run import LeaseLost
from tarsy.store.approvals import ApprovalRecord, ApprovalRequest
from tarsy_dev.objects import manifest, put


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Approvals are looked at again soon."""
    monkeypatch.setattr("tarsy.controllers.tool_approval.DOUBT_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.machinery.active.ASKING_SECONDS", 0.2)


async def asked(desk: Desk, **changed: Any) -> ApprovalRequest:
    """A run of rita's that asks for a call."""
    await desk.configure()
    server = await desk.put("MCPServer", "deploy", {"transport": {"type": "stdio", "stdio": {"command": "x"}}})
    rule = {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]}
    bound = rights.binding("user", desk.namespace, "Role", "user", rights.user("rita"))
    await rights.put_rights(desk.kube, [rights.role("user", desk.namespace, rule), bound])
    author = {"username": "rita"}
    body = {"alert": {"alertType": "PodCrash", "data": "it crashed"}, "author": author}
    await desk.put("Investigation", "crash", body)
    await desk.reason("Investigation", "crash", "Accepted", "True", "Planned")
    run = await desk.claim()
    uid, generation = server["metadata"]["uid"], server["metadata"]["generation"]
    shown = {
        "call": {
            "id": "call_1",
            "server": "deploy",
            "serverNamespace": desk.namespace,
            "tool": "scale",
            "access": "changes",
        },
        "arguments": '{"replicas": 3}',
        "preview": {"kind": "None"},
        "why": {"claim": "It has too few replicas.", "evidence": ["call_0"]},
    }
    new = ApprovalRequest(
        id=uuid4(),
        investigation=run.id,
        interaction=uuid4(),
        digest=GatedCall(uid, generation, "scale", "d", {"replicas": 3}).digest,
        request={"shown": shown, "server": {"uid": uid, "generation": generation}},
        targets=[],
        before=None,
        seconds=changed.get("seconds", 600.0),
        required=changed.get("required", 1),
    )
    with pytest.raises(LeaseLost):
        await desk.approvals.ask(new, run.attempt - 1)
    assert await desk.approvals.of_call(new.interaction) is None
    first = await desk.approvals.ask(new, run.attempt)
    assert (await desk.approvals.ask(new, run.attempt)).id == first.id and await desk.approvals.asked(run.id) == 1
    return new


async def shown(desk: Desk) -> dict[str, Any]:
    """The object, once it is there."""

    async def look() -> dict[str, Any] | None:
        return next(iter(await desk.kube.list("ToolApproval", desk.namespace)), None)

    found = await eventually(look)
    assert found is not None
    return found


async def decide(desk: Desk, *decisions: dict[str, Any]) -> None:
    found = await shown(desk)
    entries = [{"argumentsDigest": found["spec"]["argumentsDigest"], "decision": "Approve"} | one for one in decisions]
    body = {"spec": {"decisions": [*found["spec"]["decisions"], *entries]}}
    await desk.kube.patch("ToolApproval", desk.namespace, found["metadata"]["name"], body)


async def became(desk: Desk, new: ApprovalRequest, state: ApprovalState) -> ApprovalRecord:
    async def look() -> ApprovalRecord | None:
        found = await desk.approvals.of_call(new.interaction)
        return found if found is not None and found.state is state else None

    found = await eventually(look)
    assert found is not None
    return found


async def approvers(desk: Desk) -> None:
    rule = {"apiGroups": ["tarsy.dev"], "resources": ["mcpservers"], "verbs": ["approve"]}
    subjects = (rights.user("anna"), rights.user("rita"), rights.group("database"))
    await rights.put_rights(
        desk.kube,
        [
            rights.role("approver", desk.namespace, rule),
            rights.binding("approver", desk.namespace, "Role", "approver", *subjects),
        ],
    )


async def test_without_the_policy_a_decision_in_any_name_executes_nothing(desk: Desk) -> None:
    """Holds on Kubernetes 1.20 as well, which has no such policies."""
    async with desk.controller():
        new = await asked(desk)
        found = await shown(desk)
        assert found["spec"]["requesters"] == ["rita"] and found["spec"]["decisions"] == []
        name = found["metadata"]["name"]
        await approvers(desk)
        await decide(desk, {"username": "anna"})
        message = await desk.reason("ToolApproval", name, "ApprovalsEnforced", "False", "ForgeryAdmitted")
        assert "install the policy tarsy-approve" in message
        record = await desk.approvals.of_call(new.interaction)
        assert record is not None and record.state is ApprovalState.PENDING and record.decided_by == ()


async def test_rejection_expiry_and_deletion_end_the_wait(desk: Desk) -> None:
    async with desk.controller():
        new = await asked(desk)
        await approvers(desk)
        await decide(desk, {"username": "rita", "decision": "Reject", "reason": "no"})
        record = await became(desk, new, ApprovalState.REJECTED)
        assert record.decided_by == ("rita",)
        name = (await shown(desk))["metadata"]["name"]
        await desk.reason("ToolApproval", name, "Decided", "True", "Rejected")
        await desk.reason("ToolApproval", name, "Executed", "False", "NotSent")
        await desk.kube.delete("ToolApproval", desk.namespace, name)
        record = await became(desk, new, ApprovalState.REJECTED)
        assert record.decided_by == ("rita",), "decisions stay when the object is gone"
        second = await again(desk, new, seconds=0.0)
        assert (await became(desk, second, ApprovalState.EXPIRED)).decided_by == ()
        third = await again(desk, new, seconds=600.0)

        async def delete() -> bool:
            for found in await desk.kube.list("ToolApproval", desk.namespace):
                if "phase" not in found.get("status", {}) or found["status"]["phase"] == "Pending":
                    await desk.kube.delete("ToolApproval", desk.namespace, found["metadata"]["name"])
                    return True
            return False

        await until("the object is deleted", delete)
        await became(desk, third, ApprovalState.WITHDRAWN)


async def again(desk: Desk, before: ApprovalRequest, seconds: float) -> ApprovalRequest:
    """Another question of the same run."""
    new = ApprovalRequest(
        uuid4(), before.investigation, uuid4(), before.digest, before.request, [], None, seconds, before.required
    )
    await desk.approvals.ask(new, 1)
    return new


async def test_end_of_the_run_withdraws_what_it_asked(desk: Desk) -> None:
    async with desk.controller():
        new = await asked(desk)
        await desk.kube.patch("Investigation", desk.namespace, "crash", {"spec": {"desiredState": "Cancelled"}})
        await became(desk, new, ApprovalState.WITHDRAWN)


@pytest.mark.newer_api
async def test_approval_counts_while_policy_rights_and_server_are_as_they_were(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk.controller():
        new = await asked(desk)
        await shown(desk)
        await approvers(desk)
        await decide(desk, {"username": "vera"}, {"username": "rita"}, {"username": "dora", "groups": ["database"]})
        # Written by who may do everything, before the policy: what makes the names true is tested with the policy.
        for obj in manifest("components/policies/approve.yaml"):
            await put(desk.kube, obj)
        try:
            record = await became(desk, new, ApprovalState.APPROVED)
            assert record.decided_by == ("rita", "dora")
            name = (await shown(desk))["metadata"]["name"]
            await desk.reason("ToolApproval", name, "ApprovalsEnforced", "True", "ForgeryRefused")
            spec = {"spec": {"description": "another"}}
            await desk.kube.patch("MCPServer", desk.namespace, "deploy", spec)
            assert (await became(desk, new, ApprovalState.STALE)).decided_by == ()
        finally:
            for obj in manifest("components/policies/approve.yaml"):
                await desk.kube.delete(obj["kind"], None, obj["metadata"]["name"])
