"""Tests which changes the objects tell of, and how they are ranked."""

from datetime import datetime, timedelta
from typing import Any

from tarsy.evidence.changes.change import Change, ChangeType
from tarsy.evidence.changes.ranking import WINDOW_BEFORE, Order, RankedChange, rank
from tarsy.evidence.changes.reconstruct import reconstruct
from tarsy.evidence.changes.template_diff import template_diff
from tarsy.evidence.fields import parse_time
from tarsy.evidence.onset import LEAST_SKEW, Onset, clock_skew, find_onset
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.topology import Topology
from unit.evidence.objects import (
    NOW,
    Obj,
    ago,
    condition,
    container,
    ended,
    event,
    made,
    node,
    pod,
    snapshot,
    template,
    unscheduled,
    waiting,
    workload,
)

OLD, NEW = template(container()), template(container(image="registry.example/checkout:1.5"))
READS = template(container(envFrom=[{"configMapRef": {"name": "checkout-config"}}]))


def written(manager: str, fields: dict[str, Any], **since: float) -> Obj:
    return {"managedFields": [{"manager": manager, "time": ago(**since), "fieldsV1": fields}]}


def revision(number: int, of: Obj, owner: Obj, **since: float) -> Obj:
    notes = {"deployment.kubernetes.io/revision": str(number)}
    metadata = {"creationTimestamp": ago(**since), "annotations": notes}
    return workload("ReplicaSet", f"checkout-{number}", of=of, owner=owner, metadata=metadata)


def changes(*objects: Obj, hours: float = 24) -> list[Change]:
    return list(reconstruct(snapshot(*objects), NOW - timedelta(hours=hours)))


def told(*objects: Obj) -> list[tuple[str, str, str]]:
    return [(str(one.object), one.type.value, one.summary) for one in changes(*objects)]


def test_rollout_is_told_by_its_replica_sets_with_what_differs() -> None:
    deployment = workload(of=NEW)
    found = changes(deployment, revision(1, OLD, deployment, hours=5), revision(2, NEW, deployment, minutes=30))
    assert [(one.type, one.at) for one in found] == [(ChangeType.ROLLOUT, NOW - timedelta(minutes=30))]
    assert (
        "rolled out revision 2: app.image registry.example/checkout:1.4 -> registry.example/checkout:1.5"
        in found[0].summary
    )


def test_rollback_is_dated_by_the_deployment() -> None:
    progressing = {**condition("Progressing", "True"), "lastUpdateTime": ago(minutes=10)}
    deployment = workload(of=OLD, status={"conditions": [progressing]})
    first, second = revision(3, OLD, deployment, hours=20), revision(2, NEW, deployment, hours=5)
    found = changes(deployment, first, second)
    assert [(one.at, one.summary.partition(":")[0]) for one in found] == [
        (NOW - timedelta(minutes=10), "rolled back to an earlier revision")
    ]


def test_controller_revisions_tell_rollouts_of_stateful_sets() -> None:
    owner = workload("StatefulSet", "db")
    old = made("ControllerRevision", "db-1", owner=owner, revision=1, data={"spec": {"template": OLD}})
    new_metadata = {"creationTimestamp": ago(hours=1)}
    new = made(
        "ControllerRevision", "db-2", owner=owner, revision=2, data={"spec": {"template": NEW}}, metadata=new_metadata
    )
    assert [(str(one.object), one.type) for one in changes(owner, old, new)] == [
        ("StatefulSet shop/db", ChangeType.ROLLOUT)
    ]


def test_values_of_environment_and_annotations_are_not_shown() -> None:
    old = template(container(env=[{"name": "TOKEN", "value": "old-secret"}]))
    new = template(container(env=[{"name": "TOKEN", "value": "new-secret"}, {"name": "LEVEL", "value": "debug"}]))
    old["metadata"]["annotations"], new["metadata"]["annotations"] = {"a": "old-secret"}, {"a": "new-secret"}
    found = template_diff(old, new)
    assert found == ("app.env LEVEL added", "app.env TOKEN changed", "annotation a changed")


def test_the_last_write_of_a_config_map_is_a_change_with_its_manager() -> None:
    metadata = written("kubectl-edit", {"f:data": {"f:LOG_LEVEL": {}}}, minutes=15)
    (found,) = changes(made("ConfigMap", "checkout-config", metadata=metadata))
    assert (found.type, found.manager, found.summary) == (ChangeType.CONFIG, "kubectl-edit", "changed: data.LOG_LEVEL")


