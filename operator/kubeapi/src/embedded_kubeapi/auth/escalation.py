"""Prevents privilege escalation: checks writes of roles (verb `escalate`) and bindings (verb `bind`).

kubernetes.io/docs/reference/access-authn-authz/rbac, "Privilege escalation prevention and bootstrapping". A rule is
broken down into single permissions, each of which one of the caller's own rules must cover.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from embedded_kubeapi.admission.chain import Review
from embedded_kubeapi.auth.rbac import CLUSTER_ROLES, GROUP, ROLES, Rbac
from embedded_kubeapi.call import ADMINS, Attributes, Caller
from embedded_kubeapi.errors import forbidden, not_found
from embedded_kubeapi.objects import Obj
from embedded_kubeapi.store import Store

_BINDINGS = ("rolebindings", "clusterrolebindings")
_EVERYTHING: list[Obj] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
_OF_COLLECTION = ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation")


class Escalation:
    """Refuses roles and bindings that grant more than the caller has."""

    def __init__(self, store: Store, rbac: Rbac) -> None:
        self._store = store
        self._rbac = rbac

    async def mutate(self, review: Review) -> Obj | None:
        """Returns the object unchanged."""
        return review.obj

    async def validate(self, review: Review) -> None:
        """Checks a role or a binding.

        Raises:
            ApiError: 403, it grants what the caller has not; 404, it binds a role that is not there.
        """
        resource, obj, caller = review.resource, review.obj, review.call.caller
        if resource.group != GROUP or obj is None or ADMINS in caller.groups:
            return
        if review.old is not None and _but_for_collection(obj) == _but_for_collection(review.old):
            return
        if resource.plural in _BINDINGS:
            reference = obj["roleRef"]
            plural = CLUSTER_ROLES[1] if reference["kind"] == "ClusterRole" else ROLES[1]
            if not self._may(caller, "bind", plural, review.namespace, reference["name"]):
                self._confirm(review, self._rules_of(plural, review.namespace, reference["name"]))
        elif not self._may(caller, "escalate", resource.plural, review.namespace, review.name):
            self._confirm(review, obj.get("rules") or [])
            if obj.get("aggregationRule") or (review.old or {}).get("aggregationRule"):
                why = "must have cluster-admin privileges to use the aggregationRule"
                self._confirm(review, _EVERYTHING, why)

    def _may(self, caller: Caller, verb: str, plural: str, namespace: str, name: str) -> bool:
        about = Attributes(verb, GROUP, "v1", plural, namespace=namespace, name=name)
        return self._rbac.decide(caller, about).allowed

    def _rules_of(self, plural: str, namespace: str, name: str) -> list[Obj]:
        role = self._store.get((GROUP, plural), namespace if plural == ROLES[1] else None, name)
        if role is None:
            raise not_found(GROUP, plural, name)
        return role.get("rules") or []

    def _confirm(self, review: Review, rules: list[Obj], why: str = "") -> None:
        caller = review.call.caller
        held = [grant.rule for grant in self._rbac.grants(caller, review.namespace)]
        missing = [rule for rule in _single(rules) if not any(covers(own, rule) for own in held)]
        if missing:
            groups = " ".join(f'"{group}"' for group in caller.groups)
            who = f'user "{caller.name}" (groups=[{groups}])'
            lines = "\n".join(sorted({_show(rule) for rule in _compact(missing)}))
            text = why or f"{who} is attempting to grant RBAC permissions not currently held:\n{lines}"
            raise forbidden(GROUP, review.resource.plural, review.name, text)


def covers(own: Obj, rule: Obj) -> bool:
    """Reports whether a rule covers a rule with a single verb of a single resource or path."""
    if not _all_in(rule, own, "verbs") or not _all_in(rule, own, "apiGroups"):
        return False
    if not all(_path_covered(path, own.get("nonResourceURLs") or ()) for path in rule.get("nonResourceURLs") or ()):
        return False
    resources = own.get("resources") or ()
    if not all(_resource_covered(name, resources) for name in rule.get("resources") or ()):
        return False
    wanted, names = rule.get("resourceNames") or (), own.get("resourceNames") or ()
    return not names or (bool(wanted) and all(name in names for name in wanted))


def _all_in(rule: Obj, own: Obj, field: str) -> bool:
    held = own.get(field) or ()
    return "*" in held or all(item in held for item in rule.get(field) or ())


def _resource_covered(name: str, resources: Iterable[str]) -> bool:
    return any(held in ("*", name) or ("/" in name and held == f"*/{name.partition('/')[2]}") for held in resources)


def _path_covered(path: str, paths: Iterable[str]) -> bool:
    return any(held == path or (held.endswith("*") and path.startswith(held[:-1])) for held in paths)


def _single(rules: list[Obj]) -> Iterator[Obj]:
    for rule in rules:
        verbs = rule.get("verbs") or ()
        for path, verb in product(rule.get("nonResourceURLs") or (), verbs):
            yield {"nonResourceURLs": [path], "verbs": [verb]}
        for group, resource, verb in product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs):
            one = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
            names = rule.get("resourceNames")
            yield from ({**one, "resourceNames": [name]} for name in names) if names else (one,)


def _compact(rules: list[Obj]) -> list[Obj]:
    """Merges rules that differ in their verbs only."""
    found: dict[str, Obj] = {}
    for rule in rules:
        if rule.get("nonResourceURLs"):
            found[_show(rule)] = rule
            continue
        same = found.setdefault(_show({**rule, "verbs": []}), {**rule, "verbs": []})
        same["verbs"] = [*same["verbs"], *(verb for verb in rule["verbs"] if verb not in same["verbs"])]
    return list(found.values())


def _show(rule: Obj) -> str:
    parts = []
    for field, shown in (("apiGroups", "APIGroups"), ("resources", "Resources"), ("nonResourceURLs", "NonResourceURLs"),
                         ("resourceNames", "ResourceNames"), ("verbs", "Verbs")):  # fmt: skip
        if rule.get(field):
            parts.append(f"{shown}:[{' '.join(_quote(item) for item in rule[field])}]")
    return "{" + ", ".join(parts) + "}"


def _quote(text: str) -> str:
    return f'"{text}"'


def _but_for_collection(obj: Obj) -> Obj:
    meta = {name: value for name, value in obj["metadata"].items() if name not in _OF_COLLECTION}
    return {**obj, "metadata": meta}
