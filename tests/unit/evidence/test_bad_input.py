"""Tests that no object, however odd, makes evidence fail, hang or tell an order that clocks do not tell."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from tarsy.evidence.changes.ranking import Order
from tarsy.evidence.reading import KINDS
from tarsy.evidence.report import ChangeReport, find_changes, find_faults
from tarsy.evidence.selection import Selection
from tarsy.evidence.snapshot import Gap, ObjectKey, Snapshot, key_of
from tarsy.evidence.target import UnknownTarget, find_target
from tarsy.evidence.topology import Topology
from tarsy.http.views.evidence import MAX_CHANGES, MAX_OBJECTS, MAX_SIGNALS, MAX_TEXT, ChangesView, TriageView
from tarsy.masking import default_masker
from unit.evidence.objects import (
    LISTED,
    NAMESPACE,
    NOW,
    Obj,
    ago,
    condition,
    ended,
    event,
    made,
    node,
    pod,
    service,
    snapshot,
    status_of,
    template,
    topology,
    unscheduled,
    waiting,
    workload,
)
from unit.evidence.rule_cases import CASES


def _shop() -> list[Obj]:
    """Objects of every kind that is read, most of them with a fault."""
    deployment = workload(status={"conditions": [condition("Available", "False")]})
    revision = made("ReplicaSet", "checkout-1", owner=deployment, spec={"template": template()})
    crashing = pod("checkout-1", status_of(lastState=ended(1), restartCount=3), owner=revision)
    pulling = pod("checkout-2", waiting("ErrImagePull", "registry.example/x: not found"))
    written = {"managedFields": [{"manager": "kubectl", "time": ago(hours=1), "fieldsV1": {"f:spec": {"f:x": {}}}}]}
    objects = [
        deployment,
        revision,
        crashing,
        pulling,
        unscheduled("0/1 nodes are available: 1 Insufficient cpu."),
        service(selector={"app": "none"}),
        node("node-1", condition("MemoryPressure", "True"), taints=[{"key": "k", "effect": "NoSchedule"}]),
        event(crashing, "BackOff", "Back-off restarting failed container"),
        event(deployment, "ScalingReplicaSet", "Scaled up replica set checkout-1 to 1"),
    ]
    there = {one["kind"] for one in objects}
    for kind in KINDS:
        if kind.kind not in there:
            place = NAMESPACE if kind.namespaced else ""
            objects.append(made(kind.kind, "one", namespace=place, metadata=written, spec={}, status={}))
    return objects


SHOP = _shop()


def _computed(*objects: Any) -> str:
    """All evidence of a namespace, as it is sent."""
    found = Topology(Snapshot(NOW, objects, LISTED))
    mask = default_masker().mask
    told = [
        ChangesView.of(find_changes(found, NAMESPACE, target), mask).model_dump_json()
        for target in (None, ObjectKey("Deployment", NAMESPACE, "checkout"), ObjectKey("Pod", NAMESPACE, "checkout-1"))
    ]
    told.append(TriageView.of(None, find_faults(found), found.snapshot.gaps, mask).model_dump_json())
    return "\n".join(told)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += _paths(inner, (*path, key))
    return found


FAULTS = [list(case.fault) for case in CASES.values()]
"""Objects with the faults of all rules, so that every rule reads odd fields."""

FIELDS = [(index, path) for index, obj in enumerate(SHOP) for path in _paths(obj)]
FAULT_FIELDS = [
    (which, index, path)
    for which, objects in enumerate(FAULTS)
    for index, obj in enumerate(objects)
    for path in _paths(obj)
]
ODD = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _with(there: list[Obj], index: int, path: tuple[Any, ...], odd: Any) -> list[Any]:
    objects = json.loads(json.dumps(there))
    at = objects[index]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = odd
    return objects


@given(field=some.sampled_from(FIELDS), odd=ODD)
def test_any_json_in_any_field_is_taken(field: tuple[int, tuple[Any, ...]], odd: Any) -> None:
    _computed(*_with(SHOP, *field, odd))


ODD_VALUES = [None, 7, 10**30, "x", [[]], {"a": {}}]


PARTS = 7
each_part = pytest.mark.parametrize("part", range(PARTS))
other_fields = pytest.mark.sweep("other fields")


def _each(fields: int, part: int) -> list[tuple[int, Any]]:
    """Every seventh field by its number with two odd values, so that all values come up for fields of every kind."""
    return [(at, ODD_VALUES[(at + more) % len(ODD_VALUES)]) for at in range(part, fields, PARTS) for more in (0, 4)]


@other_fields
@each_part
def test_each_field_of_each_kind_may_be_of_another_type(part: int) -> None:
    for at, odd in _each(len(FIELDS), part):
        index, path = FIELDS[at]
        found = topology(*_with(SHOP, index, path, odd))
        try:
            find_changes(found, NAMESPACE, ObjectKey("Deployment", NAMESPACE, "checkout"))
        except Exception as error:
            pytest.fail(f"{SHOP[index]['kind']} {'.'.join(map(str, path))} = {odd!r}: {error!r}")


@other_fields
@each_part
def test_each_field_that_a_rule_reads_may_be_of_another_type(part: int) -> None:
    for at, odd in _each(len(FAULT_FIELDS), part):
        which, index, path = FAULT_FIELDS[at]
        found = topology(*_with(FAULTS[which], index, path, odd))
        try:
            find_faults(found)
        except Exception as error:
            rule = list(CASES)[which]
            pytest.fail(f"{rule}: {FAULTS[which][index]['kind']} {'.'.join(map(str, path))} = {odd!r}: {error!r}")


@given(some.lists(some.dictionaries(some.sampled_from(["kind", "metadata", "spec", "status"]), ODD), max_size=5))
@example([{"kind": "Gadget", "metadata": {"name": "x"}}, {"kind": "", "metadata": {}}, {}])
def test_objects_of_unknown_kinds_and_without_names_are_taken(objects: list[Obj]) -> None:
    _computed(*objects)


# Cycles


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_owners_in_a_circle_end(size: int) -> None:
    ring = [workload("ReplicaSet", f"r-{place}") for place in range(size)]
    for place, one in enumerate(ring):
        owner = ring[(place + 1) % size]["metadata"]
        one["metadata"]["ownerReferences"] = [
            {"kind": "ReplicaSet", "name": owner["name"], "uid": owner["uid"], "controller": True}
        ]
    crashing = pod("p", status_of(lastState=ended(1)), owner=ring[0])
    found = topology(*ring, crashing)
    target = ObjectKey("Pod", NAMESPACE, "p")
    assert {key.name for key in found.group(target)} == {"p", *(f"r-{place}" for place in range(size))}
    find_changes(found, NAMESPACE, target)
    find_faults(found, target)


# Clocks


def _skewed(minutes: float) -> Obj:
    """A node whose kubelet's clock is ahead."""
    found = node()
    found["status"]["conditions"][0]["lastHeartbeatTime"] = ago(minutes=1 - minutes)
    found["metadata"]["managedFields"] = [{"manager": "kubelet", "subresource": "status", "time": ago(minutes=1)}]
    return found