def test_scaling_by_hand_is_a_scale_and_a_controllers_write_is_none() -> None:
    by_hand = workload(metadata=written("kubectl", {"f:spec": {"f:replicas": {}}}, minutes=5))
    assert [one.type for one in changes(by_hand)] == [ChangeType.SCALE]
    status = {
        "manager": "x",
        "time": ago(minutes=5),
        "subresource": "status",
        "fieldsV1": {"f:status": {"f:replicas": {}}},
    }
    assert changes(workload(metadata={"managedFields": [status]})) == []


def test_an_apply_that_is_a_rollout_is_told_once() -> None:
    metadata = written(
        "kubectl-client-side-apply", {"f:spec": {"f:template": {"f:spec": {}}, "f:replicas": {}}}, minutes=30
    )
    deployment = workload(of=NEW, metadata=metadata)
    found = changes(deployment, revision(1, OLD, deployment, hours=5), revision(2, NEW, deployment, minutes=30))
    assert [(one.type, one.manager) for one in found] == [(ChangeType.ROLLOUT, "kubectl-client-side-apply")]


def test_nodes_gitops_deletions_and_restarts_are_changes() -> None:
    sick = node("node-1", condition("DiskPressure", "True", message="kubelet has disk pressure", minutes=8))
    application = made(
        "Application", "shop", status={"history": [{"deployedAt": ago(minutes=9), "revision": "0123456789abcdef"}]}
    )
    leaving = made("Service", "cart", metadata={"deletionTimestamp": ago(minutes=7)})
    crashed = pod("checkout-1", waiting("CrashLoopBackOff", restartCount=2, lastState=ended(1, minutes=6)))
    rescaled = event(
        made("HorizontalPodAutoscaler", "checkout"), "SuccessfulRescale", "New size: 8; reason: cpu", minutes=5
    )
    assert [one.type for one in changes(sick, application, leaving, crashed, rescaled, hours=0.2)] == [
        ChangeType.GITOPS, ChangeType.NODE, ChangeType.DELETE, ChangeType.RESTART, ChangeType.SCALE,
    ]  # fmt: skip


