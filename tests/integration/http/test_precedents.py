"""Tests the earlier investigations that agents were told about, over HTTP: those of a strange namespace are hidden."""

from datetime import UTC, datetime
from uuid import uuid4

from integration.http.site import Site
from tarsy.record.finding import Confidence
from tarsy.record.judging.precedent import Precedent, PrecedentEnding, PrecedentMatch
from tarsy_dev.objects import put

TIMELINE = {"apiGroups": ["record.tarsy.dev"], "resources": ["investigations/timeline"], "verbs": ["get"]}


def told(namespace: str, name: str) -> Precedent:
    return Precedent(
        id=uuid4(),
        namespace=namespace,
        name=name,
        finished_at=datetime(2026, 11, 20, tzinfo=UTC),
        match=PrecedentMatch.WORKLOAD,
        matched="PodCrash/checkout",
        summary=f"The image of {namespace} does not exist.",
        confidence=Confidence.HIGH,
        ending=PrecedentEnding.REFUTED,
        reviewer="jane",
    )


async def test_precedents_of_another_namespace_are_shown_to_those_who_may_read_there(
    site: Site, namespace: str
) -> None:
    other = f"{namespace}-other"
    await put(site.services.kube, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    before = await site.accepted(namespace, "before")
    here = told(namespace, "before").model_copy(update={"id": before.id})
    await site.accepted(namespace, "alert-1", precedents=[here, told(other, "theirs")])
    path = f"/namespaces/{namespace}/investigations/alert-1/timeline/precedents"

    near = await site.visitor(namespace, "near", here=[TIMELINE])
    shown = await near.get(path)
    assert shown.status == 200
    (one,) = shown.body["items"]
    assert (one["name"], one["match"], one["ending"], one["reviewer"]) == ("before", "Workload", "Refuted", "jane")
    assert (one["onRecord"], shown.body["hidden"]) == (True, 1)
    assert other not in str(shown.body)

    both = await (await site.visitor(namespace, "both", everywhere=[TIMELINE])).get(path)
    assert [(one["name"], one["onRecord"]) for one in both.body["items"]] == [("before", True), ("theirs", False)]
    assert both.body["hidden"] == 0

    nobody = await site.visitor(namespace, "nobody")
    assert (await nobody.get(path)).status == 403


async def test_a_run_that_was_told_about_none_has_an_empty_list(site: Site, namespace: str) -> None:
    await site.accepted(namespace, "alert-1")
    near = await site.visitor(namespace, "near", here=[TIMELINE])
    found = await near.get(f"/namespaces/{namespace}/investigations/alert-1/timeline/precedents")
    assert (found.status, found.body) == (200, {"items": [], "hidden": 0})