def _order(report: ChangeReport, kind: str) -> Order:
    (found,) = {one.order for one in report.changes if one.change.object.kind == kind}
    return found


def _config_map(minutes: float) -> Obj:
    written = {"manager": "kubectl", "time": ago(minutes=minutes), "fieldsV1": {"f:data": {"f:a": {}}}}
    return made("ConfigMap", "settings", metadata={"managedFields": [written]})


@pytest.mark.parametrize(
    ("changed", "order"),
    [
        (25.1, Order.CANDIDATE),
        (25, Order.UNORDERED),
        (21, Order.UNORDERED),
        (19, Order.UNORDERED),
        (15, Order.UNORDERED),
        (14.9, Order.CONSEQUENCE),
    ],
)
def test_a_change_within_the_skew_of_the_failing_pods_node_is_neither_cause_nor_consequence(
    changed: float, order: Order
) -> None:
    report = find_changes(topology(_skewed(5), pod(ready=False), _config_map(changed)), NAMESPACE)
    assert report.onset is not None and report.onset.skew == timedelta(minutes=5)
    assert _order(report, "ConfigMap") is order


@pytest.mark.parametrize(
    ("ended_at", "order"),
    [(25.1, Order.CANDIDATE), (25, Order.UNORDERED), (15, Order.UNORDERED), (14.9, Order.CONSEQUENCE)],
)
def test_a_restart_is_dated_by_its_nodes_clock_whoever_tells_the_onset(ended_at: float, order: Order) -> None:
    crashing = pod("p", status_of(lastState=ended(1, minutes=ended_at), restartCount=1))
    began = NOW - timedelta(minutes=20)
    report = find_changes(topology(_skewed(5), crashing), NAMESPACE, alerted_at=began)
    assert _order(report, "Pod") is order


def test_nodes_may_disagree_in_either_direction() -> None:
    report = find_changes(topology(_skewed(-5), pod(ready=False), _config_map(22)), NAMESPACE)
    assert _order(report, "ConfigMap") is Order.UNORDERED


@pytest.mark.parametrize("window", [timedelta.max, timedelta(days=10**6), timedelta(0), timedelta(days=-1)])
def test_a_window_beyond_the_calendar_or_none_is_taken(window: timedelta) -> None:
    report = find_changes(topology(pod(ready=False), _config_map(30)), NAMESPACE, window=window)
    assert [one.change.object.kind for one in report.changes] == (["ConfigMap"] if window > timedelta(0) else [])
    assert report.since.tzinfo is UTC


