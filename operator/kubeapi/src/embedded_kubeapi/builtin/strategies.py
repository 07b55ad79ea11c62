"""Completes and validates built-in kinds by their own rules before they are stored.

Only what clients notice: Kubernetes' own validation of workloads is far stricter. A kind without an entry is storage.
"""

from __future__ import annotations

import base64
import binascii
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from embedded_kubeapi.builtin.registrations import (
    complete_mutating_configuration,
    complete_policy,
    complete_policy_binding,
    complete_validating_configuration,
)
from embedded_kubeapi.errors import FieldError, not_permitted, not_supported, required, wrong
from embedded_kubeapi.objects import Key, Obj, now
from embedded_kubeapi.selectors import matches_label_selector

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def _nothing(obj: Obj, old: Obj | None) -> None:
    """Completes nothing."""


def _nothing_wrong(obj: Obj, old: Obj | None) -> list[FieldError]:
    return []


@dataclass(frozen=True)
class Strategy:
    """A kind's own rules; `complete` changes the copy it is given."""

    complete: Callable[[Obj, Obj | None], None] = _nothing
    check: Callable[[Obj, Obj | None], list[FieldError]] = _nothing_wrong


def _complete_namespace(obj: Obj, old: Obj | None) -> None:
    meta = obj["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), NAMESPACE_LABEL: meta["name"]}
    if old is None:
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}
    else:
        obj["spec"] = old.get("spec") or {}


def _complete_secret(obj: Obj, old: Obj | None) -> None:
    if plain := obj.pop("stringData", None):
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}
    obj.setdefault("type", "Opaque")
    if obj.get("data") is None:
        obj.pop("data", None)


def _check_secret(obj: Obj, old: Obj | None) -> list[FieldError]:
    errors = [*_check_immutable(obj, old, ("data",)), *_check_keys(obj, ("data",))]
    for key, value in (obj.get("data") or {}).items():
        try:
            base64.b64decode(value or "", validate=True)
        except (binascii.Error, TypeError, ValueError):
            errors.append(wrong(f"data[{key}]", "<not shown>", "illegal base64 data"))
    if old is not None and obj.get("type") != old.get("type"):
        errors.append(wrong("type", obj.get("type"), "field is immutable"))
    return errors


def _check_immutable(obj: Obj, old: Obj | None, fields: tuple[str, ...]) -> list[FieldError]:
    if old is None or not old.get("immutable"):
        return []
    fixed = [field for field in fields if obj.get(field) != old.get(field)]
    errors = [not_permitted(field, "field is immutable when `immutable` is set") for field in fixed]
    if not obj.get("immutable"):
        errors.append(not_permitted("immutable", "field is immutable when `immutable` is set"))
    return errors


def _check_configmap(obj: Obj, old: Obj | None) -> list[FieldError]:
    errors = [*_check_immutable(obj, old, ("data", "binaryData")), *_check_keys(obj, ("data", "binaryData"))]
    for key, value in (obj.get("data") or {}).items():
        if not isinstance(value, str):
            errors.append(wrong(f"data[{key}]", value, "must be a string"))
    return errors


def _check_keys(obj: Obj, fields: tuple[str, ...]) -> list[FieldError]:
    return [
        wrong(f"{field}[{key}]", key, _KEY_TEXT)
        for field in fields
        for key in obj.get(field) or {}
        if not _KEY.fullmatch(key)
    ]


