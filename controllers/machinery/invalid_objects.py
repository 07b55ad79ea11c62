"""Marks objects that fail validation as Invalid in their status.

Watches: nothing of its own. Decides: nothing. Writes: all conditions of the object, so that no old condition stays that
was true of a valid one. Invalid objects come from API servers without CEL, or past admission.
"""

from datetime import UTC, datetime

from tarsy.controllers.machinery.cache import Cache, Key, UnreadableObject
from tarsy.controllers.machinery.status import merge_patch, patch_status, set_alike
from tarsy.kube.client import KubeClient
from tarsy.resources.meta import Conditions, ConditionStatus
from tarsy.resources.v1alpha1 import KINDS, Alert, ChatMessage, EvalRun, Investigation
from tarsy.resources.v1alpha1.common import ConditionType

_WORK: dict[str, tuple[tuple[ConditionType, ConditionStatus], ...]] = {
    Alert.KIND: (
        (ConditionType.ACCEPTED, "False"),
        (ConditionType.FINISHED, "False"),
        (ConditionType.SUCCEEDED, "Unknown"),
    ),
    Investigation.KIND: (
        (ConditionType.ACCEPTED, "False"),
        (ConditionType.FINISHED, "False"),
        (ConditionType.SUCCEEDED, "Unknown"),
    ),
    ChatMessage.KIND: (
        (ConditionType.ACCEPTED, "False"),
        (ConditionType.FINISHED, "False"),
        (ConditionType.SUCCEEDED, "Unknown"),
    ),
    EvalRun.KIND: ((ConditionType.COMPLETE, "False"), (ConditionType.PASSED, "Unknown")),
}
_PHASES = {
    Alert.KIND: "Rejected",
    Investigation.KIND: "Pending",
    ChatMessage.KIND: "Pending",
    EvalRun.KIND: "Pending",
}


async def mark_invalid(broken: UnreadableObject, client: KubeClient, cache: Cache) -> None:
    """Writes every validation error of an object to its status.

    Args:
        broken: the object and its errors.
        client: the Kubernetes API.
        cache: the cached objects.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    raw = broken.raw
    kind, meta = raw["kind"], raw["metadata"]
    old = raw.get("status") or {}
    message = "; ".join(str(error) for error in broken.error.errors)
    wanted = _WORK.get(kind, ((ConditionType.READY, "False"),))
    generation = meta.get("generation", 0)
    conditions = set_alike(_conditions(kind, old), wanted, "Invalid", message, generation, datetime.now(UTC))
    new = {
        **old,
        "observedGeneration": generation,
        "conditions": [item.to_dict() for item in conditions],
        **({"phase": _PHASES[kind]} if kind in _PHASES else {}),
    }
    key = Key(kind, meta.get("namespace", ""), meta["name"])
    seen = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    await patch_status(client, cache, key, seen, merge_patch(old, new))


def _conditions(kind: str, status: object) -> Conditions:
    """Reads the conditions of a raw status; one that this version cannot read has none."""
    model = KINDS[kind].model_fields["status"].annotation
    assert model is not None  # every kind has a status
    try:
        found: Conditions = model.model_validate(status).conditions
    except ValueError:
        return ()
    return found
