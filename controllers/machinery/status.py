"""Writes a status if, and only if, it differs.

A status is written as a merge patch of the difference, with uid and resourceVersion of the object it was computed from
as precondition: what was computed from an old object is refused by the API server, and computed again from the new one.
So a slow controller, or a second one for the seconds two overlap, never writes an older status over a newer.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import AnyResource, Condition, Conditions, ConditionStatus, Status, set_condition
from tarsy.resources.v1alpha1.common import ConditionType


def set_alike(
    conditions: Conditions,
    wanted: Iterable[tuple[ConditionType, ConditionStatus]],
    reason: str,
    message: str,
    generation: int,
    now: datetime,
) -> Conditions:
    """Sets several conditions for one reason, each to a status of its own.

    Args:
        conditions: those to change.
        wanted: type and status of each condition to set.
        reason: of all of them.
        message: of all of them.
        generation: of the object.
        now: the current time.
    """
    for type_, status in wanted:
        item = Condition(type=type_, status=status, reason=reason, message=message, observed_generation=generation)
        conditions = set_condition(conditions, item, now)
    return conditions


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Computes the JSON merge patch from `old` to `new`; empty when they are equal."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch


async def write_status(client: KubeClient, cache: Cache, obj: AnyResource, status: Status) -> Mapping[str, Any] | None:
    """Writes the status of an object and caches the result.

    Args:
        client: the Kubernetes API.
        cache: takes the written object.
        obj: the object that `status` was computed from.
        status: the new status.

    Returns:
        The object as the API has it now; None when nothing was written: it was so already, or the object is gone.

    Raises:
        ApiError: the API refused or could not be reached; `Conflict` when the object has changed: the cache has the
            new one.
    """
    meta = obj.metadata
    seen = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    key = Key(obj.KIND, meta.namespace, meta.name)
    return await patch_status(client, cache, key, seen, merge_patch(obj.status.to_dict(), status.to_dict()))


async def patch_status(
    client: KubeClient, cache: Cache, key: Key, seen: Mapping[str, Any], patch: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Patches a status as `write_status` does, with the difference given.

    Args:
        client: the Kubernetes API.
        cache: takes the written object.
        key: of the object.
        seen: uid and resourceVersion of the object that the patch was computed from.
        patch: the difference; empty: nothing is written.
    """
    if not patch:
        return None
    body = {"metadata": dict(seen), "status": patch}
    with cache.writing(key):  # the watch may tell of the write before its answer is here
        try:
            answer = await client.patch(key.kind, key.namespace, key.name, body, subresource="status")
        except ApiError as error:
            if error.reason == "NotFound":
                return None
            if error.reason == "Conflict":
                there = await client.find(key.kind, key.namespace, key.name)
                if there is None or there["metadata"]["uid"] != seen["uid"]:
                    return None
                cache.put(there)
            raise
        cache.put_written(answer)
        return answer
