"""Tests which changes are shed when more come than are recorded."""

from datetime import UTC, datetime

import pytest

from tarsy.controllers.history.buffer import ChangeBuffer, PendingChange
from tarsy.controllers.history.places import Place
from tarsy.evidence.history.kinds import RECORDED_KINDS

NOW = datetime(2026, 11, 23, tzinfo=UTC)
KINDS = {kind.kind: kind for kind in RECORDED_KINDS}
PLACES = {name: Place("uid", "shop", kind, False) for name, kind in KINDS.items()}


def filled(*kinds: str, most: int = 100, most_bytes: int = 10_000) -> tuple[ChangeBuffer, list[str]]:
    shed: list[str] = []

    def note(change: PendingChange) -> None:
        shed.append(change.document.decode())

    buffer = ChangeBuffer(note, most=most, most_bytes=most_bytes)
    for number, kind in enumerate(kinds):
        buffer.put(PLACES[kind], "MODIFIED", f"{kind}-{number}".encode(), NOW)
    return buffer, shed


def documents(changes: list[PendingChange]) -> list[str]:
    return [change.document.decode() for change in changes]


def test_secrets_and_what_controllers_make_are_not_recorded() -> None:
    assert not {"Secret", "Event", "ReplicaSet", "ControllerRevision"} & KINDS.keys()


def test_changes_leave_in_the_order_in_which_they_came() -> None:
    buffer, _ = filled("Pod", "ConfigMap", "Service", "Pod")
    assert documents(buffer.take(3, 1000)) == ["Pod-0", "ConfigMap-1", "Service-2"]
    assert buffer.filled.is_set()
    assert documents(buffer.take(3, 1000)) == ["Pod-3"]
    assert not buffer.filled.is_set() and len(buffer) == 0


@pytest.mark.parametrize(("most", "shed"), [(4, []), (3, []), (2, ["Pod-0"])])
def test_changes_are_shed_above_the_limit_only(most: int, shed: list[str]) -> None:
    _, found = filled("Pod", "Deployment", "ConfigMap", most=most)
    assert found == shed


def test_the_least_valuable_type_is_shed_first_and_the_oldest_of_it() -> None:
    kinds = ("Deployment", "HorizontalPodAutoscaler", "Pod", "Pod", "Application", "ResourceQuota", "Service")
    _, shed = filled(*kinds, "ConfigMap", "ConfigMap", most=2)
    assert shed == [
        "Pod-2",
        "Pod-3",
        "HorizontalPodAutoscaler-1",
        "Application-4",
        "ResourceQuota-5",
        "Service-6",
        "Deployment-0",
    ]


@pytest.mark.parametrize(("most_bytes", "shed"), [(11, []), (10, []), (9, ["Pod-0"])])
def test_bytes_are_limited_too(most_bytes: int, shed: list[str]) -> None:
    _, found = filled("Pod", "Job", most_bytes=most_bytes)
    assert found == shed


def test_a_batch_is_limited_in_bytes_and_has_at_least_one_change() -> None:
    buffer, _ = filled("Pod", "Pod", "Pod")
    assert len(buffer.take(10, 10)) == 2
    assert len(buffer.take(10, 1)) == 1


def test_a_listing_replaces_the_changes_of_its_kind() -> None:
    buffer, shed = filled("Pod", "ConfigMap", "Pod")
    buffer.drop(PLACES["Pod"])
    assert documents(buffer.take(10, 1000)) == ["ConfigMap-1"]
    assert shed == [] and not buffer.filled.is_set()


def test_the_oldest_change_tells_how_far_watches_are() -> None:
    buffer, _ = filled()
    assert buffer.oldest() is None
    later = NOW.replace(hour=1)
    buffer.put(PLACES["ConfigMap"], "ADDED", b"x", later)
    assert buffer.oldest() == later
    buffer.put(PLACES["Pod"], "ADDED", b"x", NOW)
    assert buffer.oldest() == NOW
