"""Reads pods and pod templates: containers, references, states."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tarsy.evidence.fields import Object, labels, mapping, mappings, moment, string
from tarsy.evidence.snapshot import ObjectKey

TEMPLATE_PATHS = {
    "Pod": (),
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Path of the pod template by kind; a Pod is its own."""


@dataclass(frozen=True, slots=True)
class PodReference:
    """A reference of a pod to another object of its namespace.

    Attributes:
        kind: ConfigMap, Secret, PersistentVolumeClaim or ServiceAccount.
        name: of the object.
        key: the key of a ConfigMap or Secret that is used; empty: all.
        optional: the pod starts without it.
        how: how the pod uses it, in words: `mounts`, `reads in the environment`.
    """

    kind: str
    name: str
    key: str
    optional: bool
    how: str


def template_of(key: ObjectKey, obj: Object) -> Object | None:
    """Returns the pod template of an object; None for kinds without one."""
    path = TEMPLATE_PATHS.get(key.kind)
    return None if path is None else mapping(obj, *path)


def template_labels(template: Object) -> dict[str, str]:
    """Returns the labels of the pods of a template."""
    return dict(labels(template, "metadata", "labels"))


def containers(template: Object, *, init: bool = True) -> Sequence[Object]:
    """Returns the containers of a template; with `init`, init containers first."""
    first = mappings(template, "spec", "initContainers") if init else []
    return [*first, *mappings(template, "spec", "containers")]


def port_numbers(template: Object) -> tuple[set[int], dict[str, int]]:
    """Returns the declared container ports of a template: all numbers, and numbers by name."""
    numbers: set[int] = set()
    names: dict[str, int] = {}
    sidecars = [one for one in mappings(template, "spec", "initContainers") if one.get("restartPolicy") == "Always"]
    for container in [*sidecars, *containers(template, init=False)]:
        for port in mappings(container, "ports"):
            number = port.get("containerPort")
            if isinstance(number, int):
                numbers.add(number)
                if name := string(port, "name"):
                    names[name] = number
    return numbers, names


def references(template: Object) -> Iterable[PodReference]:
    """Yields the objects that a pod template refers to."""
    spec = mapping(template, "spec")
    if account := string(spec, "serviceAccountName"):
        yield PodReference("ServiceAccount", account, "", account == "default", "runs as")
    for secret in mappings(spec, "imagePullSecrets"):
        if name := string(secret, "name"):
            yield PodReference("Secret", name, "", True, "pulls images with")
    for volume in mappings(spec, "volumes"):
        yield from _of_volume(volume)
    for container in containers(template):
        yield from _of_environment(container)


def _of_volume(volume: Object) -> Iterable[PodReference]:
    claim = string(volume, "persistentVolumeClaim", "claimName")
    if claim:
        yield PodReference("PersistentVolumeClaim", claim, "", False, "mounts")
    sources = [volume, *mappings(volume, "projected", "sources")]
    for source in sources:
        for field, kind, name_field in (
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName" if source is volume else "name"),
        ):
            found = mapping(source, field)
            if name := string(found, name_field):
                optional = found.get("optional") is True
                items = [string(item, "key") for item in mappings(found, "items")]
                for key in items or [""]:
                    yield PodReference(kind, name, key, optional, "mounts")


def _of_environment(container: Object) -> Iterable[PodReference]:
    how = "reads in its environment"
    for source in mappings(container, "envFrom"):
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            found = mapping(source, field)
            if name := string(found, "name"):
                yield PodReference(kind, name, "", found.get("optional") is True, how)
    for variable in mappings(container, "env"):
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            found = mapping(variable, "valueFrom", field)
            if name := string(found, "name"):
                yield PodReference(kind, name, string(found, "key"), found.get("optional") is True, how)


@dataclass(frozen=True, slots=True)
class ContainerState:
    """The state of a container of a pod, as the kubelet reports it.

    Attributes:
        name: of the container.
        init: whether it is an init container.
        ready: whether it is ready.
        restarts: number of restarts.
        waiting: reason it waits for; empty: it does not wait.
        message: message of the waiting state.
        ended: state of its last end (`reason`, `exitCode`, `message`, `finishedAt`); empty: it never ended.
        running_since: start of the current run; None: it does not run.
    """

    name: str
    init: bool
    ready: bool
    restarts: int
    waiting: str
    message: str
    ended: Object
    running_since: datetime | None


def container_states(pod: Object) -> Sequence[ContainerState]:
    """Returns the states of the containers of a pod, init containers first."""
    found = []
    for field, init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for status in mappings(pod, "status", field):
            restarts = status.get("restartCount")
            found.append(
                ContainerState(
                    name=string(status, "name"),
                    init=init,
                    ready=status.get("ready") is True,
                    restarts=restarts if isinstance(restarts, int) else 0,
                    waiting=string(status, "state", "waiting", "reason"),
                    message=string(status, "state", "waiting", "message"),
                    ended=mapping(status, "state", "terminated") or mapping(status, "lastState", "terminated"),
                    running_since=moment(status, "state", "running", "startedAt"),
                )
            )
    return found


def condition(obj: Object, kind: str) -> Object:
    """Returns a condition of an object's status by type; an empty mapping if there is none."""
    return next((one for one in mappings(obj, "status", "conditions") if one.get("type") == kind), {})


def is_ready(pod: Object) -> bool:
    """Returns whether a pod has the condition Ready."""
    return condition(pod, "Ready").get("status") == "True"


def is_over(pod: Object) -> bool:
    """Returns whether a pod ended, or is being deleted."""
    ended = string(pod, "status", "phase") in ("Succeeded", "Failed")
    return ended or bool(string(pod, "metadata", "deletionTimestamp"))
