"""Tests the list of what was asked for and has no record: alerts without a run, runs that were not accepted."""

from typing import Any

import pytest

from integration.http.site import Site, Visitor, condition

INV = [{"apiGroups": ["tarsy.dev"], "resources": ["investigations"], "verbs": ["get", "list"]}]
ALERT = {"alertType": "PodCrash", "data": "x" * 2_000, "severity": "Critical", "author": {"username": "anna"}}


def waits(reason: str, message: str = "Create it.") -> list[dict[str, str]]:
    return [condition("Accepted", "False", reason, message)]


async def listed(visitor: Visitor, namespace: str, **query: Any) -> Any:
    answer = await visitor.get("/unstarted", namespace=namespace, **query)
    assert answer.status == 200, answer.body
    return answer.body


async def test_what_waits_says_why_and_what_has_a_run_is_left_out(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await site.put("Alert", namespace, "waits", ALERT, phase="Waiting", conditions=waits("NoChain", "Create a Chain."))
    await site.put("Alert", namespace, "refused", ALERT, phase="Rejected", conditions=waits("AuthorMissing"))
    await site.put("Alert", namespace, "new", ALERT)
    for name, phase in (("runs", "Investigating"), ("done", "Finished"), ("folded", "Folded")):
        await site.put("Alert", namespace, name, ALERT, phase=phase)
    plain = {"alertType": "PodCrash", "data": "x"}
    await site.put("Investigation", namespace, "held", {"alert": plain}, phase="Pending", conditions=waits("Plan"))
    await site.put("Investigation", namespace, "queued", {"alert": plain}, phase="Queued")
    body = await listed(administrator, namespace)
    found = {one["name"]: one for one in body["items"]}
    assert found.keys() == {"waits", "refused", "new", "held"} and body["alerts"] is True
    told = found["waits"]
    assert (told["kind"], told["alertType"], told["severity"]) == ("Alert", "PodCrash", "Critical")
    assert (told["phase"], told["reason"], told["message"]) == ("Waiting", "NoChain", "Create a Chain.")
    assert (found["held"]["kind"], found["held"]["reason"]) == ("Investigation", "Plan")
    assert (found["new"]["phase"], found["new"]["reason"], found["new"]["message"]) == ("Pending", "", "")


async def test_pages_together_are_the_whole_list(site: Site, administrator: Visitor, namespace: str) -> None:
    for number in range(5):
        await site.put("Alert", namespace, f"a{number}", ALERT, phase="Waiting", conditions=waits("NoChain"))
    names: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        body = await listed(administrator, namespace, **query)
        names += [one["name"] for one in body["items"]]
        if body["continue"] is None:
            break
        query["continue"] = body["continue"]
    assert sorted(names) == ["a0", "a1", "a2", "a3", "a4"]


async def test_who_may_not_list_alerts_is_shown_none(site: Site, namespace: str) -> None:
    await site.put("Alert", namespace, "waits", ALERT, phase="Waiting", conditions=waits("NoChain"))
    anna = await site.visitor(namespace, "anna", here=INV)
    body = await listed(anna, namespace)
    assert body == {"items": [], "alerts": False, "continue": None}


async def test_an_object_that_got_its_run_since_it_was_found_is_left_out(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await site.put("Alert", namespace, "one", ALERT, phase="Waiting", conditions=waits("NoChain"))
    await site.put("Alert", namespace, "two", ALERT, phase="Waiting", conditions=waits("NoChain"))
    assert len((await listed(administrator, namespace))["items"]) == 2
    kube = site.services.kube
    await kube.patch("Alert", namespace, "one", {"status": {"phase": "Investigating"}}, subresource="status")
    await kube.delete("Alert", namespace, "two")
    assert (await listed(administrator, namespace))["items"] == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({}, ""),
        ({"phase": "Pending", "conditions": waits("PlanInvalid")}, "PlanInvalid"),
        (
            {
                "phase": "Failed",
                "conditions": [condition("Accepted", "True"), condition("Succeeded", "False", "RecordLost")],
            },
            "RecordLost",
        ),
    ],
    ids=["not looked at", "not accepted", "its record is gone"],
)
async def test_an_investigation_without_a_record_says_what_its_object_says(
    site: Site, administrator: Visitor, namespace: str, status: dict[str, Any], reason: str
) -> None:
    await site.put("Investigation", namespace, "held", {"alert": {"alertType": "PodCrash", "data": "x"}}, **status)
    assert (await administrator.get(f"/namespaces/{namespace}/investigations/held")).status == 404
    answer = await administrator.get(f"/namespaces/{namespace}/investigations/held/request")
    assert (answer.status, answer.body["reason"], answer.body["alertType"]) == (200, reason, "PodCrash")
    assert (await administrator.get(f"/namespaces/{namespace}/investigations/none/request")).status == 404
