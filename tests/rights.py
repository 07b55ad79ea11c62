"""Rights in tests: given, and then waited for until the authorizer of the Kubernetes API says yes.

Decision: a binding that is written is not yet in force. A real API server's authorizer sees roles and bindings through
watches of its own, on a busy machine seconds later, and what asks it remembers a no for a while. So tests give rights
by this module only, before whoever is to use them is asked for the first time.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from e2e.waiting import until
from tarsy.kube.access import ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError, KubeClient
from tarsy_dev.objects import put

RBAC = "rbac.authorization.k8s.io"
BINDINGS = ("RoleBinding", "ClusterRoleBinding")


def role(name: str, namespace: str, *rules: Mapping[str, Any]) -> dict[str, Any]:
    """A Role, or without a namespace a ClusterRole."""
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": _meta(name, namespace), "rules": list(rules)}


def binding(name: str, namespace: str, kind: str, of: str, *subjects: Mapping[str, str]) -> dict[str, Any]:
    """A RoleBinding to the role `of` of a kind, or without a namespace a ClusterRoleBinding."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": _meta(name, namespace),
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": of},
        "subjects": list(subjects),
    }


def user(name: str) -> dict[str, str]:
    """A person as a subject."""
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def group(name: str) -> dict[str, str]:
    """A group as a subject."""
    return {"apiGroup": RBAC, "kind": "Group", "name": name}


def account(name: str, namespace: str) -> dict[str, str]:
    """A ServiceAccount as a subject."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


async def put_rights(admin: KubeClient, objects: Iterable[Mapping[str, Any]]) -> None:
    """Puts objects in their order, roles and bindings among them, and waits until what the bindings give is given.

    Raises:
        AssertionError: the authorizer does not say so within a minute; the message names binding and right.
    """
    there = [dict(obj) for obj in objects]
    for obj in there:
        await put(admin, obj)
    for obj in there:
        if obj["kind"] in BINDINGS:
            await in_force(admin, obj)


async def in_force(admin: KubeClient, given: Mapping[str, Any]) -> None:
    """Waits until all subjects of a binding have what its role allows now.

    A role without rules gives nothing to wait for; nothing here fills an aggregated one.
    """
    namespace, ref = given["metadata"].get("namespace", ""), given["roleRef"]
    allows = await admin.get(ref["kind"], namespace if ref["kind"] == "Role" else None, ref["name"])
    for subject in map(_asked_as, given.get("subjects") or ()):
        for right in _rights(allows.get("rules") or (), namespace):

            async def given_now(subject: Subject = subject, right: ResourceAttributes = right) -> bool:
                try:
                    return await may(admin, subject, right)
                except ApiError:  # nobody could say: a role that another binding names is not known yet
                    return False

            await until(f"{given['metadata']['name']} lets {subject} {right}", given_now)


def _rights(rules: Iterable[Mapping[str, Any]], namespace: str) -> Iterator[ResourceAttributes]:
    """A right of each rule: what is seen of a role is seen as a whole. Of a rule for names, one for each name."""
    for rule in rules:
        if resources := rule.get("resources"):
            resource, _, subresource = resources[-1].partition("/")
            for name in rule.get("resourceNames") or ("",):
                yield ResourceAttributes(
                    rule["verbs"][-1], rule["apiGroups"][-1], resource, subresource, namespace, name
                )


def _asked_as(subject: Mapping[str, str]) -> Subject:
    name = subject["name"]
    if subject["kind"] == "Group":
        return Subject("somebody-of-the-group", groups=(name,))
    return Subject(f"system:serviceaccount:{subject['namespace']}:{name}" if "namespace" in subject else name)


def _meta(name: str, namespace: str) -> dict[str, str]:
    return {"name": name} | ({"namespace": namespace} if namespace else {})
