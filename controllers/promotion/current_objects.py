"""Checks that the first revision of a Chain is made from the current objects.

Watches nothing, writes nothing but the cache. The objects of a revision are of several kinds, and the watch of one kind
may be slower than that of another. Elsewhere that mends itself; the first revision serves without an evaluation, and
the push that the cache did not know yet would have to pass one.
"""

from tarsy.controllers.machinery.cache import Key, Version
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.kube.client import ApiError
from tarsy.plan.revision.snapshot import Snapshot
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME, InvestigationDefaults


async def require_current(snapshot: Snapshot, context: ReconcileContext) -> None:
    """Reads the objects of a revision; the cache takes those that have changed.

    Args:
        snapshot: the objects as cached.
        context: of the reconcile.

    Raises:
        ApiError: `Conflict` if an object has changed: the revision must be computed again; or the API refused or could
            not be reached.
    """
    cache = context.cache
    defaults = (Key(InvestigationDefaults.KIND, place, DEFAULTS_NAME) for place in snapshot.places)
    for key in dict.fromkeys((*(Key(*one) for one in snapshot.objects), *defaults)):
        there = await context.kubernetes.client.find(key.kind, key.namespace, key.name)
        cached = cache.version(key)
        if _identity(Version.of(there) if there is not None else None) == _identity(cached):
            continue
        if there is not None:
            cache.put(there)
        raise ApiError(409, "Conflict", f"{key} has changed since it was cached")


def _identity(version: Version | None) -> tuple[str, int] | None:
    return (version.uid, version.generation) if version is not None else None
