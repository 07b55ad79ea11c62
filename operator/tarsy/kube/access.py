"""Checks permissions with the Kubernetes API's own authorizers (SubjectAccessReview).

Decision: the question is asked, never worked out from roles here; so RBAC, webhooks and whatever else a cluster has all
count. Nothing is kept: who asks often (`http/access.py`) remembers answers for seconds by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tarsy.kube.client import ApiError, KubeClient

UNDECIDED = "EvaluationError"
"""The reason of the ApiError when an authorizer failed and no other said yes."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Names a person or ServiceAccount as authentication does."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def service_account_subject(namespace: str, name: str) -> Subject:
    """Returns a ServiceAccount as a subject, with the groups that the API server gives it."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return Subject(f"system:serviceaccount:{namespace}:{name}", groups=groups)


@dataclass(frozen=True, slots=True)
class ResourceAttributes:
    """Describes an action: `verb` on a resource; without `namespace` cluster-wide, without `name` on all."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""


async def may(client: KubeClient, subject: Subject, attributes: ResourceAttributes) -> bool:
    """Asks whether `subject` may do it.

    Args:
        client: as somebody who may create SubjectAccessReviews.
        subject: who would do it.
        attributes: what.

    Raises:
        ApiError: nobody could say; that is never a yes.
    """
    spec: dict[str, Any] = {
        "user": subject.username,
        "uid": subject.uid,
        "groups": list(subject.groups),
        "extra": {key: list(values) for key, values in subject.extra.items()},
        "resourceAttributes": _about(attributes),
    }
    return await _answered(client, "SubjectAccessReview", spec)


async def caller_may(client: KubeClient, attributes: ResourceAttributes) -> bool:
    """Asks whether the identity of `client` may do it, which everybody may ask about themselves.

    Args:
        client: the Kubernetes API, as the identity in question.
        attributes: what.

    Raises:
        ApiError: nobody could say; that is never a yes.
    """
    return await _answered(client, "SelfSubjectAccessReview", {"resourceAttributes": _about(attributes)})


async def own_identity(client: KubeClient) -> Subject:
    """Asks as whom the Kubernetes API knows `client` (Kubernetes 1.28 and newer).

    Raises:
        ApiError: it refused or could not be reached; NotFound: it is older.
    """
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
    user = ((await client.create(review)).get("status") or {}).get("userInfo") or {}
    return Subject(str(user.get("username", "")), str(user.get("uid", "")), tuple(map(str, user.get("groups") or ())))


def _about(attributes: ResourceAttributes) -> dict[str, str]:
    about = {
        "verb": attributes.verb,
        "group": attributes.group,
        "resource": attributes.resource,
        "subresource": attributes.subresource,
        "namespace": attributes.namespace,
        "name": attributes.name,
    }
    return {key: value for key, value in about.items() if value}


async def _answered(client: KubeClient, kind: str, spec: Mapping[str, Any]) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {},
        "spec": {key: value for key, value in spec.items() if value},
    }
    status = (await client.create(review)).get("status") or {}
    allowed = status.get("allowed") is True and status.get("denied") is not True
    if not allowed and status.get("evaluationError"):
        text = f"the Kubernetes API could not decide: {status['evaluationError']}"
        raise ApiError(0, UNDECIDED, text)
    return allowed
