"""Looks up the uid of a namespace: records are stored by uid, so that a new namespace of the same name starts empty.

Decision: the uid is cached for seconds. Records of a deleted namespace stay readable for that long; records of an
earlier namespace of the same name are never readable, because they have another uid.
"""

from collections.abc import Iterable

from tarsy.http.errors import NotFound, Unavailable
from tarsy.http.review_cache import ReviewCache
from tarsy.kube.client import ApiError, KubeClient

NAMESPACE_SECONDS = 5.0
_NAMESPACES = 10_000


class NamespaceReader:
    """Looks up namespaces. Use it only after the caller was authorized in the namespace.

    Args:
        client: authenticated as the operator.
        seconds: lifetime of a cached uid.
    """

    def __init__(self, client: KubeClient, *, seconds: float = NAMESPACE_SECONDS) -> None:
        self._client = client
        self._uids: ReviewCache[str, str] = ReviewCache(lambda uid: seconds if uid else 0.0, size=_NAMESPACES)

    async def uids(self, namespaces: Iterable[str]) -> list[str] | None:
        """Returns the uids of the namespaces that a query names; None for a query of all namespaces, which names none.

        Raises:
            NotFound: a namespace does not exist.
            Unavailable: the Kubernetes API is unavailable.
        """
        return [await self.uid(name) for name in namespaces] or None

    async def uid(self, namespace: str) -> str:
        """Returns the uid of a namespace.

        Raises:
            NotFound: the namespace does not exist.
            Unavailable: the Kubernetes API is unavailable.
        """
        try:
            uid = await self._uids.get(namespace, lambda: self._ask(namespace))
        except ApiError:
            raise Unavailable("the Kubernetes API is unavailable; try again") from None
        if not uid:
            raise NotFound(f"there is no namespace {namespace}")
        return uid

    async def _ask(self, namespace: str) -> str:
        found = await self._client.find("Namespace", None, namespace)
        return str(found["metadata"]["uid"]) if found else ""
