"""Tests the rights of authors: they are checked at acceptance, level-triggered, and reported in a sentence."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

import rights
from integration.controllers.desk import Desk, eventually
from tarsy_dev.objects import put

ALICE = {"username": "alice", "uid": "a-1", "groups": ["on-call"]}
ALERT = {"alertType": "PodCrash", "data": "it crashed"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.controllers.runs.acceptance.RECHECK_SECONDS", 0.3)


async def grant(desk: Desk, *resources: str, names: Sequence[str] = (), namespace: str = "") -> None:
    """Lets the group on-call `use` these in a namespace, that of the desk unless another is named."""
    name, space = f"use-{'-'.join(resources)}", namespace or desk.namespace
    rule: dict[str, Any] = {"apiGroups": ["tarsy.dev"], "resources": list(resources), "verbs": ["use"]}
    if names:
        rule["resourceNames"] = list(names)
    bound = rights.binding(name, space, "Role", name, rights.group("on-call"))
    await rights.put_rights(desk.kube, (rights.role(name, space, rule), bound))


async def let_read(desk: Desk, resource: str, *names: str, group: str = "") -> None:
    """Lets the group on-call `get` these in the namespace of the desk; all of a resource where none is named."""
    name = f"get-{resource.replace('/', '-')}"
    rule: dict[str, Any] = {"apiGroups": [group], "resources": [resource], "verbs": ["get"]}
    if names:
        rule["resourceNames"] = list(names)
    bound = rights.binding(name, desk.namespace, "Role", name, rights.group("on-call"))
    await rights.put_rights(desk.kube, (rights.role(name, desk.namespace, rule), bound))


async def let_ask(desk: Desk) -> None:
    """Lets the group on-call read the timelines that questions are answered from."""
    await let_read(desk, "investigations/timeline", group="record.tarsy.dev")


async def refused(desk: Desk, kind: str, name: str) -> str:
    return await desk.reason(kind, name, "Accepted", "False", "Forbidden")


async def test_run_of_an_alert_is_its_authors_in_object_and_record(desk: Desk) -> None:
    await desk.configure()
    await grant(desk, "chains", names=["one"])
    async with desk.controller():
        await desk.alert(author=ALICE)
        found = await desk.queued()
        assert found["spec"]["author"] == ALICE
        claimed = await desk.claim()
        assert claimed.author == ALICE
        name = found["metadata"]["name"]
        await desk.reason("Investigation", name, "Accepted", "True", "Planned")


async def test_author_who_may_not_use_the_chain_waits_until_they_may(desk: Desk) -> None:
    await desk.configure()
    await grant(desk, "mcpservers")
    async with desk.controller():
        await desk.put("Investigation", "crash", {"alert": ALERT, "author": ALICE})
        message = await refused(desk, "Investigation", "crash")
        where = desk.namespace
        assert f"spec.author: alice may not use Chain {where}/one; in namespace {where} grant" in message
        assert "a role with the verb use on chains.tarsy.dev one, such as tarsy-investigator" in message
        assert (await desk.get("Investigation", "crash"))["status"]["lastError"]["reason"] == "Forbidden"
        await grant(desk, "chains")
        await desk.reason("Investigation", "crash", "Accepted", "True", "Planned")


async def test_binding_to_a_role_that_is_not_there_is_no_yes_and_keeps_nobody_from_being_told(desk: Desk) -> None:
    await desk.configure()
    await put(desk.kube, rights.binding("dangling", desk.namespace, "Role", "gone", rights.user("alice")))
    async with desk.controller():
        await desk.put("Investigation", "crash", {"alert": ALERT, "author": ALICE})
        assert "alice may not use Chain" in await refused(desk, "Investigation", "crash")
        await grant(desk, "chains")
        await desk.reason("Investigation", "crash", "Accepted", "True", "Planned")


async def test_chain_of_the_library_is_asked_for_in_the_library(desk: Desk) -> None:
    library = f"{desk.namespace}-library"
    await put(desk.kube, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": library}})
    home, desk.namespace = desk.namespace, library
    await desk.configure(skip=("Chain",))
    spec = {"llmProvider": "one", "stages": [{"name": "look", "agents": [{"name": "one"}]}]}
    await desk.put("Chain", "shared", spec | {"alertTypes": ["PodCrash"], "allowedNamespaces": {"from": "All"}})
    desk.namespace = home
    await grant(desk, "chains")
    async with desk.controller(everywhere=True, library=library):
        await desk.put("Investigation", "crash", {"alert": ALERT, "author": ALICE})
        assert f"may not use Chain {library}/shared; in namespace {library}" in await refused(
            desk, "Investigation", "crash"
        )
        await grant(desk, "chains", namespace=library)
        await desk.reason("Investigation", "crash", "Accepted", "True", "Planned")


async def test_each_server_that_an_alert_brings_needs_the_right_to_use_it(desk: Desk) -> None:
    await desk.configure()
    for name in ("first", "second"):
        await desk.put("MCPServer", name, {"transport": {"type": "http", "http": {"url": "http://127.0.0.1:9/mcp"}}})
    await grant(desk, "chains")
    brought = ALERT | {"mcpServers": [{"name": "first"}, {"name": "second"}]}
    async with desk.controller():
        await desk.put("Investigation", "crash", {"alert": brought, "author": ALICE})
        message = await refused(desk, "Investigation", "crash")
        assert "MCPServer" in message and "/first;" in message and "/second;" in message
        await grant(desk, "mcpservers", names=["first"])

        async def one_left() -> bool:
            text = await refused(desk, "Investigation", "crash")
            return "/first;" not in text and "the verb use on mcpservers.tarsy.dev second" in text

        await eventually(one_left)
        await grant(desk, "mcpservers", names=["first", "second"])
        await desk.reason("Investigation", "crash", "Accepted", "True", "Planned")


@pytest.mark.parametrize("field", ["dataFrom", "runbook"])
async def test_a_config_map_that_an_alert_names_is_read_only_for_who_may_read_it(desk: Desk, field: str) -> None:
    await desk.configure()
    await grant(desk, "chains")
    await desk.core("ConfigMap", "theirs", {"data": {"text": "not for alice"}})
    named = {"configMapKeyRef": {"name": "theirs", "key": "text"}}
    content = {"alertType": "PodCrash", **({"data": "x"} if field == "runbook" else {}), field: named}
    async with desk.controller():
        await desk.put("Investigation", "crash", {"alert": content, "author": ALICE})
        message = await refused(desk, "Investigation", "crash")
        where = desk.namespace
        assert f"spec.author: alice may not read ConfigMap {where}/theirs, which Investigation {where}/crash" in message
        assert f"spec.alert.{field}.configMapKeyRef names; in namespace {where} grant them a role" in message
        assert "the verb get on configmaps theirs, such as view" in message
        uid = UUID((await desk.get("Investigation", "crash"))["metadata"]["uid"])
        assert await desk.reads.record(uid) is None, "nothing was read into the record"
        await let_read(desk, "configmaps", "theirs")
        await desk.reason("Investigation", "crash", "Accepted", "True", "Planned")
    claimed = await desk.claim()
    assert (claimed.alert_data if field == "dataFrom" else claimed.runbook) == "not for alice"


async def test_an_alert_of_somebody_else_is_run_only_by_who_may_read_it_and_what_it_names(desk: Desk) -> None:
    """Neither reads through the other: who wrote the alert names the ConfigMap, who runs it sees what is found."""
    await desk.configure()
    await grant(desk, "chains")
    await desk.core("ConfigMap", "theirs", {"data": {"text": "not for alice"}})
    mallory = {"username": "mallory", "groups": ["nobody"]}
    named = {"configMapKeyRef": {"name": "theirs", "key": "text"}}
    await desk.put("Alert", "bait", {"alertType": "PodCrash", "dataFrom": named, "author": mallory})
    await desk.put("Investigation", "crash", {"alertRef": {"name": "bait"}, "author": ALICE})
    async with desk.controller():
        message = await refused(desk, "Investigation", "crash")
        where = desk.namespace
        assert (
            f"alice may not read Alert {where}/bait, which Investigation {where}/crash: spec.alertRef.name" in message
        )
        assert f"alice may not read ConfigMap {where}/theirs" in message
        await let_read(desk, "alerts", group="tarsy.dev")
        await let_read(desk, "configmaps")

        async def only_the_other() -> bool:
            text = await refused(desk, "Investigation", "crash")
            return "alice" not in text and f"mallory may not read ConfigMap {where}/theirs" in text

        await eventually(only_the_other)


async def test_question_of_one_who_may_not_use_the_chain_waits_and_another_beside_it_is_taken(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.finished("crash")
    # Both are there when the controller begins: questions that come together are asked together.
    await desk.ask("mine", "crash", author=ALICE)
    await desk.ask("theirs", "crash", author=ALICE | {"username": "root", "groups": ["system:masters"]})
    async with desk.controller():
        await desk.reason("ChatMessage", "theirs", "Accepted", "True", "Planned")
        message = await refused(desk, "ChatMessage", "mine")
        assert f"spec.author: alice may not use Chain {desk.namespace}/one" in message
        claimed = await desk.claim_question()
        assert claimed is not None and claimed.author["username"] == "root"
        assert await desk.claim_question() is None
        await desk.finish(claimed)
        assert f"may not read the timeline of Investigation {desk.namespace}/crash, which ChatMessage" in message
        assert "the verb get on investigations.record.tarsy.dev/timeline crash, such as tarsy-investigator" in message
        await grant(desk, "chains")

        async def may_use() -> bool:
            return "may not use" not in await refused(desk, "ChatMessage", "mine")

        await eventually(may_use)
        await let_ask(desk)
        await desk.reason("ChatMessage", "mine", "Accepted", "True", "Planned")
        claimed = await desk.claim_question()
        assert claimed is not None and claimed.author == ALICE


async def test_question_about_a_run_whose_alert_brought_a_server_needs_the_right_to_use_that_too(desk: Desk) -> None:
    await desk.configure()
    await desk.put("MCPServer", "own", {"transport": {"type": "http", "http": {"url": "http://127.0.0.1:9/mcp"}}})
    await grant(desk, "chains")
    await let_ask(desk)
    async with desk.controller():
        await desk.finished("crash", alert=ALERT | {"mcpServers": [{"name": "own"}]})
        await desk.ask("why", "crash", author=ALICE)
        assert f"alice may not use MCPServer {desk.namespace}/own" in await refused(desk, "ChatMessage", "why")
        await grant(desk, "mcpservers")
        await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")


async def test_where_authors_are_required_what_nobody_stamped_is_refused(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.finished("past")
    async with desk.controller(require_author=True):
        await desk.alert()
        await desk.put("Investigation", "direct", {"alert": ALERT})
        await desk.ask("why", "past")
        for kind, name in (("Alert", "crash"), ("Investigation", "direct"), ("ChatMessage", "why")):
            message = await desk.reason(kind, name, "Accepted", "False", "AuthorUnknown")
            assert "spec.author: no author is set, and authors are required" in message
            assert "manifests/base/admission.yaml" in message
        assert [found["metadata"]["name"] for found in await desk.investigations()] == ["direct", "past"]
    async with desk.controller():
        await desk.queued()
