"""Deletes Alerts, Investigations and EvalRuns `ttlSecondsAfterFinished` after their end.

Decides: whether that is now. Writes: the deletion, with the resourceVersion of the object as precondition: an object
whose time to live was raised a moment ago stays. The record is not touched; `tarsy.store.retention` deletes it.
"""

from datetime import datetime, timedelta

from tarsy.controllers.machinery.cache import Cache
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.v1alpha1 import Alert, EvalRun, Investigation


async def expire(
    client: KubeClient, cache: Cache, obj: Alert | Investigation | EvalRun, finished: datetime | None, now: datetime
) -> float | None:
    """Deletes a finished object when its time to live is over; else returns the seconds until then.

    Args:
        client: the Kubernetes API.
        cache: learns the object's state where it is another than `obj`.
        obj: the object as it was looked at.
        finished: when it ended, with a time zone.
        now: the time, with a time zone.

    Raises:
        ApiError: the API refused or could not be reached; `Conflict` when the object has changed: look again.
    """
    if finished is None:
        return None
    left = (finished + timedelta(seconds=obj.spec.ttl_seconds_after_finished) - now).total_seconds()
    if left > 0:
        return left + 1
    meta = obj.metadata
    try:
        await client.delete(
            obj.KIND, meta.namespace, meta.name, uid=meta.uid, resource_version=meta.resource_version or None
        )
    except ApiError as error:
        if error.reason != "Conflict":
            raise
        there = await client.find(obj.KIND, meta.namespace, meta.name)
        if there is not None and there["metadata"]["uid"] == meta.uid:
            cache.put(there)
            raise
    return None
