"""Tests how recorded versions become changes, and how they are merged with reconstructed ones."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tarsy.evidence.changes.change import Change, ChangeType, Source
from tarsy.evidence.changes.managers import NEAR
from tarsy.evidence.history.recorded import merged_changes, recorded_changes, recorded_history
from tarsy.evidence.report import find_changes, gaps_text
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.topology import Topology
from tarsy.record.reading.object_history import ObjectIdentity, ObjectVersion, Unwatched, VersionAction
from unit.evidence.objects import NOW, ago, made, snapshot

KEY = ObjectKey("Deployment", "shop", "checkout")


def version(
    *patch: dict[str, Any],
    fields: tuple[str, ...] = (),
    kind: str = "Deployment",
    type_: str = "Rollout",
    action: VersionAction = VersionAction.CHANGED,
    at: datetime = NOW,
    **more: Any,
) -> ObjectVersion:
    found = ObjectIdentity("ns-uid", "shop", kind, "checkout", "uid")
    values = {"not_before": None, "last_at": at, "count": 1, "manager": "helm", **more}
    return ObjectVersion(
        object=found, seq=1, action=action, type=type_, changed_at=at, fields=fields, patch=patch, **values
    )


def replaced(path: str, old: Any, new: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "old": old, "value": new}


def told(one: ObjectVersion) -> str:
    (change,) = recorded_changes([one])
    assert change.source is Source.RECORDED
    return change.summary


def test_a_change_is_told_with_the_values_before_and_after_it() -> None:
    step = replaced("/spec/template/spec/containers/0/image", "app:1", "app:2")
    assert told(version(step, fields=("spec.template.spec.containers[app].image",))) == (
        "changed: spec.template.spec.containers[app].image app:1 -> app:2"
    )


def test_digests_and_values_of_config_maps_are_named_and_not_shown() -> None:
    env = replaced("/spec/template/spec/containers/0/env/0/value", "digest:aa", "digest:bb")
    assert told(version(env, fields=("spec.env[LOG].value",))) == "changed: spec.env[LOG].value"
    shown = replaced("/data/url/masked", "http://a", "http://b")
    assert told(version(shown, fields=("data.url.masked",), kind="ConfigMap", type_="Config")) == (
        "changed: data.url.masked"
    )


def test_a_change_that_only_masking_hides_is_told() -> None:
    assert told(version()) == "changed: a masked value"


def test_what_was_not_seen_as_it_happened_says_since_when() -> None:
    gone = version(action=VersionAction.DELETED, type_="Delete", not_before=NOW - timedelta(minutes=5))
    assert told(gone) == "deleted, at some time after 2026-11-23T11:55:00Z"


def test_restarts_are_told_with_exit_code_and_count() -> None:
    state = {"restarts": 1, "exitCode": 137, "reason": "OOMKilled"}
    first = version({"op": "add", "path": "/containers", "value": {"app": state}}, kind="Pod", type_="Restart")
    assert told(first) == "container app ended with exit code 137 (OOMKilled), 1 restarts in all"
    again = version(replaced("/containers/app/restarts", 1, 4), kind="Pod", type_="Restart", count=4)
    assert told(again) == "container app ended again, 4 restarts in all, 4 times until 2026-11-23T12:00:00Z"


@pytest.mark.parametrize(
    ("one", "number"),
    [
        (version(fields=("metadata.labels.team",), type_="Config"), 0),
        (version(fields=("metadata.annotations[a/b]",), type_="Network", kind="Service"), 1),
        (version(type_="Teleport"), 0),
    ],
)
def test_labels_alone_are_a_change_of_the_network_only_and_unknown_types_are_left_out(
    one: ObjectVersion, number: int
) -> None:
    assert len(list(recorded_changes([one]))) == number


def change(type_: ChangeType, seconds: float, source: Source, key: ObjectKey = KEY) -> Change:
    return Change(NOW + timedelta(seconds=seconds), type_, key, f"{source}", source=source)


@pytest.mark.parametrize(("seconds", "left"), [(-1, 1), (0, 1), (1, 2)])
def test_of_one_change_the_recorded_one_counts(seconds: float, left: int) -> None:
    apart = NEAR.total_seconds() + seconds
    recorded = change(ChangeType.ROLLOUT, 0, Source.RECORDED)
    merged = merged_changes([change(ChangeType.ROLLOUT, apart, Source.RECONSTRUCTED)], [recorded])
    assert len(merged) == left and recorded in merged


def test_changes_of_other_objects_and_other_types_stay() -> None:
    recorded = change(ChangeType.ROLLOUT, 0, Source.RECORDED)
    others = [
        change(ChangeType.RESTART, 0, Source.RECONSTRUCTED),
        change(ChangeType.ROLLOUT, 0, Source.RECONSTRUCTED, ObjectKey("Deployment", "shop", "cart")),
    ]
    assert len(merged_changes(others, [recorded])) == 3


def test_a_report_has_recorded_changes_and_the_windows_without_a_watch() -> None:
    written = {"manager": "kubectl", "time": ago(minutes=30), "fieldsV1": {"f:data": {"f:url": {}}}}
    objects = snapshot(made("ConfigMap", "checkout", metadata={"managedFields": [written]}))
    changed = version(
        replaced("/data/url", "digest:aa", "digest:bb"),
        fields=("data.url",), kind="ConfigMap", type_="Config", at=NOW - timedelta(minutes=30),
    )  # fmt: skip
    window = Unwatched("ConfigMap", NOW - timedelta(minutes=20), NOW - timedelta(minutes=10), "TARSy did not run")
    history = recorded_history("shop", [changed], [window])
    report = find_changes(Topology(objects), "shop", history=history)
    assert [(one.change.source, one.change.summary) for one in report.changes] == [
        (Source.RECORDED, "changed: data.url")
    ]
    assert gaps_text(report.gaps)[-1] == (
        "Not read: ConfigMap (not watched from 2026-11-23T11:40:00Z to 2026-11-23T11:50:00Z: TARSy did not run)."
    )
    assert find_changes(Topology(objects), "shop").changes[0].change.source is Source.RECONSTRUCTED
