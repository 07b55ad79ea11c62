"""The corpus of incidents: its form, and floors of ranking and rules on it."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import cache

import pytest

from for_each import for_each
from incidents.measure import totals
from tarsy.evidence.fields import Object, mapping, mappings, string
from tarsy.evidence.snapshot import ObjectKey, key_of
from tarsy_dev.incidents.corpus import (
    FOLDER,
    KINDS_OF_INCIDENTS,
    READ_AT,
    Incident,
    load_incident,
    load_incidents,
    time_ago,
)
from tarsy_dev.incidents.rules import Measured, measure

NAMES = sorted(path.stem for path in (FOLDER / "cases").glob("*.yaml"))


@pytest.fixture(scope="module")
def measured() -> Sequence[Measured]:
    """Every incident with what is found."""
    return [measure(incident) for incident in load_incidents()]


@cache
def _incident(name: str) -> Incident:
    return load_incident(FOLDER / "cases" / f"{name}.yaml")


def test_there_are_forty_incidents_in_two_halves() -> None:
    found = Counter((one.kind, one.half) for one in load_incidents())
    assert found == {(kind, half): count for kind, count in KINDS_OF_INCIDENTS.items() for half in "AB"}


@for_each("name", NAMES)
def test_an_incident_loads_and_refers_to_objects_that_it_has(name: str) -> None:
    incident = _incident(name)
    snapshot = incident.snapshot()
    assert incident.name == name
    assert snapshot.at(incident.target), f"{incident.target} is not among the objects"
    if incident.change is not None:
        assert snapshot.at(incident.change), f"{incident.change} is not among the objects"
    assert bool(incident.faults) == (incident.kind != "no-fault")
    assert incident.faults or not incident.rules
    uids = Counter(string(one, "metadata", "uid") for one in snapshot.objects)
    assert set(uids.values()) == {1}


@for_each("name", NAMES)
def test_owners_and_subjects_of_events_have_the_uids_that_objects_say(name: str) -> None:
    snapshot = _incident(name).snapshot()
    for one in snapshot.objects:
        for owner in mappings(one, "metadata", "ownerReferences"):
            found = snapshot.find_uid(string(owner, "uid"))
            assert found is not None, f"the owner of {key_of(one)} is not among the objects"
            assert (found.kind, found.name) == (string(owner, "kind"), string(owner, "name"))
        subject = mapping(one, "involvedObject")
        found = snapshot.find_uid(string(subject, "uid"))
        assert found is None or (found.kind, found.name) == (string(subject, "kind"), string(subject, "name"))


@for_each("name", NAMES)
def test_a_replica_set_counts_the_pods_that_it_owns(name: str) -> None:
    snapshot = _incident(name).snapshot()
    for key, owner in snapshot.items("ReplicaSet"):
        pods = [one for _, one in snapshot.items("Pod") if _owned(one, key) and one["status"]["phase"] != "Failed"]
        ready = [
            one for one in pods if any(_is_ready(condition) for condition in mappings(one, "status", "conditions"))
        ]
        assert len(pods) == owner["status"]["replicas"]
        assert len(ready) == owner["status"].get("readyReplicas", 0)


@for_each("name", NAMES)
def test_nothing_is_written_before_its_object_is_created(name: str) -> None:
    for one in _incident(name).snapshot().objects:
        created = string(one, "metadata", "creationTimestamp")
        conditions = mappings(one, "status", "conditions")
        times = [string(entry, "time") for entry in mappings(one, "metadata", "managedFields")]
        times += [string(condition, "lastTransitionTime") for condition in conditions]
        assert all(created <= time <= time_ago("0s") for time in times), key_of(one)


@for_each("name", NAMES)
def test_no_event_is_older_than_an_api_server_keeps_it(name: str) -> None:
    hour_ago = time_ago("1h")
    for _, event in _incident(name).snapshot().items("Event"):
        last = (
            string(event, "lastTimestamp") or string(event, "series", "lastObservedTime") or string(event, "eventTime")
        )
        assert hour_ago <= last <= time_ago("0s")


@pytest.mark.parametrize(
    ("age", "span"),
    [
        ("0s", timedelta()),
        ("45s", timedelta(seconds=-45)),
        ("1h20m", timedelta(minutes=-80)),
        ("3d", timedelta(days=-3)),
        ("-2h", timedelta(hours=2)),
    ],
)
def test_an_age_is_a_time_before_the_reading(age: str, span: timedelta) -> None:
    assert time_ago(age) == (READ_AT + span).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("age", ["", "3", "3w", "h", "3 d", "--3d"])
def test_what_is_no_age_is_refused(age: str) -> None:
    with pytest.raises(ValueError, match="is no age"):
        time_ago(age)


def test_what_the_product_does_not_read_is_left_out() -> None:
    incident = _incident("env-key-renamed")
    config = incident.snapshot().get("ConfigMap", incident.namespace, "profile-config")
    assert config is not None
    assert "data" not in config


def test_no_rule_is_certain_where_there_is_no_fault(measured: Sequence[Measured]) -> None:
    found = {one.incident.name: one.certain for one in measured if one.incident.kind == "no-fault" and one.certain}
    assert not found


def test_recall_at_1_of_half_b(measured: Sequence[Measured]) -> None:
    assert totals(measured, half="B").recall_at_1 >= 0.75


def test_recall_at_3_of_half_b(measured: Sequence[Measured]) -> None:
    assert totals(measured, half="B").recall_at_3 >= 0.9


def _owned(pod: Object, owner: ObjectKey) -> bool:
    return any(string(one, "name") == owner.name for one in mappings(pod, "metadata", "ownerReferences"))


def _is_ready(condition: Object) -> bool:
    return string(condition, "type") == "Ready" and string(condition, "status") == "True"
