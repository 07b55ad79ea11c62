"""Holds the subject of an alert."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.evidence.alerted import AlertSubject, choose_target, read_subject
from tarsy.evidence.snapshot import ObjectKey
from unit.evidence.objects import pod, service, snapshot, workload

ALERTMANAGER = {
    "version": "4",
    "groupLabels": {"alertname": "KubePodCrashLooping", "namespace": "shop"},
    "commonLabels": {"namespace": "shop", "job": "kube-state-metrics", "service": "kube-state-metrics"},
    "alerts": [
        {
            "status": "resolved",
            "labels": {"namespace": "shop", "pod": "gone-1"},
            "startsAt": "2026-11-23T08:00:00Z",
        },
        {
            "status": "firing",
            "labels": {"namespace": "shop", "pod": "checkout-1"},
            "startsAt": "2026-11-23T11:40:00.511Z",
            "endsAt": "0001-01-01T00:00:00Z",
        },
    ],
}


def test_the_labels_of_firing_alerts_are_the_subject() -> None:
    assert read_subject(json.dumps(ALERTMANAGER)) == AlertSubject(
        ("Pod/checkout-1", "Service/kube-state-metrics"),
        ("shop",),
        datetime(2026, 11, 23, 11, 40, 0, 511000, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("text", "names", "namespaces"),
    [
        ('{"labels": {"deployment": "checkout", "namespace": "shop"}}', ("Deployment/checkout",), ("shop",)),
        ('{"statefulset": "db"}', ("StatefulSet/db",), ()),
        ('[{"labels": {"job_name": "nightly"}}]', ("Job/nightly",), ()),
        ("pod=checkout-1 namespace: shop is down", ("Pod/checkout-1",), ("shop",)),
        ('checkout is slow {namespace="shop", deployment="checkout"}', ("Deployment/checkout",), ("shop",)),
        ("everything is down", (), ()),
        ("12", (), ()),
        ("null", (), ()),
        ('{"labels": {"pod": 7, "deployment": null}, "alerts": "x"}', (), ()),
    ],
)
def test_other_shapes_are_read_and_odd_ones_name_nothing(
    text: str, names: tuple[str, ...], namespaces: tuple[str, ...]
) -> None:
    found = read_subject(text)
    assert (found.names, found.namespaces, found.began) == (names, namespaces, None)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("2026-11-23T11:40:00+02:00", datetime(2026, 11, 23, 9, 40, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", None),
        ("2026-13-45T11:40:00Z", None),
        ("9999-12-31T23:59:59-23:59", None),
        ("soon", None),
    ],
)
def test_only_a_time_is_a_time(told: str, expected: datetime | None) -> None:
    assert read_subject(json.dumps({"startsAt": told})).began == expected


OBJECTS = snapshot(workload(), pod(), service("web"))


@pytest.mark.parametrize(
    ("names", "kind", "name"),
    [
        (("Pod/checkout-1",), "Pod", "checkout-1"),
        (("Pod/absent", "Service/web"), "Service", "web"),
        (("Pod/checkout-6f7d9c8b54-k8x2p",), "Deployment", "checkout"),
        (("Pod/checkout-0",), "Deployment", "checkout"),
        (("checkout",), "Deployment", "checkout"),
    ],
)
def test_the_first_object_that_exists_is_the_target_and_a_pod_that_is_gone_stands_for_its_workload(
    names: tuple[str, ...], kind: str, name: str
) -> None:
    assert choose_target(OBJECTS, "shop", AlertSubject(names)).key == ObjectKey(kind, "shop", name)


@pytest.mark.parametrize(
    ("subject", "note"),
    [
        (AlertSubject(), "The alert names no object, so this is about all of namespace shop."),
        (AlertSubject(("Pod/none",)), "Nothing that the alert names was found (Pod/none)"),
        (AlertSubject(("checkout",), ("bank",)), "The alert is about namespace bank; only namespace shop was read."),
    ],
)
def test_an_alert_without_a_known_object_is_about_the_namespace_and_says_so(subject: AlertSubject, note: str) -> None:
    target = choose_target(OBJECTS, "shop", subject)
    assert target.key is None and target.note.startswith(note)


@given(st.text(max_size=400))
def test_no_text_is_too_odd(text: str) -> None:
    read_subject(text)
    read_subject(json.dumps({"labels": {"pod": text, "namespace": text}, "startsAt": text}))
