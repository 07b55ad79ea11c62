"""Defines the initial objects of a new server: namespaces, default roles and bindings.

The rules of view, edit and admin are those that make sense for what is served here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embedded_kubeapi.auth.rbac import GROUP
from embedded_kubeapi.call import ADMINS, AUTHENTICATED, UNAUTHENTICATED
from embedded_kubeapi.objects import Obj

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_BOOTSTRAP = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_CORE = ["configmaps", "endpoints", "persistentvolumeclaims", "pods", "replicationcontrollers", "serviceaccounts",
         "services"]  # fmt: skip
_WORKLOADS = {"apps": ["daemonsets", "deployments", "replicasets", "statefulsets"], "batch": ["cronjobs", "jobs"],
              "autoscaling": ["horizontalpodautoscalers"], "networking.k8s.io": ["ingresses", "networkpolicies"],
              "policy": ["poddisruptionbudgets"]}  # fmt: skip
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC]


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


def _paths(paths: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"nonResourceURLs": paths, "verbs": verbs}


def _role(name: str, rules: list[dict[str, Any]], to: str = "", of: str = "") -> Obj:
    labels = _BOOTSTRAP | ({f"{_AGGREGATE}{to}": "true"} if to else {})
    obj: Obj = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name, "labels": labels}}
    if of:
        selector = {"matchLabels": {f"{_AGGREGATE}{of}": "true"}}
        obj["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return {**obj, "rules": rules}


def _binding(role: str, groups: list[str]) -> Obj:
    subjects = [{"apiGroup": GROUP, "kind": "Group", "name": group} for group in groups]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "labels": _BOOTSTRAP},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }


def bootstrap_objects() -> Iterator[Obj]:
    """Returns the initial objects of a new server."""
    for name in NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    view = [_rule([""], [*_CORE, "bindings", "events", "limitranges", "namespaces", "pods/log", "pods/status",
                         "resourcequotas"], _READ)]  # fmt: skip
    edit = [_rule([""], [*_CORE, "events", "pods/eviction", "pods/exec", "secrets", "serviceaccounts/token"], _WRITE),
            _rule([""], ["secrets"], _READ)]  # fmt: skip
    for group, plurals in _WORKLOADS.items():
        view.append(_rule([group], plurals, _READ))
        edit.append(_rule([group], [*plurals, *(["deployments/scale"] if group == "apps" else [])], _WRITE))
    lease = _rule(["coordination.k8s.io"], ["leases"], [*_READ, *_WRITE])
    admin = [_rule(["authorization.k8s.io"], ["localsubjectaccessreviews"], ["create"]),
             _rule([GROUP], ["rolebindings", "roles"], [*_READ, *_WRITE])]  # fmt: skip
    yield _role("system:aggregate-to-view", view, to="view")
    yield _role("system:aggregate-to-edit", [*edit, lease], to="edit")
    yield _role("system:aggregate-to-admin", admin, to="admin")
    for name, gathers in (("view", "view"), ("edit", "edit"), ("admin", "admin")):
        lower = {"view": "edit", "edit": "admin", "admin": ""}[name]
        yield _role(name, [], to=lower, of=gathers)
    yield _role("cluster-admin", [_rule(["*"], ["*"], ["*"]), _paths(["*"], ["*"])])
    reviews = [_rule(["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], ["create"]),
               _rule(["authentication.k8s.io"], ["selfsubjectreviews"], ["create"])]  # fmt: skip
    yield _role("system:basic-user", reviews)
    yield _role("system:discovery", [_paths(_DISCOVERY, ["get"])])
    yield _role("system:public-info-viewer", [_paths(_PUBLIC, ["get"])])
    delegator = [_rule(["authentication.k8s.io"], ["tokenreviews"], ["create"]),
                 _rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"])]  # fmt: skip
    yield _role("system:auth-delegator", delegator)
    yield _binding("cluster-admin", [ADMINS])
    yield _binding("system:basic-user", [AUTHENTICATED])
    yield _binding("system:discovery", [AUTHENTICATED])
    yield _binding("system:public-info-viewer", [AUTHENTICATED, UNAUTHENTICATED])