def _check_lease(obj: Obj, old: Obj | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    limits = {"leaseDurationSeconds": (1, "must be greater than 0"),
              "leaseTransitions": (0, "must be greater than or equal to 0")}  # fmt: skip
    return [
        wrong(f"spec.{field}", spec[field], text)
        for field, (least, text) in limits.items()
        if isinstance(spec.get(field), int) and spec[field] < least
    ]


def _check_event(obj: Obj, old: Obj | None) -> list[FieldError]:
    about = (obj.get("involvedObject") or {}).get("namespace")
    if obj["metadata"].get("namespace") in ((about,) if about else ("default", "kube-system")):
        return []
    return [wrong("involvedObject.namespace", about, "does not match event.namespace")]


def _check_role(obj: Obj, old: Obj | None) -> list[FieldError]:
    return [
        required(f"rules[{at}].verbs", "verbs must contain at least one value")
        for at, rule in enumerate(obj.get("rules") or ())
        if not rule.get("verbs")
    ]


def _complete_service(obj: Obj, old: Obj | None) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
        before = ((old or {}).get("spec") or {}).get("clusterIP")
        spec["clusterIP"] = before or f"10.96.{random.randrange(256)}.{random.randrange(1, 255)}"
        spec["clusterIPs"] = [spec["clusterIP"]]
    obj.setdefault("status", {"loadBalancer": {}})


def _complete_pod_spec(spec: Any) -> None:
    if not isinstance(spec, dict):
        return
    defaults = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}
    for name, value in {**defaults, "terminationGracePeriodSeconds": 30, "securityContext": {}}.items():
        spec.setdefault(name, value)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        tag = str(container.get("image", "")).rpartition("/")[2]
        container.setdefault(
            "imagePullPolicy", "IfNotPresent" if ":" in tag and not tag.endswith(":latest") else "Always"
        )
        container.setdefault("resources", {})
        for port in container.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _complete_pod(obj: Obj, old: Obj | None) -> None:
    _complete_pod_spec(obj.get("spec"))
    if isinstance(obj.get("spec"), dict):
        name = obj["spec"].setdefault("serviceAccountName", "default")
        obj["spec"].setdefault("serviceAccount", name)
    if old is None:
        obj["status"] = {"phase": "Pending", "qosClass": "BestEffort"}


def _check_pod(obj: Obj, old: Obj | None) -> list[FieldError]:
    spec = obj.get("spec")
    return [] if isinstance(spec, dict) and spec.get("containers") else [required("spec.containers")]


def _complete_workload(obj: Obj, old: Obj | None) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template = spec.get("template")
    if isinstance(template, dict):
        _complete_pod_spec(template.get("spec"))


