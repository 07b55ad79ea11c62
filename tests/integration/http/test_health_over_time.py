"""Tests the health of configuration objects over time, and the changes of their conditions, over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Any

from integration.http.site import Site, Visitor, condition
from tarsy.record.reading.condition_transition import ConditionTransition
from tarsy.record.reading.object_history import ObjectIdentity
from tarsy.store.history.condition_transitions import ConditionTransitions

HTTP = {"transport": {"type": "http", "http": {"url": "https://tools.example/mcp"}}}
CHAIN = {"alertTypes": ["PodCrash"], "stages": [{"name": "look", "agents": [{"name": "investigator"}]}]}
READY = [condition("Ready", "True")]


def _rule(group: str, *resources: str) -> dict[str, list[str]]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["list"]}


async def _recorded(site: Site, made: dict[str, Any], *statuses: str, namespace_uid: str | None = None) -> None:
    """Changes of the condition Available of an object, a minute apart, the last one a minute ago."""
    meta, now = made["metadata"], datetime.now(UTC).replace(microsecond=0)
    uid = namespace_uid or await site.uid_of(meta["namespace"])
    place = ObjectIdentity(uid, meta["namespace"], made["kind"], meta["name"], meta["uid"])
    rows = [
        ConditionTransition(
            place,
            "Available",
            now - timedelta(minutes=len(statuses) - number),
            status,
            statuses[number - 1] if number else None,
            "Unreachable" if status == "False" else "Answers",
            f"It is {status}.",
            "https://tools.example",
        )
        for number, status in enumerate(statuses)
    ]
    await ConditionTransitions(site.services.pool).write(rows)


async def test_objects_have_their_health_over_time_and_their_last_problem(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    made = await site.put("MCPServer", namespace, "tools", HTTP, conditions=READY)
    await site.put("Chain", namespace, "crash", CHAIN, conditions=READY)
    await _recorded(site, made, "True", "False", "True")
    body = (await administrator.get("/objects", namespace=namespace)).body
    assert body["cellMinutes"] == 60 and [one["name"] for one in body["items"]] == ["crash", "tools"]
    chain, server = body["items"]
    assert (chain["transitions"], chain["lastProblem"]) == (0, None)
    assert [(one["cells"], one["health"]) for one in chain["history"]] == [(24, "Ready")]
    assert (server["health"], server["transitions"]) == ("Ready", 2)
    assert (server["lastProblem"]["reason"], server["lastProblem"]["address"]) == (
        "Unreachable",
        "https://tools.example",
    )
    assert server["history"][-1]["health"] == "Degraded" and sum(one["cells"] for one in server["history"]) == 24
    week = (await administrator.get("/objects", namespace=namespace, hours=168, kind="MCPServer")).body
    assert (week["cellMinutes"], [one["kind"] for one in week["items"]]) == (360, ["MCPServer"])
    here = f"/namespaces/{namespace}/objects"
    assert [one["name"] for one in (await administrator.get(here, name="tools")).body["items"]] == ["tools"]
    first = (await administrator.get(here, limit=1)).body
    rest = (await administrator.get(here, limit=1, **{"continue": first["continue"]})).body
    assert [one["name"] for one in (*first["items"], *rest["items"])] == ["crash", "tools"] and not rest["continue"]
    for wrong in ({"hours": 0}, {"hours": 169}, {"limit": 1001}, {"kind": "Alert"}):
        assert (await administrator.get(here, **wrong)).status == 400


async def test_transitions_are_paged_and_end_with_their_namespace(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    made = await site.put("MCPServer", namespace, "tools", HTTP, conditions=READY)
    await _recorded(site, made, "True", "False", "True")
    earlier = {**made, "metadata": {**made["metadata"], "uid": f"{namespace}-earlier"}}
    await _recorded(site, earlier, "True", namespace_uid="a namespace of that name before")
    here, query = f"/namespaces/{namespace}/transitions", {"kind": "MCPServer", "name": "tools"}
    body = (await administrator.get(here, **query)).body
    assert [(one["was"], one["status"]) for one in body["items"]] == [
        ("False", "True"),
        ("True", "False"),
        (None, "True"),
    ]
    assert (body["items"][1]["reason"], body["items"][1]["message"]) == ("Unreachable", "It is False.")
    assert body["continue"] is None
    first = (await administrator.get("/transitions", namespace=namespace, limit=2)).body
    rest = await administrator.get("/transitions", namespace=namespace, limit=2, **{"continue": first["continue"]})
    assert [*first["items"], *rest.body["items"]] == body["items"]
    other = await administrator.get(here, limit=2, kind="Chain", **{"continue": first["continue"]})
    assert (other.status, (await administrator.get(here, kind="Chain")).body["items"]) == (400, [])


async def test_callers_see_the_kinds_that_they_may_list(site: Site, namespace: str) -> None:
    server = await site.put("MCPServer", namespace, "tools", HTTP, conditions=READY)
    chain = await site.put("Chain", namespace, "crash", CHAIN, conditions=READY)
    for made in (server, chain):
        await _recorded(site, made, "True")
    record = _rule("record.tarsy.dev", "objects", "transitions")
    viewer = await site.visitor(namespace, "viewer", here=[record, _rule("tarsy.dev", "mcpservers")])
    for path in ("/objects", "/transitions"):
        body = (await viewer.get(path, namespace=namespace)).body
        assert [one["kind"] for one in body["items"]] == ["MCPServer"]
        assert (await viewer.get(path)).status == 403
        assert (await viewer.get(path, namespace=namespace, kind="Chain")).body["items"] == []
    other = await site.visitor(namespace, "other", here=[_rule("tarsy.dev", "mcpservers")])
    for path in ("/objects", "/transitions"):
        assert (await other.get(f"/namespaces/{namespace}{path}")).status == 403
