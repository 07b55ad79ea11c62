"""Writes a status when, and only when, it differs.

A status is written as a merge patch of the difference, with the object's uid as precondition: a patch meant for an
object that was deleted and made anew under the same name is refused by the API server.
"""

from collections.abc import Mapping
from typing import Any

from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import AnyResource, Status


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch that makes `old` into `new`; empty when they are equal."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch


async def write_status(client: KubeClient, obj: AnyResource, status: Status) -> bool:
    """Makes the object's status `status`; False when it was so already, or the object is gone or another one.

    Raises:
        ApiError: the API refused, or could not be reached.
    """
    patch = merge_patch(obj.status.to_dict(), status.to_dict())
    if not patch:
        return False
    meta = obj.metadata
    body = {"metadata": {"uid": meta.uid}, "status": patch}
    try:
        await client.patch(obj.KIND, meta.namespace, meta.name, body, subresource="status")
    except ApiError as error:
        if error.reason in ("NotFound", "Conflict"):
            return False
        raise
    return True
