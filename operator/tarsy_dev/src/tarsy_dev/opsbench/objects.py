"""Builds objects in the form of the API from the fields of `kubectl describe`.

Only what the rules read is built. An object has a uid that its kind and name make, so that owners are found. Ports that
go by a name are left out, because a description does not say which name a port of a container has.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from tarsy_dev.opsbench.describe import Field

Obj = dict[str, Any]
KINDS = {
    "pods": "Pod", "services": "Service", "deployments": "Deployment", "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet", "daemonsets": "DaemonSet", "jobs": "Job", "cronjobs": "CronJob", "nodes": "Node",
    "configmaps": "ConfigMap", "serviceaccounts": "ServiceAccount", "resourcequotas": "ResourceQuota",
    "limitranges": "LimitRange", "persistentvolumeclaims": "PersistentVolumeClaim",
    "persistentvolumes": "PersistentVolume", "storageclasses": "StorageClass", "ingresses": "Ingress",
    "horizontalpodautoscalers": "HorizontalPodAutoscaler",
}  # fmt: skip
"""Kinds by the name of their resource. A NetworkPolicy is not read: without its rules it would forbid everything."""

CLUSTER = ("Node", "PersistentVolume", "StorageClass")
_WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
_AGE = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_PORT = re.compile(r"(?:(\S+) +)?([\w-]+)/(\w+)")
_PROBE = re.compile(r"(http-get|grpc|tcp-socket) (?:\w+://)?[^:\s]*:(\d+)(/\S*)?")
_HOW = {"http-get": "httpGet", "grpc": "grpc", "tcp-socket": "tcpSocket"}
_COUNT = re.compile(r"(\d+) (\w+)")
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_SOURCE = re.compile(r"(\S+) +(ConfigMap|Secret) +Optional")
_KEY = re.compile(r"<set to the key '([^']+)' (?:of|in) (config map|secret) '([^']+)'> +Optional: (\w+)")
_FROM = {"ConfigMap": "configMapRef", "Secret": "secretRef"}
_KEYS = {"config map": "configMapKeyRef", "secret": "secretKeyRef"}
_STATES = {"State": "state", "Last State": "lastState"}


def named(kind: str, namespace: str, name: str) -> Obj:
    """Returns an object of which nothing but the name is known."""
    place = "" if kind in CLUSTER else namespace
    metadata = {"name": name, "uid": _uid(kind, place, name), **({"namespace": place} if place else {})}
    return {"kind": kind, "metadata": metadata}


def described(kind: str, namespace: str, name: str, text: Field, read_at: datetime) -> Iterator[Obj]:
    """Yields the object that a description is about, and its Events.

    Args:
        kind: of the object.
        namespace: of the object, if its kind has one.
        name: of the object.
        text: its description.
        read_at: when it was made; ages of Events are counted from it.
    """
    obj = named(kind, namespace, name)
    obj["metadata"]["labels"] = text.pairs("Labels")
    owner_kind, slash, owner = text.get("Controlled By").partition("/")
    if slash:
        of = {"kind": owner_kind, "name": owner, "uid": _uid(owner_kind, namespace, owner), "controller": True}
        obj["metadata"]["ownerReferences"] = [of]
    events = list(_events(obj, namespace, text, read_at))
    if kind == "Pod":
        obj |= _pod(text, _why(events))
        if text.get("Status").startswith("Terminating"):
            obj["metadata"]["deletionTimestamp"] = read_at.strftime(_TIME)
    elif kind in _WORKLOADS:
        obj |= _workload(kind, text)
    elif kind == "Service":
        obj |= _service(text)
    elif kind == "Node":
        obj |= _node(text)
    elif kind == "PersistentVolumeClaim":
        spec = {"storageClassName": text.get("StorageClass"), "volumeName": text.get("Volume")}
        obj |= {"spec": spec, "status": {"phase": text.get("Status")}}
    yield obj
    yield from events


def _uid(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{namespace}/{name}"


def _events(about: Obj, namespace: str, text: Field, read_at: datetime) -> Iterator[Obj]:
    involved = {"kind": about["kind"], "name": about["metadata"]["name"], "namespace": namespace}
    for number, row in enumerate(text.rows("Events")):
        if len(row) < 5 or (ago := _age(row[2])) is None:
            continue
        name = f"{about['kind'].lower()}.{involved['name']}.{number}"
        event = named("Event", namespace, name)
        at = (read_at - ago).strftime(_TIME)
        yield event | {"involvedObject": involved, "reason": row[1], "message": row[4], "lastTimestamp": at}


def _age(text: str) -> timedelta | None:
    """Returns the age of the last time of `19s (x15 over 101s)`; None if it is none."""
    found = _AGE.findall(text.partition(" ")[0])
    return timedelta(seconds=sum(int(number) * _SECONDS[unit] for number, unit in found)) if found else None


def _why(events: Sequence[Obj]) -> str:
    """Returns why a container of a pod waits: a description has its reason without its message."""
    told = [str(one["message"]) for one in events if one["reason"] == "Failed"]
    return next((one.removeprefix("Error: ") for one in told if one.startswith("Error: ")), "")


def _pod(text: Field, why: str) -> Obj:
    conditions = [{"type": row[0], "status": row[1]} for row in text.rows("Conditions") if len(row) > 1]
    status: Obj = {"phase": text.get("Status").partition(" ")[0], "conditions": conditions}
    if reason := text.get("Reason"):
        status |= {"reason": reason, "message": text.get("Message")}
    for field, title in (("initContainerStatuses", "Init Containers"), ("containerStatuses", "Containers")):
        status[field] = [_status(one, why) for one in text.find(title).fields]
    node = text.get("Node").partition("/")[0]
    return {"spec": _pod_spec(text) | ({"nodeName": node} if node else {}), "status": status}


def _pod_spec(text: Field) -> Obj:
    return {
        "serviceAccountName": text.get("Service Account"),
        "initContainers": [_container(one) for one in text.find("Init Containers").fields],
        "containers": [_container(one) for one in text.find("Containers").fields],
        "volumes": [_volume(one) for one in text.find("Volumes").fields],
    }


def _status(text: Field, why: str) -> Obj:
    status: Obj = {"name": text.key, "ready": text.get("Ready") == "True"}
    status["restartCount"] = int(text.get("Restart Count")) if text.get("Restart Count").isdecimal() else 0
    for title, field in _STATES.items():
        if name := text.get(title):
            status[field] = {name.lower(): _state(text.find(title))}
    if (waiting := status.get("state", {}).get("waiting")) is not None:
        waiting["message"] = waiting["message"] or why
    return status


def _state(text: Field) -> Obj:
    state: Obj = {"reason": text.get("Reason"), "message": text.get("Message")}
    if (code := text.get("Exit Code")).isdecimal():
        state["exitCode"] = int(code)
    for title, field in (("Started", "startedAt"), ("Finished", "finishedAt")):
        if at := _time(text.get(title)):
            state[field] = at
    return state


def _time(text: str) -> str:
    """Returns `Fri, 28 Nov 2025 15:31:21 +0800` as the API writes it; an empty text if it is no time."""
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return ""
    return (at - (at.utcoffset() or timedelta(0))).strftime(_TIME)


def _container(text: Field) -> Obj:
    ports = text.get("Port") or text.get("Ports")
    container: Obj = {
        "name": text.key,
        "image": text.get("Image"),
        "ports": [{"containerPort": int(port)} for _, port, _ in _PORT.findall(ports) if port.isdecimal()],
        "resources": {"limits": {one.key: one.value for one in text.find("Limits").fields}},
    }
    for title, field in (
        ("Liveness", "livenessProbe"),
        ("Readiness", "readinessProbe"),
        ("Startup", "startupProbe"),
    ):
        if (found := _PROBE.match(text.get(title))) is not None:
            container[field] = {_HOW[found[1]]: {"port": int(found[2]), "path": found[3] or ""}}
    container["env"] = [_variable(one) for one in text.find("Environment").fields]
    container["envFrom"] = [
        {_FROM[found[2]]: {"name": found[1], "optional": one.value.lower() == "true"}}
        for one in text.find("Environment Variables from").fields
        if (found := _SOURCE.fullmatch(one.key)) is not None
    ]
    return container


def _variable(text: Field) -> Obj:
    if (found := _KEY.fullmatch(text.value)) is None:
        return {"name": text.key, "value": text.value}
    source = {"key": found[1], "name": found[3], "optional": found[4].lower() == "true"}
    return {"name": text.key, "valueFrom": {_KEYS[found[2]]: source}}


def _volume(text: Field) -> Obj:
    kind, name = text.get("Type").partition(" ")[0], text.get("Name")
    if kind == "ConfigMap":
        return {"configMap": {"name": name, "optional": text.get("Optional") == "true"}}
    if kind == "Secret":
        return {"secret": {"secretName": text.get("SecretName"), "optional": text.get("Optional") == "true"}}
    if kind == "PersistentVolumeClaim":
        return {"persistentVolumeClaim": {"claimName": text.get("ClaimName")}}
    return {}


def _workload(kind: str, text: Field) -> Obj:
    template = text.find("Pod Template")
    counts = {word: int(number) for number, word in _COUNT.findall(text.get("Replicas"))}
    conditions: Sequence[Mapping[str, str]] = [
        {"type": row[0], "status": row[1], "reason": row[2]} for row in text.rows("Conditions") if len(row) > 2
    ]
    spec = {"template": {"metadata": {"labels": template.pairs("Labels")}, "spec": _pod_spec(template)}}
    status: Obj = {"conditions": conditions}
    if kind == "DaemonSet":
        for title, field in (("Desired", "desiredNumberScheduled"), ("Current", "currentNumberScheduled")):
            if (number := text.get(f"{title} Number of Nodes Scheduled")).isdecimal():
                status[field] = int(number)
    elif counts:
        status |= {
            "replicas": counts.get("current", counts.get("total", 0)),
            "updatedReplicas": counts.get("updated", 0),
            "readyReplicas": counts.get("available", 0),
        }
        spec["replicas"] = counts.get("desired", 0)  # type: ignore[assignment]
    return {"spec": spec | {"selector": {"matchLabels": text.pairs("Selector")}}, "status": status}


def _service(text: Field) -> Obj:
    ports = []
    for port, target in zip(_all(text, "Port"), _all(text, "TargetPort"), strict=False):
        found, to = _PORT.fullmatch(port), target.partition("/")[0]
        if found is not None and found[2].isdecimal() and to.isdecimal():
            name = "" if found[1] in (None, "<unset>") else found[1]
            ports.append({"name": name, "port": int(found[2]), "targetPort": int(to)})
    return {"spec": {"type": text.get("Type"), "selector": text.pairs("Selector"), "ports": ports}}


def _all(text: Field, key: str) -> Sequence[str]:
    return [re.sub(r" +", " ", one.value) for one in text.fields if one.key == key]


def _node(text: Field) -> Obj:
    conditions = [
        {"type": row[0], "status": row[1], "reason": row[4], "message": row[5]}
        for row in text.rows("Conditions")
        if len(row) > 5
    ]
    taints = [
        {"key": key.partition("=")[0], "effect": effect}
        for key, _, effect in (one.partition(":") for one in (text.get("Taints"), *text.find("Taints").lines))
        if effect
    ]
    spec = {"taints": taints, "unschedulable": text.get("Unschedulable") == "true"}
    return {"spec": spec, "status": {"conditions": conditions}}
