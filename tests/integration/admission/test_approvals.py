"""Tests who may decide about a call of a tool, by the shipped policy and roles."""

import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rights
from integration.admission.conftest import OPERATOR, SHOP, SYSTEM, As, put_policies
from policies import wait_until_refused
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import API_VERSION

DIGEST = f"sha256:{'a' * 64}"
OTHER = f"sha256:{'b' * 64}"
NAME = "scale-checkout"


def approval(**changed: Any) -> dict[str, Any]:
    until_then = (datetime.now(UTC) + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    spec = {
        "runRef": {"name": "checkout-down", "uid": "1", "kind": "Investigation"},
        "call": {"id": "call_1", "server": "deploy", "serverNamespace": SHOP, "tool": "scale", "access": "changes"},
        "argumentsDigest": DIGEST,
        "arguments": '{"replicas": 3}',
        "preview": {"kind": "None"},
        "why": {"claim": "It has too few replicas.", "evidence": ["call_0"]},
        "expiresAt": until_then,
        "required": 1,
        "requesters": ["rita"],
        "decisions": [],
    }
    meta = {"name": NAME, "namespace": SHOP}
    return {"apiVersion": API_VERSION, "kind": "ToolApproval", "metadata": meta, "spec": spec | changed}


def entry(username: str, **changed: Any) -> dict[str, Any]:
    return {"username": username, "decision": "Approve", "argumentsDigest": DIGEST} | changed


async def decide(client: KubeClient, *decisions: dict[str, Any]) -> dict[str, Any]:
    return await client.patch("ToolApproval", SHOP, NAME, {"spec": {"decisions": list(decisions)}})


async def refused(write: Callable[[], Any]) -> str:
    with pytest.raises(ApiError) as found:
        await write()
    assert found.value.reason in ("Forbidden", "Invalid"), found.value
    return found.value.message


async def put_in_force(admin: KubeClient, as_user: As, **changed: Any) -> None:
    """Puts the policies, and an approval of the operator; waits until a forgery is refused."""
    await put_policies(admin)
    async with as_user(OPERATOR) as operator:
        await operator.create(approval(**changed))

    await wait_until_refused(admin, "tarsy-approve", ("ToolApproval", SHOP, NAME), {"decisions": [entry("x")]})


WHO = [
    ("nobody", "none", entry("nobody"), "cannot patch"),
    ("vera", "viewers", entry("vera"), "cannot patch"),
    ("ivan", "on-call", entry("ivan"), "cannot patch"),
    ("tess", "tracers", entry("tess"), "cannot patch"),
    ("dora", "of-database", entry("dora"), "dora may not approve calls of MCPServer deploy"),
    ("rita", "approvers", entry("rita"), "you cannot approve a call of a run that you started"),
    ("anna", "approvers", entry("ben"), "must be your own, anna"),
    ("anna", "approvers", entry("anna", argumentsDigest=OTHER), "is not spec.argumentsDigest"),
]


@pytest.mark.newer_api
async def test_who_may_decide(admin: KubeClient, as_user: As) -> None:
    reads = {"apiGroups": ["tarsy.dev"], "resources": ["toolapprovals"], "verbs": ["get", "patch"]}
    of_one = {"apiGroups": ["tarsy.dev"], "resources": ["mcpservers"], "resourceNames": ["database"]}
    only_database = rights.role("database-approver", SHOP, reads, of_one | {"verbs": ["approve"]})
    bound = rights.binding("database-approver", SHOP, "Role", "database-approver", rights.group("of-database"))
    await rights.put_rights(admin, [only_database, bound])
    await put_in_force(admin, as_user)
    for username, group, decision, why in WHO:
        async with as_user(username, group) as client:
            assert why in await refused(lambda client=client, decision=decision: decide(client, decision)), username
    assert (await admin.get("ToolApproval", SHOP, NAME))["spec"]["decisions"] == []
    async with as_user("rita", "approvers") as rita:
        await decide(rita, entry("rita", decision="Reject"))
    async with as_user("anna", "approvers") as anna:
        first = entry("rita", decision="Reject")
        for history in ([entry("anna")], [entry("rita"), entry("anna")], [first, entry("anna"), entry("ben")], []):
            message = await refused(lambda history=history: decide(anna, *history))
            assert "decisions" in message
        await decide(anna, first, entry("anna"))
        assert "decisions can only be appended" in await refused(
            lambda: decide(anna, first, entry("anna", reason="I changed my mind"))
        )


@pytest.mark.newer_api
async def test_rest_of_an_approval_is_fixed_and_only_the_operator_creates_one(admin: KubeClient, as_user: As) -> None:
    await put_in_force(admin, as_user)
    other = copy.deepcopy(approval())
    other["metadata"]["name"] = "another"
    async with as_user("anna", "approvers") as anna:
        assert "cannot create" in await refused(lambda: anna.create(other))
        for field, value in (
            ("arguments", "{}"),
            ("argumentsDigest", OTHER),
            ("requesters", ["ben"]),
            ("required", 2),
            ("expiresAt", "2126-01-01T00:00:00Z"),
            ("call", {"server": "database"}),
        ):
            write = {"spec": {field: value, "decisions": [entry("anna")]}}
            await refused(lambda write=write: anna.patch("ToolApproval", SHOP, NAME, write))
        await anna.patch("ToolApproval", SHOP, NAME, {"metadata": {"labels": {"seen": "yes"}}})
    async with as_user(OPERATOR) as operator:
        decided = copy.deepcopy(other)
        decided["spec"]["decisions"] = [entry("anna")]
        assert "without decisions" in await refused(lambda: operator.create(decided))


@pytest.mark.newer_api
async def test_what_is_decided_or_expired_takes_no_decision(admin: KubeClient, as_user: As) -> None:
    await put_in_force(admin, as_user)
    over = {
        "type": "Decided",
        "status": "True",
        "reason": "Expired",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    async with as_user(OPERATOR) as operator:
        await operator.patch("ToolApproval", SHOP, NAME, {"status": {"conditions": [over]}}, subresource="status")
    async with as_user("anna", "approvers") as anna:
        assert "decided or expired already" in await refused(lambda: decide(anna, entry("anna")))


async def test_operator_alone_writes_approvals_and_viewers_do_not_read_them(admin: KubeClient, as_user: As) -> None:
    async with as_user(OPERATOR) as operator:
        await operator.create(approval())
    for group in ("viewers", "on-call", "authors"):
        async with as_user("somebody", group) as client:
            assert "cannot get" in await refused(lambda client=client: client.get("ToolApproval", SHOP, NAME))
    for group in ("tracers", "approvers"):
        async with as_user("somebody", group) as client:
            assert (await client.get("ToolApproval", SHOP, NAME))["spec"]["argumentsDigest"] == DIGEST
            await refused(lambda client=client: client.create(approval()))


@pytest.mark.newer_api
async def test_two_people_who_did_not_ask_have_to_approve(admin: KubeClient, as_user: As) -> None:
    await put_in_force(admin, as_user, required=2)
    anna, ben = entry("anna"), entry("ben")
    async with as_user("anna", "approvers") as client:
        await decide(client, anna)
        await refused(lambda: decide(client, anna, entry("anna", reason="twice")))
        await refused(lambda: decide(client, anna, ben))
    async with as_user("rita", "approvers") as client:
        assert "you cannot approve a call of a run that you started" in await refused(
            lambda: decide(client, anna, entry("rita"))
        )
    async with as_user("ben", "approvers") as client:
        await decide(client, anna, ben)
    found = await admin.get("ToolApproval", SHOP, NAME)
    assert [one["username"] for one in found["spec"]["decisions"]] == ["anna", "ben"]


async def test_requester_cannot_approve_even_without_the_policy(admin: KubeClient) -> None:
    """By a rule of the kind itself, where the API server knows CEL."""
    await admin.create(approval())
    if await admin.version() >= (1, 25):
        assert "you cannot approve" in await refused(lambda: decide(admin, entry("rita")))
    await decide(admin, entry("rita", decision="Reject"))


def pre_approving(*entries: dict[str, Any]) -> dict[str, Any]:
    spec = {"stages": [{"name": "mend", "agents": [{"name": "mender"}]}], "preApproved": list(entries)}
    return {
        "apiVersion": API_VERSION,
        "kind": "Chain",
        "metadata": {"name": "mend", "namespace": SHOP},
        "spec": spec,
    }


def pre_approved(username: str, **changed: Any) -> dict[str, Any]:
    found = {
        "server": "deploy",
        "tool": "scale",
        "when": "arguments.replicas <= 5",
        "until": "2126-01-01T00:00:00Z",
        "author": {"username": username},
    }
    return found | changed


@pytest.mark.newer_api
async def test_who_may_write_pre_approvals(admin: KubeClient, as_user: As) -> None:
    of_one = {"apiGroups": ["tarsy.dev"], "resources": ["mcpservers"], "resourceNames": ["database"]}
    only_database = rights.role("pre-approver", SHOP, of_one | {"verbs": ["approve"]})
    bound = rights.binding("pre-approver", SHOP, "Role", "pre-approver", rights.group("of-database"))
    await rights.put_rights(admin, [only_database, bound])
    await put_in_force(admin, as_user)
    async with as_user("alma", "authors") as author:
        assert "alma may not approve calls of MCPServer deploy" in await refused(
            lambda: author.create(pre_approving(pre_approved("alma")))
        )
        await author.create(pre_approving())
    async with as_user("dora", "authors", "of-database") as dora:
        mixed = [pre_approved("dora", server="database"), pre_approved("dora")]
        for entries in ([pre_approved("dora")], mixed, [pre_approved("dora", server="database")] * 3 + mixed[1:]):
            body = {"spec": {"preApproved": entries}}
            message = await refused(lambda body=body: dora.patch("Chain", SHOP, "mend", body))
            assert "may not approve calls of MCPServer deploy" in message
        elsewhere = pre_approved("dora", server="database", serverNamespace=SYSTEM)
        for one in (pre_approved("anna", server="database"), elsewhere):
            body = {"spec": {"preApproved": [one]}}
            await refused(lambda body=body: dora.patch("Chain", SHOP, "mend", body))
        await dora.patch("Chain", SHOP, "mend", {"spec": {"preApproved": [pre_approved("dora", server="database")]}})
    first = pre_approved("dora", server="database")
    async with as_user("alma", "authors") as author:
        await author.patch("Chain", SHOP, "mend", {"spec": {"description": "others may write the rest"}})
        widened = {"spec": {"preApproved": [first | {"when": "true"}]}}
        assert "must be you, alma" in await refused(lambda: author.patch("Chain", SHOP, "mend", widened))
        await author.patch("Chain", SHOP, "mend", {"spec": {"preApproved": []}})
    async with as_user("anna", "authors", "approvers") as anna:
        forged = {"username": "anna", "groups": ["of-database"]}
        body = {"spec": {"preApproved": [pre_approved("anna", author=forged)]}}
        assert "with groups of your own" in await refused(lambda: anna.patch("Chain", SHOP, "mend", body))
        four = [pre_approved("anna", tool=f"scale-{number}") for number in range(4)]
        await anna.patch("Chain", SHOP, "mend", {"spec": {"preApproved": four}})
