"""Tests which alerts are alike."""

import pytest

from tarsy.record.reading.flaws import alert_key

FIRED = '{"labels": {"pod": "a", "severity": "critical"}, "startsAt": "03:00"}'


@pytest.mark.parametrize(
    "alike",
    [
        FIRED,
        '{"startsAt": "04:00", "labels": {"severity": "critical", "pod": "a"}}',
        f"  {FIRED}",
    ],
)
def test_alerts_with_equal_labels_are_alike(alike: str) -> None:
    assert alert_key("uid", "PodCrash", alike) == alert_key("uid", "PodCrash", FIRED)


@pytest.mark.parametrize(
    ("namespace", "alert_type", "data"),
    [
        ("other", "PodCrash", FIRED),
        ("uid", "NodeDown", FIRED),
        ("uid", "PodCrash", FIRED.replace('"a"', '"b"')),
        ("uid", "PodCrash", '{"labels": {}}'),
        ("uid", "PodCrash", '{"labels": "a"}'),
        ("uid", "PodCrash", '{"labels"'),
        ("uid", "PodCrash", "[1]"),
        ("uid", "PodCrash", ""),
    ],
)
def test_others_are_not(namespace: str, alert_type: str, data: str) -> None:
    assert alert_key(namespace, alert_type, data) != alert_key("uid", "PodCrash", FIRED)


def test_texts_without_labels_are_alike_when_they_are_equal() -> None:
    assert alert_key("uid", "PodCrash", "it crashed\n") == alert_key("uid", "PodCrash", "it crashed")