@pytest.mark.parametrize("at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_an_onset_at_the_ends_of_the_calendar_is_taken(at: datetime) -> None:
    find_changes(topology(pod(ready=False), _config_map(30)), NAMESPACE, alerted_at=at)


# Texts


def _hostile(text: str) -> str:
    crashing = pod("checkout-1", status_of(lastState=ended(1, text, message=text), restartCount=2))
    crashing["status"]["containerStatuses"][0]["name"] = text
    written = {"manager": text, "time": ago(minutes=30), "fieldsV1": {"f:data": {f"f:{text}": {}}}}
    settings = made("ConfigMap", text, metadata={"managedFields": [written]})
    pulling = pod("checkout-2", waiting("ErrImagePull", f"{text}: not found"))
    return _computed(crashing, settings, pulling, event(crashing, "Evicted", text), workload())


@pytest.mark.parametrize("odd", ["\x1b[31mred", "a\x00b", "line\nline", "\u009b31m", "\ud800", "tab\ttab"])
def test_control_characters_and_lone_surrogates_are_in_no_answer(odd: str) -> None:
    told = json.loads("[" + _hostile(odd).replace("\n", ",") + "]")
    text = json.dumps(told, ensure_ascii=False)
    assert [c for c in text if ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F or 0xD800 <= ord(c) <= 0xDFFF] == []


def test_a_secret_in_a_message_is_masked() -> None:
    secret = "could not connect to postgres://app:hunter2hunter2@db/shop"
    evicted = pod("checkout-1", waiting("ErrImagePull", f"{secret}: not found"))
    told = _computed(evicted, event(evicted, "Evicted", secret), workload())
    assert "could not connect" in told and "hunter2" not in told and "MASKED" in told


@pytest.mark.parametrize("size", [MAX_TEXT - 20, MAX_TEXT, MAX_TEXT * 10, 100_000])
def test_a_long_text_is_cut(size: int) -> None:
    told = json.loads("[" + _hostile("x" * size).replace("\n", ",") + "]")

    def longest(value: Any) -> int:
        if isinstance(value, dict):
            value = list(value.values())
        return max(map(longest, value), default=0) if isinstance(value, list) else len(str(value))

    assert longest(told) <= MAX_TEXT


def _view(changes: int) -> ChangesView:
    written = [{"manager": f"m-{n}", "time": ago(seconds=60 + n), "fieldsV1": {"f:data": {}}} for n in range(changes)]
    settings = made("ConfigMap", "settings", metadata={"managedFields": written})
    return ChangesView.of(find_changes(topology(settings), NAMESPACE), str)


@pytest.mark.parametrize(
    ("changes", "shown", "left_out"),
    [(MAX_CHANGES - 1, MAX_CHANGES - 1, 0), (MAX_CHANGES, MAX_CHANGES, 0), (MAX_CHANGES + 1, MAX_CHANGES, 1)],
)
def test_an_answer_has_at_most_so_many_changes_and_counts_the_rest(changes: int, shown: int, left_out: int) -> None:
    view = _view(changes)
    assert (len(view.changes), view.left_out) == (shown, left_out)


@pytest.mark.parametrize(
    ("services", "shown", "left_out"),
    [(MAX_SIGNALS - 1, MAX_SIGNALS - 1, 0), (MAX_SIGNALS, MAX_SIGNALS, 0), (MAX_SIGNALS + 1, MAX_SIGNALS, 1)],
)
def test_an_answer_has_at_most_so_many_signals_and_counts_the_rest(services: int, shown: int, left_out: int) -> None:
    objects = [service(f"s-{n}", selector={"app": "none"}) for n in range(services)]
    found = topology(*objects)
    view = TriageView.of(None, find_faults(found), [], str)
    assert (len(view.signals), view.left_out) == (shown, left_out)
    assert all(len(one.objects) <= MAX_OBJECTS for one in view.signals)


# Targets


@given(some.text(max_size=400))
@example("/")
@example("deploy/\x1b[31m")
@example("pod/" + "x" * 400)
def test_any_text_as_a_target_is_an_object_or_a_sentence(text: str) -> None:
    try:
        assert find_target(Snapshot(NOW, SHOP, LISTED), NAMESPACE, text) in {key_of(one) for one in SHOP}
    except UnknownTarget as error:
        assert 0 < len(str(error)) < 1_000


def test_a_target_of_a_kind_that_is_not_served_says_so() -> None:
    gap = Gap("HorizontalPodAutoscaler", NAMESPACE, "not served by this cluster")
    with pytest.raises(UnknownTarget, match=r"could not be read in full: not served by this cluster"):
        find_target(Snapshot(NOW, (), frozenset(), [gap]), NAMESPACE, "hpa/checkout")


# Size


def _crashing(number: int, **more: Any) -> Obj:
    return pod(f"c-{number}", status_of(lastState=ended(1, minutes=200), restartCount=2), **more)


def _settings(number: int) -> Obj:
    written = {"manager": "k", "time": ago(minutes=30), "fieldsV1": {"f:data": {"f:a": {}}}}
    return made("ConfigMap", f"s-{number}", metadata={"managedFields": [written]})


def _of_one_deployment(count: int) -> list[Obj]:
    owner = workload()
    revision = made("ReplicaSet", "checkout-1", owner=owner, spec={"template": template()})
    crashing = [_crashing(number, owner=revision) for number in range(count)]
    told = [event(one, "BackOff", "Back-off", name=f"e-{place}") for place, one in enumerate(crashing)]
    return [owner, revision, node(), *crashing, *told]


def _in_a_row(count: int) -> list[Obj]:
    """Owners that own each other in a long row, and a pod of the last for each."""
    row = [workload("ReplicaSet", f"r-{number}") for number in range(count)]
    for one, owner in pairwise(reversed(row)):
        one["metadata"]["ownerReferences"] = [{**owner["metadata"], "kind": "ReplicaSet", "controller": True}]
    return [*row, *(_crashing(number, owner=row[-1]) for number in range(count))]


def _deployed(count: int) -> list[Obj]:
    marks = {"labels": {"app": "checkout", "app.kubernetes.io/instance": "a-1"}}
    return [
        *(made("Application", f"a-{number}", status={}) for number in range(count)),
        *(_crashing(number, metadata=marks) for number in range(count)),
    ]


def _rolled_out(count: int) -> list[Obj]:
    owner = workload()
    note = "deployment.kubernetes.io/revision"
    revisions = (
        workload("ReplicaSet", f"r-{n}", owner=owner, metadata={"annotations": {note: str(n)}}) for n in range(count)
    )
    return [owner, *revisions]


SHAPES: dict[str, Callable[[int], list[Obj]]] = {
    "pods of one Deployment": _of_one_deployment,
    "restarts and changes": lambda n: [*map(_crashing, range(n)), *map(_settings, range(n))],
    "a row of owners": _in_a_row,
    "GitOps": _deployed,
    "revisions": _rolled_out,
    "nodes and unscheduled pods": lambda n: [
        *(node(f"n-{number}") for number in range(n)),
        *(unscheduled("0/1 nodes are available: 1 Insufficient cpu.", f"c-{number}") for number in range(n)),
    ],
}


def _steps(work: Callable[[], Any]) -> int:
    """Returns the lines of Python that are run, which unlike seconds are the same on every machine."""
    count = 0

    def trace(frame: Any, kind: str, _: Any) -> Any:
        nonlocal count
        count += kind == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.sweep("another number of objects")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_with_the_number_of_objects_and_not_with_its_square(shape: str) -> None:
    def steps(count: int) -> int:
        objects = SHAPES[shape](count)
        first = ObjectKey(
            objects[0]["kind"], objects[0]["metadata"].get("namespace", ""), objects[0]["metadata"]["name"]
        )

        def work() -> None:
            found = topology(*objects)
            find_changes(found, NAMESPACE)
            find_changes(found, NAMESPACE, first)

        return _steps(work)

    assert steps(120) < 2.5 * steps(60)


def _policies(pods: int, policies: int, most: int) -> Selection:
    objects = [pod(f"c-{number}") for number in range(pods)]
    objects += [made("NetworkPolicy", f"p-{n}", spec={"podSelector": {"matchLabels": {}}}) for n in range(policies)]
    selection = Selection(snapshot(*objects), most)
    for _ in range(policies):
        selection.chosen({"matchLabels": {}}, NAMESPACE)
    return selection


@pytest.mark.parametrize(("most", "cut"), [(99, True), (100, False), (101, False)])
def test_selectors_times_pods_have_a_limit_that_is_told(most: int, cut: bool) -> None:
    selection = _policies(10, 10, most)
    assert selection.cut is cut
    reason = f"only the first {most:,} pods that selectors may select were compared"
    assert [gap.reason for gap in selection.gaps] == ([reason] if cut else [])


def test_a_selector_that_was_not_answered_selects_nothing_for_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [service(), service("other", selector={"app": "none"}), *(pod(f"c-{number}") for number in range(20))]
    assert [one.rule for one in find_faults(topology(*objects))] == ["service-selects-nothing"]
    monkeypatch.setattr(Selection.__init__, "__defaults__", (10,))
    found = topology(*objects)
    assert find_faults(found) == []
    assert [gap.kind for gap in found.gaps] == ["selected pods"]
