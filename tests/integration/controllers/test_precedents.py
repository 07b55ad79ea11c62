"""Tests which precedents a run is told about: those that its author may read, of namespaces that grant it."""

from typing import Any
from uuid import UUID

import rights
from integration.controllers.desk import Desk, eventually
from integration.controllers.test_authors import ALICE, grant, let_read
from tarsy.record.judging.precedent import PrecedentMatch
from tarsy_dev.objects import put

DATA = '{"labels": {"deployment": "checkout"}}'
TIMELINE = "investigations/timeline"


async def configure(desk: Desk, **precedents: str) -> None:
    """A chain of the desk, with precedents."""
    await desk.configure(skip=("Chain",))
    chain: dict[str, Any] = {
        "alertTypes": ["PodCrash"],
        "llmProvider": "one",
        "stages": [{"name": "look", "agents": [{"name": "one"}]}],
    }
    await desk.put("Chain", "one", {**chain, **({"precedents": precedents} if precedents else {})})
    await grant(desk, "chains")


async def told(desk: Desk, name: str, *, data: str = DATA, author: dict[str, Any] | None = ALICE) -> list[str]:
    """The names of the precedents of a new run, which ends with a finding."""
    spec = {"alert": {"alertType": "PodCrash", "data": data}, **({"author": author} if author else {})}
    await desk.put("Investigation", name, spec)
    await desk.reason("Investigation", name, "Accepted", "True", "Planned")
    claimed = await desk.claim()
    await desk.finish(claimed)
    return [one.name for one in claimed.precedents]


async def test_runs_of_the_same_workload_are_told_to_authors_who_may_read_them(desk: Desk) -> None:
    await configure(desk, use="Hint")
    async with desk.controller():
        assert await told(desk, "first") == []
        assert await told(desk, "nobody", author=None) == [], "nobody is known whose rights would count"
        assert await told(desk, "unread") == []
        await let_read(desk, TIMELINE, "first", group="record.tarsy.dev")
        assert await told(desk, "one-name") == ["first"]
        await let_read(desk, TIMELINE, group="record.tarsy.dev")
        assert await told(desk, "all") == ["one-name", "unread", "nobody"], "the latest three of four"
        assert await told(desk, "other", data='{"labels": {"deployment": "cart"}}') == []


async def test_without_the_field_and_with_off_nothing_is_told(desk: Desk) -> None:
    await configure(desk, use="Off")
    await let_read(desk, TIMELINE, group="record.tarsy.dev")
    async with desk.controller():
        await told(desk, "first")
        assert await told(desk, "second") == []
        chain = await desk.get("Chain", "one")
        del chain["spec"]["precedents"]
        await desk.kube.replace(chain)
        assert await told(desk, "third") == []


async def test_an_incident_key_counts_more_and_secrets_are_masked(desk: Desk) -> None:
    await configure(desk, use="Hint")
    await let_read(desk, TIMELINE, group="record.tarsy.dev")
    async with desk.controller():
        await desk.alert("crash", author=ALICE, incidentKey="k-1", data="the db is down")
        await desk.queued("crash")
        await desk.finish(await desk.claim())
        await desk.pool.execute(
            "UPDATE investigation SET finding = jsonb_set(finding, '{summary}', to_jsonb($1::text))",
            "password=hunter2hunter2 was wrong",
        )
        assert await told(desk, "workload") == []
        await desk.pool.execute("UPDATE incident SET last_received = now() - interval '2 hours'")
        await desk.alert("again", author=ALICE, incidentKey="k-1", data=DATA)
        await eventually(lambda: _waits(desk))
        claimed = await desk.claim()
        assert [one.match for one in claimed.precedents] == [PrecedentMatch.INCIDENT, PrecedentMatch.WORKLOAD]
        assert claimed.precedents[0].matched == "k-1" and "hunter2" not in claimed.precedents[0].summary


async def _waits(desk: Desk) -> bool:
    return (await desk.reads.queue_depth()).pending == 1


async def test_another_namespace_needs_its_grant_and_the_right_of_the_author(desk: Desk) -> None:
    other, home = f"{desk.namespace}-other", desk.namespace
    await put(desk.kube, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    await configure(desk, use="Hint", scope="Granted")
    desk.namespace = other
    await configure(desk)
    reader = rights.role(
        "read-timelines", other, {"apiGroups": ["record.tarsy.dev"], "resources": [TIMELINE], "verbs": ["get"]}
    )
    desk.namespace = home
    async with desk.controller(everywhere=True, library="no-library"):
        desk.namespace = other
        await told(desk, "theirs")
        desk.namespace = home
        bound = rights.binding("read-timelines", other, "Role", "read-timelines", rights.group("on-call"))
        assert await told(desk, "no-grant") == []
        desk.namespace = other
        await desk.put("InvestigationDefaults", "default", {"allowedPrecedentNamespaces": {"from": "All"}})
        await desk.reason("InvestigationDefaults", "default", "Ready", "True", "Usable")
        desk.namespace = home
        assert await told(desk, "no-right") == []
        await rights.put_rights(desk.kube, (reader, bound))
        assert await told(desk, "both") == ["theirs"]


async def test_a_replay_is_told_what_its_record_was_told(desk: Desk) -> None:
    await configure(desk, use="Hint")
    await let_read(desk, TIMELINE, group="record.tarsy.dev")
    await let_read(desk, "investigations/trace", group="record.tarsy.dev")
    async with desk.controller():
        await told(desk, "first")
        assert await told(desk, "second") == ["first"]
        await told(desk, "third")
        await desk.put(
            "Investigation", "replay", {"replay": {"of": {"name": "second"}, "onMiss": "Refuse"}, "author": ALICE}
        )
        await desk.reason("Investigation", "replay", "Accepted", "True", "Planned")
        claimed = await desk.claim()
        assert [one.name for one in claimed.precedents] == ["first"]
        replay = UUID((await desk.get("Investigation", "replay"))["metadata"]["uid"])
        assert claimed.id == replay
        await desk.finish(claimed)
        assert "replay" not in await told(desk, "fourth"), "a replay is no precedent"
