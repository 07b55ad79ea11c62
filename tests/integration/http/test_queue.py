"""Tests the queue and the workers over HTTP, and who may read them."""

from integration.http.site import Site, Visitor, condition
from integration.store.build import claimed_run

QUEUE = [{"apiGroups": ["record.tarsy.dev"], "resources": ["queue", "workers"], "verbs": ["list"]}]


async def test_the_queue_tells_why_each_run_waits(site: Site, administrator: Visitor, namespace: str) -> None:
    run = await site.accepted(namespace)
    body = (await administrator.get("/queue", namespace=namespace)).body
    assert (body["pending"], body["running"], body["parked"], body["workers"], body["omitted"]) == (1, 0, 0, 0, 0)
    (item,) = body["items"]
    assert (item["kind"], item["namespace"], item["name"], item["uid"]) == (
        "Investigation",
        namespace,
        "alert-1",
        str(run.id),
    )
    assert (item["accepted"], item["chain"]) == (True, "crashloop")
    assert (item["reason"], item["investigation"], item["until"]) == ("NoWorker", None, None)
    assert "No worker is alive" in item["message"]
    await site.accepted(namespace, "alert-2")
    body = (await administrator.get("/queue", namespace=namespace, limit=1)).body
    assert ([one["name"] for one in body["items"]], body["omitted"]) == (["alert-1"], 1)
    assert (await administrator.get("/queue", limit=0)).status == 400
    assert (await administrator.get("/queue", limit=201)).status == 400


async def test_who_may_list_the_queue_of_a_namespace_sees_its_runs_and_no_workers(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await claimed_run(site.services.pool)  # of another namespace
    await site.accepted(namespace)
    viewer = await site.visitor(namespace, "viewer", here=QUEUE)
    for answer in (
        await viewer.get("/queue", namespace=namespace),
        await viewer.get(f"/namespaces/{namespace}/queue"),
    ):
        assert (answer.body["pending"], answer.body["running"], answer.body["workers"]) == (1, 0, 1)
        assert [one["reason"] for one in answer.body["items"]] == ["Queued"]
    assert (await viewer.get("/queue")).status == 403
    assert (await viewer.get("/workers")).status == 403
    (worker,) = (await administrator.get("/workers")).body["items"]
    assert (worker["host"], worker["alive"], worker["runs"], worker["places"]) == ("node-1", True, 1, None)


async def test_what_is_not_accepted_waits_among_the_runs_for_those_who_may_list_it(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    await site.accepted(namespace)
    waits = condition("Accepted", "False", "NoChain", "No Chain accepts alerts of type PodCrash.")
    alert = {"alertType": "PodCrash", "data": "x"}
    await site.put("Alert", namespace, "early", alert, phase="Waiting", conditions=[waits])
    body = (await administrator.get("/queue", namespace=namespace)).body
    assert {(one["kind"], one["name"], one["accepted"]) for one in body["items"]} == {
        ("Alert", "early", False),
        ("Investigation", "alert-1", True),
    }
    assert (body["notAccepted"], body["omitted"]) == (1, 0)
    told = next(one for one in body["items"] if one["kind"] == "Alert")
    assert (told["reason"], told["alertType"], told["chain"]) == ("NoChain", "PodCrash", None)
    one = (await administrator.get("/queue", namespace=namespace, limit=1)).body
    assert (len(one["items"]), one["omitted"]) == (1, 1)
    viewer = await site.visitor(namespace, "of-the-queue", here=QUEUE)
    body = (await viewer.get("/queue", namespace=namespace)).body
    assert (body["notAccepted"], [one["kind"] for one in body["items"]]) == (0, ["Investigation"])