def test_a_taint_of_a_person_is_dated_by_its_write_and_one_of_a_controller_by_itself() -> None:
    wrote = written("kubectl-taint", {"f:spec": {"f:taints": {}}}, minutes=50)
    by_person = node("node-1", taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    by_person["metadata"].update(wrote)
    unreachable = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": ago(minutes=5)}
    by_controller = node("node-2", taints=[unreachable])
    by_controller["metadata"].update(written("kube-controller-manager", {"f:spec": {"f:taints": {}}}, minutes=5))
    found = [one for one in changes(by_person, by_controller) if "taint" in one.summary]
    assert [(one.object.name, one.at, one.manager) for one in found] == [
        ("node-1", NOW - timedelta(minutes=50), "kubectl-taint"),
        ("node-2", NOW - timedelta(minutes=5), ""),
    ]


def test_times_that_cannot_be_read_are_no_changes() -> None:
    odd = {"managedFields": [{"manager": "x", "time": "yesterday", "fieldsV1": {"f:data": {}}}, "odd", {"fieldsV1": 3}]}
    assert changes(made("ConfigMap", "odd", metadata=odd)) == []


# Ranking


ONSET = Onset(NOW - timedelta(minutes=10), "the alert")


def ranked(*objects: Obj, onset: Onset = ONSET) -> list[RankedChange]:
    read = snapshot(*objects)
    scope = Topology(read).scope(ObjectKey("Deployment", "shop", "checkout"))
    return list(rank(reconstruct(read, NOW - timedelta(hours=24)), onset, scope, "shop"))


def config(name: str, **since: float) -> Obj:
    return made("ConfigMap", name, metadata=written("kubectl-edit", {"f:data": {"f:LEVEL": {}}}, **since))


def test_a_mounted_config_map_comes_before_one_that_is_not() -> None:
    found = ranked(workload(of=READS), config("checkout-config", minutes=30), config("other", minutes=11))
    assert [str(one.change.object) for one in found] == ["ConfigMap shop/checkout-config", "ConfigMap shop/other"]
    assert found[0].score > found[1].score


def test_of_two_alike_the_later_comes_first() -> None:
    of = template(container(envFrom=[{"configMapRef": {"name": "a"}}, {"configMapRef": {"name": "b"}}]))
    found = ranked(workload(of=of), config("a", minutes=90), config("b", minutes=12))
    assert [one.change.object.name for one in found] == ["b", "a"]


def test_a_change_after_the_onset_is_a_consequence_and_near_it_unordered() -> None:
    found = ranked(workload(of=READS), config("checkout-config", minutes=5))
    assert [(one.order, one.score) for one in found] == [(Order.CONSEQUENCE, 0.0)]
    onset = Onset(NOW - timedelta(minutes=10), "a pod", timedelta(minutes=5))
    for minutes, order in (
        (15, Order.UNORDERED),
        (5, Order.UNORDERED),
        (15.1, Order.CANDIDATE),
        (4.9, Order.CONSEQUENCE),
    ):
        (one,) = ranked(workload(of=READS), config("checkout-config", minutes=minutes), onset=onset)
        assert one.order is order


def test_the_window_before_the_onset_ends() -> None:
    minutes = 10 + WINDOW_BEFORE.total_seconds() / 60
    for since, count in ((minutes - 1, 1), (minutes, 1), (minutes + 1, 0)):
        assert len(ranked(workload(of=READS), config("checkout-config", minutes=since))) == count


def test_a_change_that_a_restart_followed_counts_more() -> None:
    of = template(container(envFrom=[{"configMapRef": {"name": "a"}}, {"configMapRef": {"name": "b"}}]))
    deployment = workload(of=of)
    crashed = pod(
        "checkout-1",
        waiting("CrashLoopBackOff", restartCount=1, lastState=ended(1, minutes=29)),
        of=of,
        owner=deployment,
    )
    found = ranked(deployment, crashed, config("a", minutes=30), config("b", minutes=28))
    assert [one.change.object.name for one in found[:2]] == ["a", "b"]


def test_changes_of_another_namespace_that_nothing_leads_to_are_left_out() -> None:
    far = made("ConfigMap", "far", namespace="pay", metadata=written("x", {"f:data": {"f:A": {}}}, minutes=20))
    assert ranked(workload(), far) == []


def test_onset_is_the_first_failure_of_the_targets_pods() -> None:
    deployment = workload()
    crashed = pod(
        "checkout-1", waiting("CrashLoopBackOff", restartCount=2, lastState=ended(1, minutes=33)), owner=deployment
    )
    group = Topology(read := snapshot(deployment, crashed)).group(ObjectKey("Deployment", "shop", "checkout"))
    found = find_onset(read, group)
    assert found is not None
    assert found.at == NOW - timedelta(minutes=33)
    assert find_onset(read, group, NOW).at == NOW  # type: ignore[union-attr]
    assert find_onset(snapshot(deployment), group) is None


def test_skew_of_a_nodes_clock_is_seen_in_its_heartbeat() -> None:
    sick: dict[str, Any] = node("node-1", {**condition("Ready", "True"), "lastHeartbeatTime": ago(minutes=6)})
    sick["metadata"]["managedFields"] = [{"subresource": "status", "time": ago(minutes=1), "manager": "kubelet"}]
    crashed = pod("checkout-1", waiting("CrashLoopBackOff", lastState=ended(1, minutes=33)))
    read = snapshot(sick, crashed)
    assert clock_skew(read, "node-1") == timedelta(minutes=5)
    found = find_onset(read, [ObjectKey("Pod", "shop", "checkout-1")])
    assert found is not None
    assert found.skew == timedelta(minutes=5)
    assert clock_skew(read, "node-2") == timedelta(0) < LEAST_SKEW


def test_times_have_fractions_and_wrong_ones_are_none() -> None:
    assert parse_time("2026-11-23T12:00:00.123456Z") == datetime(2026, 11, 23, 12, 0, 0, 123456, tzinfo=NOW.tzinfo)
    assert parse_time("2026-11-23T12:00:00.5Z") == NOW + timedelta(milliseconds=500)
    assert parse_time("2026-13-23T12:00:00Z") is None
    assert parse_time("2026-11-23") is None


def test_onset_of_a_controller_that_cannot_create_pods_is_its_condition() -> None:
    deployment = workload(status={"conditions": [condition("ReplicaFailure", "True", minutes=12)]})
    found = find_onset(snapshot(deployment), [ObjectKey("Deployment", "shop", "checkout")])
    assert found is not None
    assert (found.at, found.told_by) == (
        NOW - timedelta(minutes=12),
        "condition ReplicaFailure of Deployment shop/checkout",
    )


def test_a_pod_without_a_node_is_reached_by_every_node() -> None:
    read = snapshot(node("node-1"), node("node-2"), unscheduled("no node fits"))
    scope = Topology(read).scope(ObjectKey("Pod", "shop", "checkout-1"))
    assert {ObjectKey("Node", "", "node-1"), ObjectKey("Node", "", "node-2")} <= scope.keys()


def test_jobs_of_people_are_changes_and_those_of_a_cron_job_are_not() -> None:
    wrote = written("kubectl-create", {"f:spec": {"f:template": {}}}, minutes=5) | {"creationTimestamp": ago(minutes=5)}
    job = made("Job", "migrate", metadata=wrote)
    owned = made("Job", "backup-1", owner=made("CronJob", "backup"), metadata=wrote)
    assert [str(one.object) for one in changes(job, owned)] == ["Job shop/migrate"]
