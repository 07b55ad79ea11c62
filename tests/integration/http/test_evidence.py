"""Tests `changes` and `triage` on a Kubernetes API: by a caller's own token, and by the word of the front proxy.

Nothing is in an answer or in a count that the caller may not list: not by onset, rank, signal or message.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

import rights
from apis import LocalApi
from integration.evidence_shop import PRIVATE, build_shop
from integration.http.doors import SYSTEM, Doors, install, open_doors, uninstall
from integration.http.site import Site, Visitor
from integration.store.build import execution, stage, tool_call, tool_result, worker, writer
from tarsy.http.models import AGGREGATED_PREFIX
from tarsy.http.table import all_routes
from tarsy.kube.client import ApiError, KubeClient
from tarsy.record.reading.object_history import Unwatched, WatchState
from tarsy.store.history.object_history import ObjectHistory
from tarsy.store.history.retention import HistoryRetention
from tarsy.store.runs.claims import Claims
from tarsy_dev.apiserver.process import free_port

Rule = dict[str, list[str]]
ASK: Rule = {"apiGroups": ["record.tarsy.dev"], "resources": ["changes", "triage"], "verbs": ["list"]}
TIMELINE: Rule = {"apiGroups": ["record.tarsy.dev"], "resources": ["investigations/timeline"], "verbs": ["get"]}


def listing(group: str, *resources: str) -> Rule:
    """The right to list kinds of a group."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["list"]}


EVERYTHING = listing("*", "*")


@pytest.fixture
async def shop(kube: KubeClient, namespace: str) -> str:
    await build_shop(kube, namespace)
    return namespace


# With a token of their own


async def test_who_may_list_everything_sees_the_likeliest_cause_and_the_fault(site: Site, shop: str) -> None:
    ann = await site.visitor(shop, "ann", here=[ASK, EVERYTHING])
    answer = await ann.get(f"/namespaces/{shop}/changes", target="deploy/checkout", since="2h")
    assert answer.status == 200, answer.body
    assert answer.body["target"] == {"kind": "Deployment", "namespace": shop, "name": "checkout"}
    found = {one["object"]["kind"]: one for one in answer.body["changes"]}
    assert {"ConfigMap", "Deployment"} <= found.keys()
    assert found["ConfigMap"]["source"] == "reconstructed"
    assert answer.body["onsetSource"] == f"condition Ready of Pod {shop}/checkout-1"
    assert answer.body["leftOut"] == 0
    unread = {kind for kind, reason in answer.body["notRead"].items() if reason == "may not be listed"}
    assert unread == {"Node", "StorageClass", "IngressClass"}  # these have no namespace
    assert PRIVATE not in json.dumps(answer.body)
    answer = await ann.get(f"/namespaces/{shop}/triage", target="deploy/checkout")
    assert [(one["rule"], one["certainty"]) for one in answer.body["signals"]] == [("image-not-found", "Certain")]
    assert answer.body["signals"][0]["quote"] == "registry.example/checkout:1.4: not found"
    answer = await ann.get(f"/namespaces/{shop}/verdict", target="deploy/checkout")
    assert (answer.body["verdict"], answer.body["signals"][0]["rule"]) == ("Faulty", "image-not-found")
    assert answer.body["reason"] == answer.body["signals"][0]["text"]


async def test_a_verdict_of_who_may_list_too_little_is_inconclusive(site: Site, shop: str) -> None:
    ann = await site.visitor(shop, "ann", here=[ASK, listing("apps", "deployments", "replicasets")])
    answer = await ann.get(f"/namespaces/{shop}/verdict", target="deploy/checkout")
    assert answer.status == 200, answer.body
    assert answer.body["verdict"] == "Inconclusive"
    assert "Pod" in answer.body["reason"] and "Pod" in answer.body["notRead"]


async def test_who_may_list_nothing_learns_nothing(site: Site, kube: KubeClient, shop: str) -> None:
    """Not even by a difference between a namespace full of faults and an empty one."""
    empty = f"{shop}-empty"
    await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": empty}})
    answers = []
    for place in (shop, empty):
        eve = await site.visitor(place, "eve", here=[ASK])
        for path in ("changes", "triage", "changes?target=deploy/checkout", "triage?target=checkout-1"):
            answer = await eve.get(f"/namespaces/{place}/{path}")
            answers.append((place, path, answer.status, _alike(answer.body, place)))
    full, none = ([one[1:] for one in answers if one[0] == place] for place in (shop, empty))
    assert full == none
    assert {status for _, status, _ in full} == {200, 404}


