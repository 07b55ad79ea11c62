"""Tests the name of an Alert's Investigation, and the Alert's status."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.controllers.alert import investigation_name, reconcile
from tarsy.controllers.machinery.cache import Cache
from tarsy.kube.client import ApiError
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1 import Alert, AlertStatus
from unit.controllers.builders import NOW, OTHER_UID, UID, alert, investigation, raw, reconcile_context

DEFAULT = {"defaultChain": "pods"}
DNS = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
names = st.from_regex(DNS, fullmatch=True).filter(lambda name: len(name) <= 253)


@given(names, st.uuids())
def test_name_is_a_valid_one_of_at_most_63_characters_and_always_the_same(name: str, uid: Any) -> None:
    made = investigation_name(alert(name, uid=str(uid)))
    assert len(made) <= 63 and DNS.fullmatch(made)
    assert made == investigation_name(alert(name, uid=str(uid)))


@pytest.mark.parametrize("name", ["a" * 253, "a" * 53 + "." + "b" * 10, "a" * 53 + "-b", "a.b"])
def test_long_and_dotted_names_are_cut_where_a_name_may_end(name: str) -> None:
    made = investigation_name(alert(name))
    assert len(made) <= 63 and DNS.fullmatch(made)


def test_alerts_of_one_name_have_investigations_of_their_own() -> None:
    assert investigation_name(alert()) != investigation_name(alert(uid=OTHER_UID))


class Api:
    """The Kubernetes API as far as alerts go; every write is noted."""

    def __init__(self, *there: dict[str, Any]) -> None:
        self.there = {(item["kind"], item["metadata"]["name"]): item for item in there}
        self.writes: list[tuple[str, str]] = []
        self.status: Any = None

    async def find(self, kind: str, namespace: str, name: str) -> Any:
        return self.there.get((kind, name))

    get = find

    async def create(self, obj: Any) -> Any:
        key = (obj["kind"], obj["metadata"]["name"])
        if key in self.there:
            raise ApiError(409, "AlreadyExists", "it exists")
        self.writes.append(("create", obj["kind"]))
        meta = {**obj["metadata"], "uid": OTHER_UID, "generation": 1, "resourceVersion": "12"}
        self.there[key] = {**obj, "metadata": meta}
        return self.there[key]

    async def patch(self, kind: str, namespace: str, name: str, body: Any, *, subresource: str | None = None) -> Any:
        if subresource is None:
            self.writes.append(("annotate", kind))
            kept = {"resourceVersion": "11", "annotations": body["metadata"]["annotations"]}
            return raw(kind, name, {"alertType": "PodCrash", "data": "x"}, **kept)
        self.writes.append((subresource, kind))
        self.status = AlertStatus.model_validate(body["status"])
        return raw(kind, name, {"alertType": "PodCrash", "data": "x"}, body["status"], resourceVersion="11")

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str, resource_version: str) -> None:
        self.writes.append(("delete", kind))


def cluster(*objects: dict[str, Any], chain: bool = True) -> Cache:
    cache = Cache()
    if chain:
        spec = {"alertTypes": ["PodCrash"], "stages": [{"name": "s", "agents": [{"name": "triage"}]}]}
        cache.put(raw("Chain", "pods", spec))
    for obj in objects:
        cache.put(obj)
    return cache


def child(of: Alert, status: Any = None, uid: str = OTHER_UID, alert_uid: str = UID) -> dict[str, Any]:
    spec = {"alertRef": {"name": of.metadata.name, "uid": alert_uid}}
    return raw("Investigation", investigation_name(of), spec, status, uid=uid, resourceVersion="12")


async def step(obj: Alert, cache: Cache, api: Api) -> dict[str, Any]:
    await reconcile(obj, reconcile_context(api, cache=cache))
    found = {} if api.status is None else {c.type: (c.status, c.reason) for c in api.status.conditions}
    return {"conditions": found, "writes": api.writes, "status": api.status}


async def test_alert_becomes_one_investigation_however_often_it_is_looked_at() -> None:
    api, obj = Api(), alert()
    seen = await step(obj, cluster(), api)
    assert seen["writes"] == [("create", "Investigation"), ("annotate", "Alert"), ("status", "Alert")]
    assert seen["conditions"] == {
        "Accepted": ("True", "InvestigationCreated"),
        "Finished": ("False", "NotFinished"),
        "Succeeded": ("Unknown", "NotFinished"),
    }
    # Once more from what was known before: a crash in between, or a second controller.
    again = await step(obj, cluster(), api)
    assert [kind for verb, kind in again["writes"] if verb == "create"] == ["Investigation"]


async def test_alert_that_no_chain_takes_waits_and_says_for_what() -> None:
    seen = await step(alert(), cluster(chain=False), Api())
    assert seen["conditions"] == {
        "Accepted": ("False", "NoChain"),
        "Finished": ("False", "NotFinished"),
        "Succeeded": ("Unknown", "NotFinished"),
    }
    message = seen["status"].conditions[0].message
    assert "spec.alertType" in message and "PodCrash" in message and "create one" in message
    assert seen["status"].phase == "Waiting"


@pytest.mark.parametrize(
    ("seconds", "wait", "counted"),
    [(299.0, 1.0, 0), (300.0, None, 1), (301.0, None, 1)],
    ids=["younger", "five-minutes", "older"],
)
async def test_the_default_chain_takes_an_alert_that_is_five_minutes_old_and_counts_it_once(
    monkeypatch: pytest.MonkeyPatch, seconds: float, wait: float | None, counted: int
) -> None:
    monkeypatch.setattr("tarsy.controllers.alert.wall_clock", lambda: NOW + timedelta(seconds=seconds))
    taken: list[int] = []
    cache = cluster(raw("InvestigationDefaults", "default", DEFAULT))
    obj, api = alert(spec={"alertType": "NobodyKnows"}, creationTimestamp=f"{NOW:%Y-%m-%dT%H:%M:%SZ}"), Api()
    context = replace(reconcile_context(api, cache=cache), note_default=lambda: taken.append(1))
    assert await reconcile(obj, context) == wait
    # Once more from what was known before: a crash in between, or a second controller.
    await reconcile(obj, replace(context, cache=cluster(raw("InvestigationDefaults", "default", DEFAULT))))
    assert len(taken) == counted
    made = [one for kind, one in api.there.items() if kind[0] == "Investigation"]
    assert [one["spec"]["chainRef"] for one in made] == [{"name": "pods"}] * counted


async def test_investigation_of_somebody_else_is_not_taken_for_the_alerts_own() -> None:
    obj = alert()
    stranger = child(obj, alert_uid=OTHER_UID)
    for cache in (cluster(), cluster(stranger)):
        seen = await step(obj, cache, Api(stranger))
        assert seen["conditions"]["Accepted"] == ("False", "NameTaken")


OURS = {"investigationRef": {"name": investigation_name(alert()), "uid": OTHER_UID}}


async def test_alert_whose_investigation_was_deleted_is_finished_and_expires() -> None:
    obj = alert(status=OURS, spec={"ttlSecondsAfterFinished": 100})
    seen = await step(obj, cluster(), Api())
    assert seen["conditions"]["Finished"] == ("True", "InvestigationDeleted")
    assert seen["writes"] == [("status", "Alert")]


async def test_investigation_that_the_watch_has_not_told_of_yet_is_not_taken_for_deleted() -> None:
    obj = alert(status=OURS)
    seen = await step(obj, cluster(), Api(child(obj)))
    assert seen["conditions"]["Finished"] == ("False", "NotFinished")


async def test_investigation_of_the_same_name_with_another_uid_is_not_the_one_that_was_made() -> None:
    obj = alert(status=OURS)
    seen = await step(obj, cluster(child(obj, uid=UID)), Api())
    assert seen["conditions"]["Finished"] == ("True", "InvestigationDeleted")


async def test_finished_alert_is_not_told_anew_when_its_investigation_expires() -> None:
    ended = "2026-01-01T00:00:00Z"
    told = [
        {"type": "Accepted", "status": "True", "reason": "InvestigationCreated", "message": "A chain takes the alert."},
        {
            "type": "Finished",
            "status": "True",
            "reason": "InvestigationFinished",
            "message": "The investigation ended.",
        },
    ]
    stamped = [{**item, "lastTransitionTime": ended, "observedGeneration": 1} for item in told]
    status = {**OURS, "conditions": stamped, "observedGeneration": 1, "phase": "Finished"}
    seen = await step(alert(status=status, spec={"ttlSecondsAfterFinished": 31_536_000}), cluster(), Api())
    assert seen["writes"] == []


async def test_end_of_the_investigation_is_the_end_of_the_alert() -> None:
    obj = alert(status=OURS)
    end = {"type": "Finished", "status": "True", "reason": "Succeeded", "lastTransitionTime": "2026-11-22T12:00:00Z"}
    seen = await step(obj, cluster(child(obj, {"conditions": [end]})), Api())
    assert seen["conditions"]["Finished"] == ("True", "InvestigationFinished")
    assert condition(seen["status"].conditions, "Finished") and seen["status"].phase == "Finished"


@pytest.mark.parametrize(
    ("status", "reason"),
    [("True", "Succeeded"), ("False", "Failed"), ("False", "Cancelled"), ("False", "NotAccepted")],
)
async def test_alert_tells_what_became_of_its_investigation(status: str, reason: str) -> None:
    obj = alert(status=OURS)
    time = {"lastTransitionTime": "2026-11-22T12:00:00Z"}
    end = {"type": "Finished", "status": "True", "reason": reason, **time}
    outcome = {"type": "Succeeded", "status": status, "reason": reason, "message": "Why.", **time}
    seen = await step(obj, cluster(child(obj, {"conditions": [end, outcome]})), Api())
    assert seen["conditions"]["Succeeded"] == (status, reason)
    found = condition(seen["status"].conditions, "Succeeded")
    assert found is not None and found.message == "Why."


async def test_alert_tells_that_its_investigation_waits_to_be_accepted() -> None:
    obj = alert(status=OURS)
    waits = {"type": "Accepted", "status": "False", "reason": "PlanInvalid", "message": "no such server"}
    seen = await step(obj, cluster(child(obj, {"conditions": [waits]})), Api())
    assert seen["conditions"]["Succeeded"] == ("Unknown", "NotAccepted")
    found = condition(seen["status"].conditions, "Succeeded")
    assert found is not None and found.message == "no such server"


async def test_outcome_stays_when_the_investigation_expires_and_is_told_when_it_was_deleted_before_its_end() -> None:
    ended = {"type": "Finished", "status": "True", "reason": "InvestigationFinished"}
    for before, after in (
        ({"type": "Succeeded", "status": "True", "reason": "Succeeded"}, ("True", "Succeeded")),
        ({"type": "Succeeded", "status": "Unknown", "reason": "NotFinished"}, ("False", "InvestigationDeleted")),
    ):
        conditions = [before] if after[0] == "False" else [ended, before]
        seen = await step(alert(status={**OURS, "conditions": conditions}), cluster(), Api())
        assert seen["conditions"]["Succeeded"] == after


def test_builders_make_what_the_api_makes() -> None:
    assert investigation().metadata.uid == UID
