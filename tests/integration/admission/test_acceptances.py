"""Tests who may accept tools of an MCPServer, by the shipped policy and roles."""

from collections.abc import Callable
from typing import Any

import pytest

import rights
from integration.admission.conftest import OPERATOR, SHOP, As, put_policies
from policies import wait_until_refused
from tarsy.client.aggregated import AggregatedClient
from tarsy.client.errors import ApiUseError
from tarsy.client.kubeconfig import ChosenContext
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import API_VERSION
from tarsy_dev.objects import manifest

NAME = "deploy"
DIGEST = "a" * 64


def server(**spec: Any) -> dict[str, Any]:
    body = {"transport": {"type": "http", "http": {"url": "http://tools/mcp"}}, "pin": "Approved"} | spec
    return {
        "apiVersion": API_VERSION,
        "kind": "MCPServer",
        "metadata": {"name": NAME, "namespace": SHOP},
        "spec": {key: value for key, value in body.items() if value is not None},
    }


def entry(username: str, **changed: Any) -> dict[str, Any]:
    return {"username": username, "tools": [{"name": "scale", "digest": DIGEST}]} | changed


async def accept(client: KubeClient, *entries: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return await client.patch("MCPServer", SHOP, NAME, {"spec": {"acceptedTools": list(entries)} | spec})


async def refused(write: Callable[[], Any]) -> str:
    with pytest.raises(ApiError) as found:
        await write()
    assert found.value.reason in ("Forbidden", "Invalid"), found.value
    return found.value.message


async def put_in_force(admin: KubeClient) -> None:
    await put_policies(admin)
    await admin.create(server())

    await wait_until_refused(admin, "tarsy-accept", ("MCPServer", SHOP, NAME), {"acceptedTools": [entry("x")]})


def by_command(client: KubeClient) -> AggregatedClient:
    """What `kubectl tarsy accept-tools` writes by."""
    return AggregatedClient(client, ChosenContext(None, None, SHOP))


WHO = [
    ("nobody", "none", entry("nobody"), "cannot patch"),
    ("vera", "viewers", entry("vera"), "cannot patch"),
    ("ivan", "on-call", entry("ivan"), "cannot patch"),
    ("anna", "approvers", entry("anna"), "cannot patch"),
    ("olga", "authors", entry("olga"), "olga may not accept tools of MCPServer deploy"),
    ("dora", "of-database", entry("dora"), "dora may not accept tools of MCPServer deploy"),
    ("tom", "acceptors", entry("ben"), "must be your own, tom"),
    ("tom", "acceptors", entry("tom", groups=["admins"]), "groups of your entry must be your own"),
]


@pytest.mark.newer_api
async def test_who_may_accept_tools(admin: KubeClient, as_user: As) -> None:
    writes = {"apiGroups": ["tarsy.dev"], "resources": ["mcpservers"], "verbs": ["get", "patch"]}
    of_one = {"apiGroups": ["tarsy.dev"], "resources": ["mcpservers"], "resourceNames": ["database"]}
    only_database = rights.role("database-acceptor", SHOP, writes, of_one | {"verbs": ["approve"]})
    bound = rights.binding("database-acceptor", SHOP, "Role", "database-acceptor", rights.group("of-database"))
    await rights.put_rights(admin, [only_database, bound])
    await put_in_force(admin)
    for username, group, decision, why in WHO:
        async with as_user(username, group) as client:
            assert why in await refused(lambda client=client, decision=decision: accept(client, decision)), username
    async with as_user("tom", "acceptors") as tom:
        assert await by_command(tom).accept(SHOP, NAME, {"scale": DIGEST}, {"reason": "Read it."}) == "tom"
    async with as_user("olga", "authors") as olga:
        with pytest.raises(ApiUseError, match="olga may not accept tools of MCPServer deploy"):
            await by_command(olga).accept(SHOP, NAME, {"scale": DIGEST}, {})
    (first,) = (await admin.get("MCPServer", SHOP, NAME))["spec"]["acceptedTools"]
    assert first["tools"] == entry("tom")["tools"] and "acceptors" in first["groups"] and first["reason"] == "Read it."
    async with as_user("uma", "acceptors") as uma:
        changed = first | {"tools": [{"name": "wipe", "digest": DIGEST}]}
        assert "must be your own, uma" in await refused(lambda: accept(uma, changed, entry("uma")))
        await accept(uma, first, entry("uma"))
    async with as_user("olga", "authors") as author:
        await accept(author, entry("uma"))  # to withdraw needs no more than to write the object
        assert "may not accept" in await refused(lambda: accept(author, entry("uma"), entry("olga")))
        await author.patch("MCPServer", SHOP, NAME, {"spec": {"description": "Deploys."}})


LOOSER = [("Approved", "TrustOnFirstUse"), ("Approved", None), ("TrustOnFirstUse", None)]


@pytest.mark.newer_api
async def test_pin_is_loosened_only_by_those_who_may_approve(admin: KubeClient, as_user: As) -> None:
    await put_in_force(admin)
    async with as_user("olga", "authors") as author, as_user("tom", "acceptors") as tom:
        for before, after in LOOSER:
            await admin.patch("MCPServer", SHOP, NAME, {"spec": {"pin": before}})
            body = {"spec": {"pin": after}}
            message = await refused(lambda body=body: author.patch("MCPServer", SHOP, NAME, body))
            assert "olga may not loosen pin of MCPServer deploy" in message
            await tom.patch("MCPServer", SHOP, NAME, body)
        for stricter in ("TrustOnFirstUse", "Approved", "Approved"):
            await author.patch("MCPServer", SHOP, NAME, {"spec": {"pin": stricter}})
        await author.delete("MCPServer", SHOP, NAME)
        named = server(acceptedTools=[entry("olga")])
        assert "may not accept" in await refused(lambda: author.create(named))
        await author.create(server(pin=None))


@pytest.mark.newer_api
async def test_operator_may_try_a_forgery_and_writes_no_spec(admin: KubeClient, as_user: As) -> None:
    await put_in_force(admin)
    await rights.put_rights(
        admin, [obj for obj in manifest("components/policies/accept.yaml") if "Role" in obj["kind"]]
    )
    async with as_user(OPERATOR) as operator:
        assert "must be your own" in await refused(lambda: accept(operator, entry("forged")))
        for spec in ({"description": "Mine."}, {"acceptedTools": [entry(OPERATOR)]}, {"pin": None}):
            body = {"spec": spec}
            message = await refused(lambda body=body: operator.patch("MCPServer", SHOP, NAME, body))
            assert "the operator writes only the status" in message
        await operator.patch("MCPServer", SHOP, NAME, {"status": {"toolCount": 1}}, subresource="status")
