"""Authorizes callers by SubjectAccessReview, and caches the results for seconds.

Decision: allowed and denied are cached equally long, so a new permission is denied no longer than a revoked one is
still granted. If the Kubernetes API cannot answer, the result is 503, never allowed.
"""

from tarsy.http.authentication.identity import Caller, Permission
from tarsy.http.errors import Forbidden, Unavailable
from tarsy.http.review_cache import ReviewCache
from tarsy.kube.access import ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError, KubeClient

ACCESS_SECONDS = 10.0
ACCESS_ANSWERS = 10_000
_Key = tuple[str, str, tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...], ResourceAttributes]


class AccessReviews:
    """Authorizes callers; safe to share.

    Args:
        client: authenticated as the operator, which may create SubjectAccessReviews.
        seconds: lifetime of a cached result: maximum delay until a revoked permission is denied.
    """

    def __init__(self, client: KubeClient, *, seconds: float = ACCESS_SECONDS) -> None:
        self._client = client
        self._answers: ReviewCache[_Key, bool] = ReviewCache(lambda _: seconds, size=ACCESS_ANSWERS)

    async def allowed(self, caller: Caller, permission: Permission, namespace: str = "", name: str = "") -> bool:
        """Returns whether a caller has a permission.

        Args:
            caller: the caller.
            permission: the permission.
            namespace: namespace of the object; empty: cluster-wide.
            name: name of the object; empty: all objects.

        Raises:
            Unavailable: the Kubernetes API could not answer.
        """
        attributes = ResourceAttributes(
            permission.verb, permission.group, permission.resource, permission.subresource, namespace, name
        )
        try:
            return await self._answers.get(_key(caller, attributes), lambda: self._ask(caller.subject, attributes))
        except ApiError:
            raise Unavailable("the Kubernetes API could not check the permission; try again") from None

    async def demand(self, caller: Caller, permission: Permission, namespace: str = "", name: str = "") -> None:
        """Refuses a caller without a permission.

        Args:
            caller: the caller.
            permission: the permission.
            namespace: namespace of the object; empty: cluster-wide.
            name: name of the object; empty: all objects.

        Raises:
            Forbidden: the message is the same whether or not the object exists.
            Unavailable: the Kubernetes API could not answer.
        """
        if not await self.allowed(caller, permission, namespace, name):
            raise Forbidden(_refusal(caller, permission, namespace))

    async def _ask(self, subject: Subject, attributes: ResourceAttributes) -> bool:
        return await may(self._client, subject, attributes)


def _key(caller: Caller, attributes: ResourceAttributes) -> _Key:
    extra = tuple(sorted((key, tuple(values)) for key, values in caller.extra.items()))
    return caller.username, caller.uid, tuple(sorted(caller.groups)), extra, attributes


def _refusal(caller: Caller, permission: Permission, namespace: str) -> str:
    resource = "/".join(part for part in (permission.resource, permission.subresource) if part)
    where = f"in the namespace {namespace}" if namespace else "in all namespaces"
    return f"{caller.username} may not {permission.verb} {resource} of {permission.group} {where}"
