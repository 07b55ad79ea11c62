"""Tests what earlier investigations of the subject of an alert are found by."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.evidence.alert_words import MOST_ENTITIES, MOST_WORDS, alert_words

ALERTMANAGER = {
    "status": "firing",
    "alerts": [
        {
            "labels": {"alertname": "KubePodCrashLooping", "namespace": "shop", "pod": "checkout-7d9f8c6b5-x2x4z"},
            "annotations": {"description": "Pod shop/checkout-7d9f8c6b5-x2x4z restarts since 2026-11-20T12:00:00Z"},
        }
    ],
}


def test_the_workload_of_a_pod_is_what_the_alert_is_about() -> None:
    found = alert_words(json.dumps(ALERTMANAGER))
    assert (found.workload, found.entities) == ("checkout", ("checkout",))
    assert "restarts" in found.words and "crashlooping" not in found.words and "kubepodcrashlooping" in found.words
    assert not {"labels", "description", "firing"} & set(found.words), "neither keys nor the vocabulary of senders"
    assert not any(sum(map(str.isdigit, word)) > 2 for word in found.words)


@pytest.mark.parametrize(
    ("name", "workload"),
    [("pod=checkout-7d9f8c6b5-x2x4z", "checkout"), ("deployment=checkout", "checkout"), ("statefulset: db", "db")],
)
def test_names_of_pods_and_of_their_workloads_are_one_workload(name: str, workload: str) -> None:
    assert alert_words(f"{name} is down").workload == workload


def test_an_alert_without_names_has_words_only() -> None:
    found = alert_words("Payments are slow after the deploy")
    assert (found.workload, found.entities) == (None, ())
    assert found.words == ("payments", "slow", "after", "deploy")


@pytest.mark.parametrize("number", [MOST_WORDS - 1, MOST_WORDS, MOST_WORDS + 1])
def test_words_are_limited(number: int) -> None:
    text = " ".join("word" + chr(97 + n // 26) + chr(97 + n % 26) for n in range(number))
    assert len(alert_words(text).words) == min(number, MOST_WORDS)


@pytest.mark.parametrize("number", [MOST_ENTITIES - 1, MOST_ENTITIES, MOST_ENTITIES + 1])
def test_names_are_limited(number: int) -> None:
    alerts = [{"labels": {"deployment": f"app-{chr(97 + n)}"}} for n in range(number)]
    assert len(alert_words(json.dumps(alerts)).entities) == min(number, MOST_ENTITIES)


@given(st.text() | st.recursive(st.text() | st.none() | st.floats(), lambda p: st.lists(p)).map(json.dumps))
def test_no_text_is_refused(text: str) -> None:
    alert_words(text)
