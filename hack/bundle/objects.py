"""Sorts rendered objects by how they get into the cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hack.chart.rendering import ObjectKey, kustomized

ACCOUNT: Final = "tarsy-operator"
DEPLOYMENT: Final = "tarsy-operator"
Object = Mapping[str, Any]
Objects = Mapping[ObjectKey, Object]

CARRIED: Final = frozenset({"CustomResourceDefinition", "ClusterRole", "ConfigMap", "Service"})
"""Kinds that go into the bundle as they are. OLM knows more, which we do not need; it knows no policies."""
OLM_MAKES: Final = {
    ("Namespace", "tarsy-system"): "the namespace of the Subscription",
    ("ServiceAccount", ACCOUNT): "named by the permissions of the ClusterServiceVersion",
    ("Service", "tarsy-admission"): "OLM makes one Service for webhook and aggregated API",
    ("Service", "tarsy-record"): "the same",
    ("MutatingWebhookConfiguration", "tarsy-admission"): "spec.webhookdefinitions",
    ("APIService", "v1alpha1.record.tarsy.dev"): "spec.apiservicedefinitions",
    ("RoleBinding", "tarsy-record-api"): "OLM binds extension-apiserver-authentication-reader for each APIService",
}
"""Objects of manifests/ that OLM makes by itself, and from what."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """The rendered objects by their way into the cluster.

    Args:
        csv: what the ClusterServiceVersion says: the Deployment, and the rights of the operator's account.
        carried: manifests of the bundle.
        olm: what OLM makes by itself.
        beside: what an administrator applies.
    """

    csv: Objects
    carried: Objects
    olm: Objects
    beside: Objects


def sorted_objects() -> Sorted:
    """Sorts what the profile `single` consists of.

    Policies are applied beside, with the rights that only they make harmless.
    """
    base = kustomized(("base",))
    whole = kustomized(("base",), ("components/policies",))
    bound = bound_roles(base)
    csv: dict[ObjectKey, Object] = {}
    carried: dict[ObjectKey, Object] = {}
    olm: dict[ObjectKey, Object] = {}
    beside: dict[ObjectKey, Object] = {}
    for key, obj in whole.items():
        _, kind, _, name = key
        if key in base and base[key] != obj:
            raise ValueError(f"components/policies changes {kind} {name} of base: say here who brings it")
        if key not in base:
            beside[key] = obj
        elif (kind, name) in OLM_MAKES:
            olm[key] = obj
        elif kind == "Deployment" or (kind, name) in bound or _binds_account(obj):
            csv[key] = obj
        elif kind in CARRIED:
            carried[key] = obj
        else:
            beside[key] = obj
    return Sorted(csv, carried, olm, beside)


def bound_roles(objects: Objects) -> set[tuple[str, str]]:
    """Returns kind and name of the roles that are bound to the operator's account."""
    return {
        (obj["roleRef"]["kind"], obj["roleRef"]["name"])
        for obj in objects.values()
        if _binds_account(obj) and (obj["kind"], obj["metadata"]["name"]) not in OLM_MAKES
    }


def rules(objects: Objects, kind: str) -> list[dict[str, Any]]:
    """Returns the rules of all roles of a kind that are bound to the operator's account, by their names."""
    bound = bound_roles(objects)
    found = [obj for key, obj in sorted(objects.items()) if (key[1], key[3]) in bound and key[1] == kind]
    return [dict(rule) for role in found for rule in role["rules"]]


def _binds_account(obj: Object) -> bool:
    return obj["kind"] in ("RoleBinding", "ClusterRoleBinding") and any(
        subject["kind"] == "ServiceAccount" and subject["name"] == ACCOUNT for subject in obj["subjects"]
    )
