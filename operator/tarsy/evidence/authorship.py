"""Classifies fields of Kubernetes objects by their writers: the control plane alone, or workloads as well.

Managers and reporters are names that a writer gives itself. Whoever may write the status of built-in objects, or create
Events, in the name of the kubelet counts as the control plane. Where an object does not tell who wrote it, its kind
decides.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tarsy.evidence.events import event_message, event_reporter, involved_object
from tarsy.evidence.fields import Object, mapping, mappings, one_line, string
from tarsy.evidence.snapshot import ObjectKey, Snapshot

_MANAGERS = frozenset(
    {
        "cloud-controller-manager",
        "k3s",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-proxy",
        "kube-scheduler",
        "kubelet",
        "node-problem-detector",
    }
)
_REPORTERS = frozenset(
    {
        "attachdetach-controller",
        "controllermanager",
        "cronjob-controller",
        "daemonset-controller",
        "default-scheduler",
        "deployment-controller",
        "disruption-controller",
        "endpoint-slice-controller",
        "horizontal-pod-autoscaler",
        "job-controller",
        "kube-proxy",
        "kube-scheduler",
        "kubelet",
        "node-controller",
        "persistentvolume-controller",
        "replicaset-controller",
        "resourcequota-controller",
        "service-controller",
        "statefulset-controller",
        "taint-eviction-controller",
    }
)
_REPEATING = frozenset({"Failed", "FailedPostStartHook", "FailedPreStopHook", "ProbeError", "Unhealthy"})
_OF_RUNTIME = frozenset({"ContainerCannotRun", "CreateContainerError", "RunContainerError", "StartError"})
_BUILT_IN = frozenset(
    {
        "CronJob",
        "DaemonSet",
        "Deployment",
        "EndpointSlice",
        "HorizontalPodAutoscaler",
        "Ingress",
        "Job",
        "Namespace",
        "NetworkPolicy",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "ReplicaSet",
        "ResourceQuota",
        "Service",
        "StatefulSet",
        "StorageClass",
    }
)
_CONTAINERS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_SHORTEST = 4


def is_built_in(kind: str) -> bool:
    """Whether only the control plane writes the status of a kind."""
    return kind in _BUILT_IN


def trusts_status(obj: Object) -> bool:
    """Whether only the control plane wrote the status of an object, but for termination messages."""
    return is_built_in(string(obj, "kind")) and all(
        string(entry, "manager") in _MANAGERS
        for entry in mappings(obj, "metadata", "managedFields")
        if string(entry, "subresource") == "status"
    )


def trusts_event(event: Object) -> bool:
    """Whether the control plane reported an Event: its reason, its object, its times."""
    managers = (string(entry, "manager") for entry in mappings(event, "metadata", "managedFields"))
    return event_reporter(event) in _REPORTERS and all(manager in _MANAGERS for manager in managers)


def trusts_message(event: Object) -> bool:
    """Whether the message of an Event is the control plane's too, and repeats no container, hook or registry."""
    return trusts_event(event) and string(event, "reason") not in _REPEATING


def workload_texts(snapshot: Snapshot) -> Mapping[ObjectKey, frozenset[str]]:
    """Returns texts in status and Events that workloads can write, on one line each, by the object they are about."""
    found: dict[ObjectKey, set[str]] = defaultdict(set)
    for _, event in snapshot.items("Event"):
        about = involved_object(event)
        if about is not None and not trusts_message(event):
            found[about].add(event_message(event))
    for key in snapshot.all_keys():
        if key.kind != "Event":
            found[key].update(map(one_line, _written(snapshot.at(key))))
    return {key: frozenset(text for text in texts if len(text) >= _SHORTEST) for key, texts in found.items()}


def _written(obj: Object) -> Iterator[str]:
    status = mapping(obj, "status")
    if not trusts_status(obj):
        yield from _messages(status)
        return
    for field in _CONTAINERS:
        for container in mappings(status, field):
            for state in ("state", "lastState"):
                ended = mapping(container, state, "terminated")
                if string(ended, "reason") not in _OF_RUNTIME:
                    yield string(ended, "message")


def _messages(value: object) -> Iterator[str]:
    """Yields the messages anywhere in a status."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key == "message" and isinstance(part, str):
                yield part
            else:
                yield from _messages(part)
    elif isinstance(value, list):
        for part in value:
            yield from _messages(part)
