"""The uid of a namespace as it is now: records are kept by it, so that a namespace of the same name starts empty.

Decision: asked by name and remembered for seconds. A record of a namespace that was just deleted may be read so long;
one of its predecessor never, because the record is asked for by this very uid.
"""

from tarsy.http.errors import NotFound, Unavailable
from tarsy.http.review_cache import ReviewCache
from tarsy.kube.client import ApiError, KubeClient

NAMESPACE_SECONDS = 5.0
_NAMESPACES = 10_000


class NamespaceReader:
    """Looks up namespaces; ask only after the caller was allowed something there."""

    def __init__(self, client: KubeClient, *, seconds: float = NAMESPACE_SECONDS) -> None:
        self._client = client
        self._uids: ReviewCache[str, str] = ReviewCache(lambda uid: seconds if uid else 0.0, size=_NAMESPACES)

    async def uid(self, namespace: str) -> str:
        """The uid of a namespace.

        Raises:
            NotFound: there is no such namespace.
            Unavailable: the Kubernetes API is away.
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
