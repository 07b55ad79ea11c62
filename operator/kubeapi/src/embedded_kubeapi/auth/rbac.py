"""Implements role-based access control; reads roles and bindings from the store for each request.

kubernetes.io/docs/reference/access-authn-authz/rbac
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from embedded_kubeapi.call import ADMINS, Attributes, Caller, Decision
from embedded_kubeapi.objects import Key, Obj
from embedded_kubeapi.selectors import matches_label_selector
from embedded_kubeapi.store import Event, Store

GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES: Key = (GROUP, "clusterroles")
ROLES: Key = (GROUP, "roles")
_BINDINGS: Key = (GROUP, "rolebindings")
_CLUSTER_BINDINGS: Key = (GROUP, "clusterrolebindings")
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True)
class Grant:
    """A rule that applies to a caller, and the binding that grants it."""

    rule: dict[str, Any]
    reason: str


class Rbac:
    """Authorizes by the roles and bindings in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def decide(self, caller: Caller, attributes: Attributes) -> Decision:
        """Reports whether a binding allows the request."""
        if ADMINS in caller.groups:
            return Decision(True)
        for grant in self.grants(caller, attributes.namespace):
            if allows(grant.rule, attributes):
                return Decision(True, grant.reason)
        return Decision(False)

    def grants(self, caller: Caller, namespace: str) -> Iterator[Grant]:
        """Returns all rules that apply to a caller: cluster-wide, and in a namespace if one is given."""
        for binding in self._store.objects(_CLUSTER_BINDINGS):
            yield from self._granted(binding, caller, "", "ClusterRoleBinding")
        if namespace:
            for binding in self._store.objects(_BINDINGS, namespace):
                yield from self._granted(binding, caller, namespace, "RoleBinding")

    def _granted(self, binding: Obj, caller: Caller, namespace: str, kind: str) -> Iterator[Grant]:
        subject = next((s for s in binding.get("subjects") or () if _is(s, caller, namespace)), None)
        if subject is None:
            return
        reference = binding["roleRef"]
        key = ROLES if reference["kind"] == "Role" else CLUSTER_ROLES
        role = self._store.get(key, namespace if key == ROLES else None, reference["name"])
        name = f"{binding['metadata']['name']}/{namespace}" if namespace else binding["metadata"]["name"]
        who = f'{subject["kind"]} "{subject["name"]}{"/" + subject["namespace"] if subject.get("namespace") else ""}"'
        reason = f'RBAC: allowed by {kind} "{name}" of {reference["kind"]} "{reference["name"]}" to {who}'
        for rule in (role or {}).get("rules") or ():
            yield Grant(rule, reason)


def _is(subject: Obj, caller: Caller, namespace: str) -> bool:
    match subject.get("kind"):
        case "User":
            return subject["name"] in (caller.name, "*")
        case "Group":
            return subject["name"] in caller.groups
        case "ServiceAccount":
            return caller.name == f"{_ACCOUNT}{subject.get('namespace') or namespace}:{subject['name']}"
    return False


def allows(rule: dict[str, Any], attributes: Attributes) -> bool:
    """Reports whether one rule allows the request."""
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and attributes.verb not in verbs:
        return False
    if attributes.path:
        return any(_path_matches(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    if "*" not in groups and attributes.group not in groups:
        return False
    sub = attributes.subresource
    wanted = f"{attributes.resource}/{sub}" if sub else attributes.resource
    if not any(resource in ("*", wanted) or (sub and resource == f"*/{sub}") for resource in resources):
        return False
    names = rule.get("resourceNames") or ()
    return not names or attributes.name in names


def _path_matches(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))


class Aggregation:
    """Fills ClusterRoles with an aggregationRule whenever a ClusterRole changes, as the controller does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.listen(CLUSTER_ROLES, self._on_event)
        self._fill()

    def _on_event(self, event: Event) -> None:
        self._fill()

    def _fill(self) -> None:
        roles = self._store.objects(CLUSTER_ROLES)
        for role in roles:
            selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
            if not selectors:
                continue
            rules: list[Any] = []
            for other in roles:
                labels = other["metadata"].get("labels") or {}
                if other is not role and any(matches_label_selector(selector, labels) for selector in selectors):
                    rules += [rule for rule in other.get("rules") or () if rule not in rules]
            if rules != (role.get("rules") or []):
                self._store.put(CLUSTER_ROLES, {**role, "metadata": dict(role["metadata"]), "rules": rules})
