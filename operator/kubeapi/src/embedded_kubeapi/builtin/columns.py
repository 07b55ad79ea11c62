"""Defines the columns of `kubectl get` for built-in kinds, as in kubernetes/pkg/printers/internalversion."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from embedded_kubeapi.jsonpath import parse
from embedded_kubeapi.objects import Obj
from embedded_kubeapi.resource import Column
from embedded_kubeapi.table import AGE, age

_NONE = "<none>"


def _get(path: str, default: Any = None) -> Callable[[Obj], Any]:
    parsed = parse(path)

    def get(obj: Obj) -> Any:
        found = parsed.find(obj)
        return default if not found or found[0] is None else found[0]

    return get


def _of(path: str, default: Any, name: str, kind: str = "string", wide: bool = False) -> Column:
    return Column(name, _get(path, default), kind, priority=int(wide))


def _count(*paths: str) -> Callable[[Obj], int]:
    return lambda obj: sum(len(_get(path, ())(obj)) for path in paths)


def _join(path: str, default: str = _NONE) -> Callable[[Obj], str]:
    parsed = parse(path)
    return lambda obj: ",".join(str(value) for value in parsed.find(obj)) or default


def _pairs(path: str) -> Callable[[Obj], str]:
    get = _get(path, {})
    return lambda obj: ",".join(f"{key}={value}" for key, value in sorted(get(obj).items())) or _NONE


def _ratio(ready: str, wanted: str) -> Callable[[Obj], str]:
    have, want = _get(ready, 0), _get(wanted, 0)
    return lambda obj: f"{have(obj)}/{want(obj)}"


def _since(*paths: str) -> Callable[[Obj], str]:
    gets = [_get(path) for path in paths]

    def since(obj: Obj) -> str:
        time = next((value for get in gets if (value := get(obj))), None)
        return age(time, datetime.now(UTC)) if time else "<unknown>"

    return since


def _pod_status(obj: Obj) -> str:
    status = obj.get("status") or {}
    reason = status.get("reason") or status.get("phase") or "Unknown"
    for container in reversed(status.get("containerStatuses") or ()):
        state = container.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif ended:
            reason = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(reason)


def _pod_ready(obj: Obj) -> str:
    statuses = _get(".status.containerStatuses", ())(obj)
    total = len(_get(".spec.containers", ())(obj))
    return f"{sum(bool(status.get('ready')) for status in statuses)}/{total}"


def _readiness_gates(obj: Obj) -> str:
    gates = [gate.get("conditionType") for gate in _get(".spec.readinessGates", ())(obj)]
    true = [each["type"] for each in _get(".status.conditions", ())(obj) if each.get("status") == "True"]
    return f"{sum(gate in true for gate in gates)}/{len(gates)}" if gates else _NONE


def _pod_restarts(obj: Obj) -> str:
    return str(sum(status.get("restartCount", 0) for status in _get(".status.containerStatuses", ())(obj)))


def _node_status(obj: Obj) -> str:
    ready = _get('.status.conditions[?(@.type=="Ready")].status')(obj)
    text = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    return text + (",SchedulingDisabled" if _get(".spec.unschedulable")(obj) else "")


def _node_roles(obj: Obj) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    return ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))) or _NONE


def _event_object(obj: Obj) -> str:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _ports(obj: Obj) -> str:
    shown = []
    for port in _get(".spec.ports", ())(obj):
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(shown) or _NONE


def _external(obj: Obj) -> str:
    spec = obj.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName"))
    return ",".join(spec.get("externalIPs") or ()) or ("<pending>" if spec.get("type") == "LoadBalancer" else _NONE)


def _job_status(obj: Obj) -> str:
    for condition in _get(".status.conditions", ())(obj):
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed", "Suspended"):
            return str(condition["type"])
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else "Running"


def _api_service(obj: Obj) -> str:
    service = _get(".spec.service")(obj)
    return f"{service['namespace']}/{service['name']}" if service else "Local"


def _available(obj: Obj) -> str:
    condition = _get('.status.conditions[?(@.type=="Available")]', {})(obj)
    status, reason = condition.get("status", "Unknown"), condition.get("reason", "")
    return status if status == "True" or not reason else f"{status} ({reason})"


def _role(obj: Obj) -> str:
    return f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"


def _param_kind(obj: Obj) -> str:
    found = _get(".spec.paramKind")(obj)
    return f"{found['apiVersion']}/{found['kind']}" if found else "<unset>"


def _subjects(kind: str) -> Callable[[Obj], str]:
    def named(obj: Obj) -> str:
        subjects = [each for each in obj.get("subjects") or () if each.get("kind") == kind]
        places = (f"{each['namespace']}/" if kind == "ServiceAccount" else "" for each in subjects)
        return ", ".join(f"{place}{each['name']}" for place, each in zip(places, subjects, strict=True))

    return named


_BINDING = (
    Column("Role", _role), AGE, Column("Users", _subjects("User"), priority=1),
    Column("Groups", _subjects("Group"), priority=1),
    Column("ServiceAccounts", _subjects("ServiceAccount"), priority=1),
)  # fmt: skip
_CREATED = Column("Created At", ".metadata.creationTimestamp")
_IMAGES = (
    Column("Containers", _join(".spec.template.spec.containers[*].name"), priority=1),
    Column("Images", _join(".spec.template.spec.containers[*].image"), priority=1),
    Column("Selector", _pairs(".spec.selector.matchLabels"), priority=1),
)

COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": (
        Column("Ready", _pod_ready), Column("Status", _pod_status), Column("Restarts", _pod_restarts), AGE,
        _of(".status.podIP", _NONE, "IP", wide=True), _of(".spec.nodeName", _NONE, "Node", wide=True),
        _of(".status.nominatedNodeName", _NONE, "Nominated Node", wide=True),
        Column("Readiness Gates", _readiness_gates, priority=1),
    ),
    "deployments": (
        Column("Ready", _ratio(".status.readyReplicas", ".spec.replicas")),
        _of(".status.updatedReplicas", 0, "Up-to-date", "integer"),
        _of(".status.availableReplicas", 0, "Available", "integer"), AGE, *_IMAGES,
    ),
    "replicasets": (
        _of(".spec.replicas", 0, "Desired", "integer"), _of(".status.replicas", 0, "Current", "integer"),
        _of(".status.readyReplicas", 0, "Ready", "integer"), AGE, *_IMAGES,
    ),
    "statefulsets": (Column("Ready", _ratio(".status.readyReplicas", ".spec.replicas")), AGE, *_IMAGES[:2]),
    "daemonsets": (
        _of(".status.desiredNumberScheduled", 0, "Desired", "integer"),
        _of(".status.currentNumberScheduled", 0, "Current", "integer"),
        _of(".status.numberReady", 0, "Ready", "integer"), AGE, *_IMAGES,
    ),
    "jobs": (
        Column("Status", _job_status), Column("Completions", _ratio(".status.succeeded", ".spec.completions")),
        Column("Duration", lambda obj: _since(".status.startTime")(obj) if _get(".status.startTime")(obj) else ""),
        AGE, *_IMAGES,
    ),
    "cronjobs": (
        _of(".spec.schedule", "", "Schedule"), _of(".spec.timeZone", _NONE, "Timezone"),
        Column("Suspend", lambda obj: str(_get(".spec.suspend", False)(obj))),
        Column("Active", _count(".status.active"), "integer"),
        Column("Last Schedule", lambda o: _since(".status.lastScheduleTime")(o).replace("<unknown>", _NONE)), AGE,
    ),
    "services": (
        _of(".spec.type", "ClusterIP", "Type"), _of(".spec.clusterIP", _NONE, "Cluster-IP"),
        Column("External-IP", _external), Column("Port(s)", _ports), AGE,
        Column("Selector", _pairs(".spec.selector"), priority=1),
    ),
    "configmaps": (Column("Data", _count(".data", ".binaryData")), AGE),
    "secrets": (_of(".type", "Opaque", "Type"), Column("Data", _count(".data")), AGE),
    "serviceaccounts": (AGE,),
    "namespaces": (_of(".status.phase", "Active", "Status"), AGE),
    "nodes": (
        Column("Status", _node_status), Column("Roles", _node_roles), AGE,
        _of(".status.nodeInfo.kubeletVersion", "", "Version"),
    ),
    "events": (
        Column("Last Seen", _since(".series.lastObservedTime", ".lastTimestamp", ".deprecatedLastTimestamp",
                                   ".eventTime", ".metadata.creationTimestamp")),
        _of(".type", "", "Type"), _of(".reason", "", "Reason"), Column("Object", _event_object),
        Column("Message", lambda obj: str(obj.get("message") or obj.get("note") or "").strip()),
        Column("Name", ".metadata.name", priority=1),
    ),
    "leases": (_of(".spec.holderIdentity", "", "Holder"), AGE),
    "roles": (_CREATED,), "clusterroles": (_CREATED,), "customresourcedefinitions": (_CREATED,),
    "rolebindings": _BINDING, "clusterrolebindings": _BINDING,
    "networkpolicies": (Column("Pod-Selector", _pairs(".spec.podSelector.matchLabels")), AGE),
    "poddisruptionbudgets": (
        _of(".spec.minAvailable", "N/A", "Min Available"), _of(".spec.maxUnavailable", "N/A", "Max Unavailable"),
        _of(".status.disruptionsAllowed", 0, "Allowed Disruptions", "integer"), AGE,
    ),
    "horizontalpodautoscalers": (
        Column("Reference", lambda o: "{kind}/{name}".format(**o["spec"]["scaleTargetRef"])),
        _of(".spec.minReplicas", 1, "MinPods"), _of(".spec.maxReplicas", 1, "MaxPods", "integer"),
        _of(".status.currentReplicas", 0, "Replicas", "integer"), AGE,
    ),
    "apiservices": (Column("Service", _api_service), Column("Available", _available), AGE),
    "mutatingwebhookconfigurations": (Column("Webhooks", _count(".webhooks"), "integer"), AGE),
    "validatingwebhookconfigurations": (Column("Webhooks", _count(".webhooks"), "integer"), AGE),
    "validatingadmissionpolicies": (
        Column("Validations", _count(".spec.validations"), "integer"),
        Column("ParamKind", _param_kind),
        AGE,
    ),
    "validatingadmissionpolicybindings": (
        _of(".spec.policyName", "", "PolicyName"), _of(".spec.paramRef.name", "<unset>", "ParamRef"), AGE,
    ),
    "ingresses": (
        _of(".spec.ingressClassName", _NONE, "Class"), Column("Hosts", _join(".spec.rules[*].host", "*")),
        Column("Address", _join(".status.loadBalancer.ingress[*].ip", "")), AGE,
    ),
    "persistentvolumeclaims": (
        _of(".status.phase", "Pending", "Status"), _of(".spec.volumeName", "", "Volume"),
        _of(".status.capacity.storage", "", "Capacity"), Column("Access Modes", _join(".spec.accessModes[*]", "")),
        _of(".spec.storageClassName", "", "StorageClass"), AGE,
    ),
    "storageclasses": (_of(".provisioner", "", "Provisioner"), AGE),
    "priorityclasses": (
        _of(".value", 0, "Value", "integer"), _of(".globalDefault", False, "Global-Default", "boolean"), AGE,
    ),
}  # fmt: skip
