"""Distinguishes objects that were restored from a backup, and have run before, from new ones.

Watches: nothing of its own. Decides: whether an Investigation was accepted, and whether it is a copy. Writes: the mark
of an accepted object, an annotation with its uid.

A restored object has another uid than before, and usually no status. Alerts, questions and the Investigations of people
are marked when they are accepted. The Investigation that this operator creates for an Alert needs no mark: its label
and `alertRef.uid` name the Alert, and the Alert's status names its Investigation; if the Alert is a copy as well, its
mark is that uid. An Alert needs one: it may be restored before its Investigation, and would be investigated again.
"""

from collections.abc import Mapping
from typing import TypeVar

from tarsy.controllers.machinery.cache import Cache
from tarsy.kube.client import KubeClient
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import Alert, EvalRun, Investigation

ALERT_LABEL = "tarsy.dev/alert-uid"
"""Label of an Investigation that this operator created, with the uid of its Alert."""

ACCEPTED_UID = "tarsy.dev/accepted-uid"
"""Annotation with the uid that the object had when it was accepted."""

A = TypeVar("A", Alert, Investigation, EvalRun)


def needs_mark(investigation: Investigation) -> bool:
    """Checks whether an accepted Investigation is still to be marked."""
    return ACCEPTED_UID not in investigation.metadata.annotations and not made_for_alert(investigation)


def made_for_alert(investigation: Investigation) -> bool:
    """Checks whether this operator created an Investigation for an Alert."""
    ref = investigation.spec.alert_ref
    return labels_name_alert(investigation.metadata.labels, None if ref is None else ref.uid)


def labels_name_alert(labels: Mapping[str, str], uid: str | None) -> bool:
    """Checks whether the labels of an Investigation name the Alert with a `uid`, which only this operator writes."""
    return uid is not None and labels.get(ALERT_LABEL) == uid


def accepted_as(investigation: Investigation) -> str | None:
    """Returns the uid that an Investigation had when it was accepted, as far as the object itself tells it."""
    marked, record = investigation.metadata.annotations.get(ACCEPTED_UID), investigation.status.record
    return marked if marked is not None or record is None else record.id


def alert_has_another(investigation: Investigation, alert: Alert) -> bool:
    """Checks whether an Investigation that was created for an Alert is a copy, by what the Alert tells.

    Args:
        investigation: the object, see `made_for_alert`.
        alert: the Alert that has the name in its `alertRef` now.
    """
    ref, own = investigation.spec.alert_ref, alert.status.investigation_ref
    if ref is None or ref.uid != alert.metadata.uid:
        return ref is not None and alert.metadata.annotations.get(ACCEPTED_UID) == ref.uid
    return own is not None and own.uid != investigation.metadata.uid


async def mark_accepted(client: KubeClient, cache: Cache, obj: A) -> A:
    """Marks an object as accepted, which tells it from a restored copy; returns the patched object.

    Args:
        client: the Kubernetes API.
        cache: takes the patched object.
        obj: the Alert, Investigation or EvalRun.
    """
    meta = obj.metadata
    body = {"metadata": {"uid": meta.uid, "annotations": {ACCEPTED_UID: meta.uid}}}
    patched = await client.patch(obj.KIND, meta.namespace, meta.name, body)
    cache.put(patched)
    return parse_as(type(obj), patched)