def _complete_deployment(obj: Obj, old: Obj | None) -> None:
    _complete_workload(obj, old)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    for name, value in (("strategy", rolling), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
        obj["spec"].setdefault(name, value)


def _check_workload(obj: Obj, old: Obj | None) -> list[FieldError]:
    spec = obj.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template") or {}
    if not selector:
        return [required("spec.selector")]
    labels = (template.get("metadata") or {}).get("labels") or {}
    errors = []
    if not matches_label_selector(selector, labels):
        errors.append(wrong("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
    if not (template.get("spec") or {}).get("containers"):
        errors.append(required("spec.template.spec.containers"))
    if old is not None and old["spec"].get("selector") != selector:
        errors.append(wrong("spec.selector", selector, "field is immutable"))
    return errors


def _complete_job(obj: Obj, old: Obj | None) -> None:
    spec = obj.setdefault("spec", {})
    for name, value in (("completions", 1), ("parallelism", 1), ("backoffLimit", 6), ("suspend", False),
                        ("completionMode", "NonIndexed")):  # fmt: skip
        spec.setdefault(name, value)
    template = spec.setdefault("template", {})
    labels = {"batch.kubernetes.io/controller-uid": obj["metadata"].get("uid"),
              "batch.kubernetes.io/job-name": obj["metadata"]["name"], "job-name": obj["metadata"]["name"]}  # fmt: skip
    if old is None:
        meta = template.setdefault("metadata", {})
        meta["labels"] = {**(meta.get("labels") or {}), **labels}
        spec.setdefault("selector", {"matchLabels": {next(iter(labels)): obj["metadata"].get("uid")}})
    _complete_pod_spec(template.get("spec"))


def _check_job(obj: Obj, old: Obj | None) -> list[FieldError]:
    pod = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    errors = [] if pod.get("containers") else [required("spec.template.spec.containers")]
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        detail = 'supported values: "OnFailure", "Never"'
        errors.append(required("spec.template.spec.restartPolicy", detail))
    if old is not None and old["spec"].get("template") != obj["spec"].get("template"):
        errors.append(wrong("spec.template", "<template>", "field is immutable"))
    return errors


def _complete_cronjob(obj: Obj, old: Obj | None) -> None:
    spec = obj.setdefault("spec", {})
    for name, value in (("concurrencyPolicy", "Allow"), ("suspend", False), ("successfulJobsHistoryLimit", 3),
                        ("failedJobsHistoryLimit", 1)):  # fmt: skip
        spec.setdefault(name, value)


_SUBJECTS = ("ServiceAccount", "User", "Group")


def _check_binding(obj: Obj, old: Obj | None) -> list[FieldError]:
    if old is not None and old.get("roleRef") != obj.get("roleRef"):
        return [wrong("roleRef", obj.get("roleRef"), "cannot change roleRef")]
    errors = [] if (obj.get("roleRef") or {}).get("name") else [required("roleRef.name")]
    for at, subject in enumerate(obj.get("subjects") or ()):
        if subject.get("kind") not in _SUBJECTS:
            errors.append(not_supported(f"subjects[{at}].kind", subject.get("kind"), _SUBJECTS))
    return errors


def _complete_binding(obj: Obj, old: Obj | None) -> None:
    group = "rbac.authorization.k8s.io"
    if isinstance(obj.get("roleRef"), dict) and not obj["roleRef"].get("apiGroup"):
        obj["roleRef"]["apiGroup"] = group
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", group)


def _complete_api_service(obj: Obj, old: Obj | None) -> None:
    service = (obj.get("spec") or {}).get("service")
    if service:
        service.setdefault("port", 443)
    local = {"type": "Available", "status": "True", "reason": "Local", "lastTransitionTime": now(),
             "message": "Local APIServices are always available"}  # fmt: skip
    if old is None:
        obj["status"] = {"conditions": [] if service else [local]}


_WORKLOAD = Strategy(_complete_workload, _check_workload)
_BINDING = Strategy(_complete_binding, _check_binding)
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
STRATEGIES: dict[Key, Strategy] = {
    ("", "namespaces"): Strategy(_complete_namespace),
    ("", "secrets"): Strategy(_complete_secret, _check_secret),
    ("", "configmaps"): Strategy(check=_check_configmap),
    ("", "events"): Strategy(check=_check_event),
    ("", "services"): Strategy(_complete_service),
    ("", "pods"): Strategy(_complete_pod, _check_pod),
    ("apps", "deployments"): Strategy(_complete_deployment, _check_workload),
    ("apps", "replicasets"): _WORKLOAD,
    ("apps", "statefulsets"): _WORKLOAD,
    ("apps", "daemonsets"): Strategy(check=_check_workload),
    ("batch", "jobs"): Strategy(_complete_job, _check_job),
    ("batch", "cronjobs"): Strategy(_complete_cronjob),
    ("coordination.k8s.io", "leases"): Strategy(check=_check_lease),
    (_RBAC, "roles"): Strategy(check=_check_role),
    (_RBAC, "clusterroles"): Strategy(check=_check_role),
    (_RBAC, "rolebindings"): _BINDING,
    (_RBAC, "clusterrolebindings"): _BINDING,
    ("apiregistration.k8s.io", "apiservices"): Strategy(_complete_api_service),
    (_ADMISSION, "mutatingwebhookconfigurations"): Strategy(complete_mutating_configuration),
    (_ADMISSION, "validatingwebhookconfigurations"): Strategy(complete_validating_configuration),
    (_ADMISSION, "validatingadmissionpolicies"): Strategy(complete_policy),
    (_ADMISSION, "validatingadmissionpolicybindings"): Strategy(complete_policy_binding),
}
_PLAIN = Strategy()


def strategy_of(key: Key) -> Strategy:
    """Returns a kind's own rules; most kinds have none."""
    return STRATEGIES.get(key, _PLAIN)
