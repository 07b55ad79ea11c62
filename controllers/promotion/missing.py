"""Deletes the stored revisions of Chains that were deleted while no controller watched.

A revision is deleted only after the API was asked for its Chain by name: another controller may have stored it.
"""

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.kube.client import KubeClient
from tarsy.resources.v1alpha1 import Chain
from tarsy.store.runs.revisions import Revisions


async def forget_missing(
    client: KubeClient, cache: Cache, revisions: Revisions, namespaces: tuple[str, ...] = ()
) -> None:
    """Deletes the revisions of Chains that do not exist.

    Args:
        client: the Kubernetes API.
        cache: the cached objects.
        revisions: the stored revisions.
        namespaces: that the operator watches; empty: all.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: the revisions could not be read or written.
    """
    for chain in await revisions.chains(namespaces):
        known = cache.version(Key(Chain.KIND, chain.namespace, chain.name))
        if known is not None and known.uid == chain.uid:
            continue
        raw = await client.find(Chain.KIND, chain.namespace, chain.name)
        if raw is None or raw["metadata"]["uid"] != chain.uid:
            await revisions.forget(chain.uid)