def _alike(body: Any, namespace: str) -> str:
    """The text of an answer without the name of the namespace and the time."""
    kept = {key: value for key, value in body.items() if key != "since"}
    return json.dumps(kept, sort_keys=True).replace(namespace, "NAMESPACE")


async def test_without_pods_neither_their_faults_nor_their_times_are_told(site: Site, shop: str) -> None:
    bob = await site.visitor(shop, "bob", here=[ASK, listing("apps", "deployments"), listing("", "configmaps")])
    changes = (await bob.get(f"/namespaces/{shop}/changes", target="deploy/checkout")).body
    assert {one["object"]["kind"] for one in changes["changes"]} <= {"Deployment", "ConfigMap"}
    assert changes["onset"] is None and changes["onsetSource"] == ""
    triage = (await bob.get(f"/namespaces/{shop}/triage")).body
    assert triage["signals"] == [] and triage["leftOut"] == 0
    assert "checkout-1" not in json.dumps([changes, triage]) and "not found" not in json.dumps([changes, triage])
    gone = await bob.get(f"/namespaces/{shop}/changes", target="pod/checkout-1")
    assert (gone.status, gone.message) == (
        404,
        f"Pod {shop}/checkout-1 was not found; Pod could not be read in full: may not be listed",
    )


async def test_recorded_changes_are_told_to_who_may_get_their_kind_and_to_nobody_else(site: Site, shop: str) -> None:
    await record_deleted_config(site, shop)
    cat, dan = [ASK, EVERYTHING], [ASK, EVERYTHING, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    lister = await site.visitor(shop, "lister", here=cat)
    listed = (await lister.get(f"/namespaces/{shop}/changes")).body
    assert "payments-config" not in json.dumps(listed), "the right to list is not enough"
    getter = await site.visitor(shop, "getter", here=dan)
    got = (await getter.get(f"/namespaces/{shop}/changes")).body
    (found,) = [one for one in got["changes"] if one["object"]["name"] == "payments-config"]
    assert (found["type"], found["source"], found["manager"], found["summary"]) == (
        "Delete", "recorded", "argocd", "deleted",
    )  # fmt: skip
    assert "not watched" in got["notRead"]["ConfigMap"]


async def record_deleted_config(site: Site, namespace: str) -> None:
    """Puts the deletion of a ConfigMap on record, and a window that was not watched."""
    pool, uid_, now = site.services.pool, await site.uid_of(namespace), datetime.now(UTC)
    await HistoryRetention(pool).make_partitions(now.date())
    history, began = ObjectHistory(pool), now - timedelta(days=3)
    await history.note_watches([(uid_, "ConfigMap", namespace, began, WatchState.WATCHING)])
    window = Unwatched("ConfigMap", now - timedelta(minutes=50), now - timedelta(minutes=40), "TARSy did not run")
    await history.note_unwatched(uid_, namespace, window)
    await pool.execute(
        "INSERT INTO object_version (uid, seq, seen_at, namespace_uid, namespace, kind, name, action, type, changed_at,"
        " last_at, count, manager, fields, patch, bytes) VALUES ($1, 2, $2, $3, $4, 'ConfigMap', 'payments-config',"
        " 'deleted', 'Delete', $2, $2, 1, 'argocd', '{}', '[]', 400)",
        str(uuid.uuid4()), now - timedelta(minutes=5), uid_, namespace,
    )  # fmt: skip


async def test_the_right_to_ask_is_required(site: Site, shop: str) -> None:
    mallory = await site.visitor(shop, "mallory", here=[EVERYTHING | {"apiGroups": ["", "apps"]}])
    for path in ("changes", "triage"):
        answer = await mallory.get(f"/namespaces/{shop}/{path}")
        assert answer.status == 403 and "checkout" not in answer.message


async def test_what_is_asked_wrongly_is_a_sentence(site: Site, shop: str, administrator: Visitor) -> None:
    path = f"/namespaces/{shop}/changes"
    for query, status, said in (
        ({"target": "gadget/x"}, 400, "kind 'gadget' is not known here"),
        ({"target": "deploy/"}, 400, "names no object"),
        ({"target": "deploy/none"}, 404, f"there is no Deployment {shop}/none; there are checkout"),
        ({"target": "certificate/none"}, 404, f"there is no Certificate {shop}/none"),
        ({"target": "a\x1b[31mb"}, 400, "query parameter target"),
        ({"target": "x" * 321}, 400, "query parameter target"),
        ({"target": ""}, 400, "query parameter target"),
        ({"since": "-2h"}, 400, "must be a number and s, m, h or d"),
        ({"since": "soon"}, 400, "must be a number and s, m, h or d"),
        ({"since": "0h"}, 400, "must be a number and s, m, h or d"),
        ({"since": "٢h"}, 400, "must be a number and s, m, h or d"),
        ({"since": "8d"}, 400, "must be at most 7d"),
        ({"since": "999999d"}, 400, "must be at most 7d"),
        ({"sinc": "1h"}, 400, "known parameters: since, target"),
    ):
        answer = await administrator.get(path, **query)
        assert (answer.status, said in answer.message) == (status, True), (query, answer.body)
    for since in ("1s", "7d", "168h"):
        assert (await administrator.get(path, since=since)).status == 200
    gone = await administrator.get("/namespaces/gone-away/changes")
    assert (gone.status, gone.message) == (404, "there is no namespace gone-away")


async def test_an_investigation_shows_the_changes_before_it_with_the_rights_of_the_reader(
    site: Site, shop: str
) -> None:
    alert = {"labels": {"deployment": "checkout"}, "startsAt": datetime.now(UTC).isoformat()}
    run = await site.accepted(shop, "checkout-down", alert_data=json.dumps({"alerts": [alert]}))
    path = f"/namespaces/{shop}/investigations/{run.name}/changes"
    ann = await site.visitor(shop, "ann", here=[TIMELINE, EVERYTHING])
    body = (await ann.get(path)).body
    assert "ConfigMap" in {one["object"]["kind"] for one in body["changes"]}
    assert "image-not-found" in {one["rule"] for one in body["signals"]}
    assert body["onsetSource"] == "the alert" and body["target"]["name"] == "checkout"
    assert body["changesCall"] is None and body["triageCall"] is None
    eve = await site.visitor(shop, "eve", here=[TIMELINE])
    body = (await eve.get(path)).body
    assert body["changes"] == body["signals"] == []
    assert (await ann.get(f"/namespaces/{shop}/investigations/other/changes")).status == 404


async def test_an_investigation_leads_to_the_calls_of_its_own_stage(site: Site, shop: str) -> None:
    pool = site.services.pool
    run = await site.accepted(shop, "checkout-down")
    await Claims(pool).claim(await worker(pool), 1, 100)
    recorder, begun = writer(pool, run.id), execution(run.id)
    await recorder.begin_stage(stage(run.id))
    await recorder.begin_execution(begun)
    for index, (server, tool) in enumerate((("tarsy", "triage"), ("tarsy", "changes"), ("other", "changes"))):
        call = replace(tool_call(begun.id, index=index), server=server, tool=tool)
        await recorder.tool_call_started(call)
        if tool != "triage":
            await recorder.tool_call_finished(tool_result(begun.id, index=index))
    ann = await site.visitor(shop, "ann", here=[TIMELINE])
    body = (await ann.get(f"/namespaces/{shop}/investigations/{run.name}/changes")).body
    assert body["changesCall"] == str(tool_call(begun.id, index=1).id)
    assert body["triageCall"] is None, "it has no result yet"


async def test_a_caller_has_two_reads_at_once_and_others_are_not_refused_for_it(site: Site, shop: str) -> None:
    ann = await site.visitor(shop, "ann", here=[ASK])
    bob = await site.visitor(shop, "bob", here=[ASK])
    slots = site.services.evidence
    taken = [slots.take(ann.username) for _ in range(2)]
    refused = await ann.get(f"/namespaces/{shop}/changes")
    assert (refused.status, refused.headers["Retry-After"]) == (429, "2")
    assert (await bob.get(f"/namespaces/{shop}/changes")).status == 200
    taken[0]()
    assert (await ann.get(f"/namespaces/{shop}/changes")).status == 200


# By the word of the front proxy, where there is no token


@pytest.fixture(scope="module")
def record_port(tarsy_api: LocalApi) -> Iterator[int]:
    port = free_port()
    asyncio.run(install(tarsy_api, port))
    yield port
    asyncio.run(uninstall(tarsy_api))


@pytest.fixture
async def doors(tarsy_api: LocalApi, record_port: int, kube: KubeClient, records: asyncpg.Pool) -> AsyncIterator[Doors]:
    routes = [route for route in all_routes() if route.operation in ("getChanges", "getTriage")]
    async with open_doors(tarsy_api, record_port, kube, records, routes=routes) as doors:
        yield doors


async def _person(kube: KubeClient, namespace: str, *rules: Rule) -> str:
    """A group of people with rules in a namespace; returns its name."""
    called = f"people-{uuid.uuid4().hex[:6]}"
    bound = rights.binding(called, namespace, "Role", called, rights.group(called))
    await rights.put_rights(kube, [rights.role(called, namespace, *rules), bound])
    return called


async def _read(doors: Doors, group: str, namespace: str, path: str, **query: str) -> dict[str, Any]:
    """What a person of a group reads through the Kubernetes API, by a client certificate."""
    async with await KubeClient.load(doors.api.kubeconfig_for("ann", [group])) as ann:
        return await ann.read(f"{AGGREGATED_PREFIX}/namespaces/{namespace}/{path}", query)


async def _let_the_operator_read(kube: KubeClient, namespace: str) -> None:
    """As the component `tenant-evidence` does."""
    account = rights.account("tarsy-operator", SYSTEM)
    bound = rights.binding("tarsy-evidence-reader", namespace, "ClusterRole", "tarsy-evidence-reader", account)
    await rights.put_rights(kube, [bound])


async def test_without_the_component_the_gap_says_what_to_install(doors: Doors, kube: KubeClient, shop: str) -> None:
    group = await _person(kube, shop, ASK, EVERYTHING)
    body = await _read(doors, group, shop, "changes")
    assert body["changes"] == []
    assert "add the component tenant-evidence" in body["notRead"]["Pod"]
    assert body["notRead"]["Node"] == "may not be listed"  # this person may not


async def test_with_the_component_a_person_sees_what_they_may_list(doors: Doors, kube: KubeClient, shop: str) -> None:
    await _let_the_operator_read(kube, shop)
    everything = await _person(kube, shop, ASK, EVERYTHING)
    body = await _read(doors, everything, shop, "changes", target="deploy/checkout", since="2h")
    assert {"ConfigMap", "Deployment"} <= {one["object"]["kind"] for one in body["changes"]}
    assert PRIVATE not in json.dumps(body)
    some = await _person(kube, shop, ASK, listing("apps", "deployments"))
    body = await _read(doors, some, shop, "changes")
    assert {one["object"]["kind"] for one in body["changes"]} <= {"Deployment"}
    assert body["onset"] is None
    assert "checkout-1" not in json.dumps(body) and "settings" not in json.dumps(body["changes"])
    body = await _read(doors, some, shop, "triage")
    assert body["signals"] == [] and body["notRead"]["Pod"] == "may not be listed"


async def test_who_may_list_nodes_is_told_what_the_administrator_binds(
    doors: Doors, kube: KubeClient, shop: str
) -> None:
    group = await _person(kube, shop, ASK)
    called = f"nodes-{uuid.uuid4().hex[:6]}"
    bound = rights.binding(called, "", "ClusterRole", called, rights.group(group))
    await rights.put_rights(kube, [rights.role(called, "", listing("", "nodes")), bound])
    body = await _read(doors, group, shop, "triage")
    assert "bind the ClusterRole tarsy-evidence-cluster" in body["notRead"]["Node"]
    assert body["notRead"]["StorageClass"] == "may not be listed"


async def test_who_may_not_ask_is_refused_and_what_is_asked_wrongly_is_told(
    doors: Doors, kube: KubeClient, shop: str
) -> None:
    stranger = await _person(kube, shop, listing("", "pods"))
    with pytest.raises(ApiError) as refused:
        await _read(doors, stranger, shop, "changes")
    assert refused.value.status == 403
    group = await _person(kube, shop, ASK)
    with pytest.raises(ApiError, match=r"query parameter since: .*must be a number") as refused:
        await _read(doors, group, shop, "changes", since="soon")
    assert refused.value.status == 400


async def test_kubectl_finds_the_resources_by_discovery(doors: Doors, kube: KubeClient) -> None:
    listed = (await kube.read(AGGREGATED_PREFIX))["resources"]
    assert {(one["name"], *one["verbs"]) for one in listed if "/" not in one["name"]} == {
        ("calibration", "list"),
        ("changes", "list"),
        ("objects", "list"),
        ("queue", "list"),
        ("reviews", "list"),
        ("transitions", "list"),
        ("triage", "list"),
        ("workers", "list"),
    }
