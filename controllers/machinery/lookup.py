"""Looks up objects of the cluster: in the cache, else in the Kubernetes API.

Decision: the cache alone cannot say that an Alert or an Investigation is not there. A controller that has just started
reconciles and publishes while the watch has not told of everything.
"""

from typing import TypeVar

from tarsy.controllers.machinery.cache import Cache
from tarsy.kube.client import KubeClient
from tarsy.resources.meta import AnyResource

_R = TypeVar("_R", bound=AnyResource)


async def look_up(
    kind: type[_R], namespace: str, name: str, cache: Cache, client: KubeClient, *, uid: str | None = None
) -> _R | None:
    """Returns an object; None: it is not there, is another one, or does not fit its kind.

    Args:
        kind: its class.
        namespace: of the object.
        name: of the object.
        cache: the cached objects; one that the API has is put there.
        client: is asked where the cache does not have the object.
        uid: of the object; None: whichever has that name.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    found = cache.get(kind, namespace, name)
    if found is None or uid not in (None, found.metadata.uid):
        raw = await client.find(kind.KIND, namespace, name)
        there = cache.find(cache.put(raw)) if raw is not None else None
        found = there if isinstance(there, kind) else None
    return found if found is not None and uid in (None, found.metadata.uid) else None
