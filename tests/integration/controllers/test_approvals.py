"""Tests that calls which wait for people become objects, and that decisions count only where they hold."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

import rights
from e2e.waiting import until
from integration.controllers.desk import Desk, eventually
from policies import APPROVE, lift_approve, put_approve
from tarsy.record.approvals.approval import ApprovalState, GatedCall
from tarsy.record.run import LeaseLost, State
from tarsy.record.waiting import Wait, WaitReason
from tarsy.store.approvals import ApprovalRecord, ApprovalRequest
from tarsy.store.runs.parking import ParkingLimits
from tarsy_dev.objects import manifest, put


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Approvals are looked at again soon."""
    monkeypatch.setattr("tarsy.controllers.tool_approval.DOUBT_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.machinery.active.ASKING_SECONDS", 0.2)


async def asked(desk: Desk, **changed: Any) -> ApprovalRequest:
    """A run of rita's that asks for a call."""
    if not changed.get("configured"):
        await desk.configure()
    transport = {"type": "stdio", "stdio": {"command": "x"}}
    accepts = {"approval": {"undetermined": "Ask"}} if changed.get("accepts_unknown", True) else {}
    server = await desk.put("MCPServer", "deploy", {"transport": transport, **accepts})
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
        request={
            "shown": shown,
            "server": {"uid": uid, "generation": generation},
            "chain": changed.get("chain"),
            **changed.get("told", {}),
        },
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
    """Writes decisions of other people, as soon as no policy refuses them: API servers learn of its deletion later."""
    found = await shown(desk)
    entries = [{"argumentsDigest": found["spec"]["argumentsDigest"], "decision": "Approve"} | one for one in decisions]
    body = {"spec": {"decisions": [*found["spec"]["decisions"], *entries]}}

    async def written() -> bool:
        await desk.kube.patch("ToolApproval", desk.namespace, found["metadata"]["name"], body)
        return True

    await eventually(written)


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


async def test_people_are_shown_where_the_arguments_come_from(desk: Desk) -> None:
    origins = [{"argument": "/replicas", "origins": ["Alert", "K"], "calls": ["call_0"]}]
    async with desk.controller():
        await asked(desk, told={"provenance": origins})
        assert [one | {"destination": False} for one in origins] == (await shown(desk))["spec"]["provenance"]


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
            record = await desk.approvals.of_call(third.interaction)
            if record is None or record.object_uid is None:
                return False
            await desk.kube.delete("ToolApproval", desk.namespace, record.object_name)
            return True

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
        await decide(desk, {"username": "vera"}, {"username": "dora", "groups": ["database"]})
        # Written by who may do everything, before the policy: what makes the names true is tested with the policy.
        await put_approve(desk.kube)
        try:
            record = await became(desk, new, ApprovalState.APPROVED)
            assert record.decided_by == ("dora",)
            name = (await shown(desk))["metadata"]["name"]
            await desk.reason("ToolApproval", name, "ApprovalsEnforced", "True", "ForgeryRefused")
            spec = {"spec": {"description": "another"}}
            await desk.kube.patch("MCPServer", desk.namespace, "deploy", spec)
            assert (await became(desk, new, ApprovalState.STALE)).decided_by == ()
        finally:
            await lift_approve(desk.kube, desk.namespace)


async def policy(desk: Desk, *, older: bool = False) -> None:
    """Puts the policy in force; `older`: as it was before it held Chains."""
    for obj in manifest(APPROVE):
        if older and obj["kind"] == "ValidatingAdmissionPolicy":
            for one in obj["spec"]["validations"]:
                if "must be your own, " in one.get("messageExpression", ""):
                    one["messageExpression"] = "'the username of your entry must be your own'"
        await put(desk.kube, obj)


@pytest.fixture
async def no_policy_after(desk: Desk) -> AsyncIterator[None]:
    """Takes the policy away at the end."""
    yield
    await lift_approve(desk.kube, desk.namespace)


@pytest.mark.newer_api
async def test_two_approvals_are_needed_where_the_server_wants_two(desk: Desk, no_policy_after: None) -> None:
    async with desk.controller():
        new = await asked(desk, required=2)
        name = (await shown(desk))["metadata"]["name"]
        await approvers(desk)
        await decide(desk, {"username": "anna"})
        await policy(desk)

        async def one_of_two() -> bool:
            _, reason, message = (await desk.conditions("ToolApproval", name))["Decided"]
            return reason == "Pending" and message.startswith("1 of 2 people approved.")

        await until("one of two has approved", one_of_two)
        assert (await desk.get("ToolApproval", name))["status"]["decidedBy"] == ["anna"]
        record = await desk.approvals.of_call(new.interaction)
        assert record is not None and record.state is ApprovalState.PENDING
        await lift_approve(desk.kube, desk.namespace)  # so that a test can write for dora
        await decide(desk, {"username": "dora", "groups": ["database"]})
        await policy(desk)
        assert (await became(desk, new, ApprovalState.APPROVED)).decided_by == ("anna", "dora")


async def pre_approved(desk: Desk, username: str = "anna", **changed: Any) -> dict[str, str]:
    """Lets the run's Chain approve calls of the server as somebody."""
    chain = await desk.get("Chain", "one")
    soon = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = {
        "server": "deploy",
        "tool": "scale",
        "when": "arguments.replicas <= 3",
        "until": soon,
        "author": {"username": username},
    }
    await desk.kube.patch("Chain", desk.namespace, "one", {"spec": {"preApproved": [entry | changed]}})
    return {"namespace": desk.namespace, "name": "one", "uid": chain["metadata"]["uid"]}


@pytest.mark.newer_api
async def test_a_pre_approval_counts_while_the_policy_holds_chains_and_its_author_may_approve(
    desk: Desk, no_policy_after: None
) -> None:
    async with desk.controller():
        await desk.configure()
        of = await pre_approved(desk)
        await policy(desk, older=True)
        new = await asked(desk, chain=of, configured=True)
        name = (await shown(desk))["metadata"]["name"]

        async def told(words: str) -> None:
            async def look() -> bool:
                return words in (await desk.conditions("ToolApproval", name)).get("Decided", ("", "", ""))[2]

            await until(words, look)

        await told("The approval of anna")
        await approvers(desk)
        await told("is older than spec.preApproved of a Chain")
        record = await desk.approvals.of_call(new.interaction)
        assert record is not None and record.state is ApprovalState.PENDING
        await policy(desk)
        record = await became(desk, new, ApprovalState.APPROVED)
        assert record.decided_by == ("anna",)
        reason = await desk.pool.fetchval("SELECT reason FROM tool_approval_decision")
        assert reason.startswith(f"spec.preApproved[0] of Chain {desk.namespace}/one, until ")


@pytest.mark.newer_api
@pytest.mark.parametrize(
    ("author", "changed", "accepts_unknown"),
    [
        ("rita", {}, True),
        ("anna", {"when": "arguments.replicas < 3"}, True),
        ("anna", {"until": "2026-01-01T00:00:00Z"}, True),
        ("anna", {"until": "2126-01-01T00:00:00Z"}, True),
        ("anna", {}, False),
    ],
    ids=["requester", "condition", "over", "too far ahead", "objects not known"],
)
async def test_a_pre_approval_in_doubt_executes_nothing(
    desk: Desk, no_policy_after: None, author: str, changed: dict[str, Any], accepts_unknown: bool
) -> None:
    async with desk.controller():
        await desk.configure()
        of = await pre_approved(desk, author, **changed)
        await approvers(desk)
        await policy(desk)
        new = await asked(desk, chain=of, configured=True, accepts_unknown=accepts_unknown)
        name = (await shown(desk))["metadata"]["name"]

        async def doubted() -> bool:
            message = (await desk.conditions("ToolApproval", name)).get("Decided", ("", "", ""))[2]
            return "spec.preApproved[0] of Chain" in message

        await until("the doubt is told", doubted)
        record = await desk.approvals.of_call(new.interaction)
        assert record is not None and record.state is ApprovalState.PENDING


async def test_without_the_policy_a_pre_approval_executes_nothing(desk: Desk) -> None:
    """Holds on Kubernetes 1.20 as well, which has no such policies."""
    async with desk.controller():
        await desk.configure()
        of = await pre_approved(desk)
        await approvers(desk)
        new = await asked(desk, chain=of, configured=True)
        name = (await shown(desk))["metadata"]["name"]

        async def doubted() -> bool:
            return "does not count" in (await desk.conditions("ToolApproval", name)).get("Decided", ("", "", ""))[2]

        await until("the doubt is told", doubted)
        record = await desk.approvals.of_call(new.interaction)
        assert record is not None and record.state is ApprovalState.PENDING and record.decided_by == ()


async def parked(desk: Desk) -> UUID:
    """A run of rita's that waits for a decision about a call of the server `deploy`, which its agent uses."""
    acting = {"type": "stdio", "stdio": {"command": "x", "kubeconfig": True}}
    await desk.core("ServiceAccount", "mender", {})
    await desk.put("MCPServer", "deploy", {"transport": acting})
    await desk.put("LLMProvider", "one", {"type": "openai", "model": "m"})
    agent = {"instructions": "Look.", "mcpServers": [{"name": "deploy"}], "serviceAccountName": "mender"}
    await desk.put("Agent", "one", agent)
    stages = [{"name": "look", "agents": [{"name": "one"}]}]
    await desk.put("Chain", "one", {"alertTypes": ["PodCrash"], "llmProvider": "one", "stages": stages})
    rule = {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]}
    bound = rights.binding("user", desk.namespace, "Role", "user", rights.user("rita"))
    await rights.put_rights(desk.kube, [rights.role("user", desk.namespace, rule), bound])
    body = {"alert": {"alertType": "PodCrash", "data": "it crashed"}, "author": {"username": "rita"}}
    await desk.put("Investigation", "crash", body)
    await desk.reason("Investigation", "crash", "Accepted", "True", "Planned")
    run = await desk.claim()
    wait = Wait(WaitReason.APPROVAL, datetime.now(UTC) + timedelta(hours=2), "It waits.")
    assert await desk.runs.park(run.id, run.attempt, wait, ParkingLimits()) is None
    return run.id


@pytest.mark.parametrize("gone", ["server", "replaced", "account", "rights", "run"])
async def test_what_a_parked_run_needs_is_gone_and_ends_it_with_the_reason(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    monkeypatch.setattr("tarsy.controllers.machinery.active.PARKED_SECONDS", 0.2)
    monkeypatch.setattr("tarsy.controllers.machinery.active.SWEEP_SECONDS", 0.2)
    async with desk.controller():
        run = await parked(desk)
        reasons = {"run": "Cancelled", "rights": "RightsLost", "account": "AccountDeleted"}
        reason = reasons.get(gone, "ServerDeleted")
        match gone:
            case "run":
                await desk.kube.delete("Investigation", desk.namespace, "crash")
            case "account":
                await desk.kube.delete("ServiceAccount", desk.namespace, "mender")
            case "rights":
                await desk.kube.delete("RoleBinding", desk.namespace, "user")
            case _:
                await desk.kube.delete("MCPServer", desk.namespace, "deploy")
                if gone == "replaced":
                    spec = {"transport": {"type": "http", "http": {"url": "http://127.0.0.1:1/mcp"}}}
                    await desk.put("MCPServer", "deploy", spec)

        async def ended() -> bool:
            found = await desk.reads.record(run)
            return found is not None and found.state.finished

        await until("the run has ended", ended)
        record = await desk.reads.record(run)
        assert record is not None and record.outcome is not None and record.outcome.failure is not None
        assert record.outcome.failure.reason == reason
        if gone != "run":
            await desk.reason("Investigation", "crash", "Finished", "True", reason)


async def test_a_parked_run_that_may_go_on_stays_parked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.controllers.machinery.active.PARKED_SECONDS", 0.1)
    async with desk.controller():
        run = await parked(desk)
        await desk.kube.patch("MCPServer", desk.namespace, "deploy", {"spec": {"description": "another"}})
        await desk.still("Investigation", "crash")
        record = await desk.reads.record(run)
        assert record is not None and record.state is State.PARKED
