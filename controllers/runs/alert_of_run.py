"""Finds the alert of an investigation, and masks its text."""

import asyncio
import logging

from tarsy.controllers.machinery.cache import UnreadableObject
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.runs.inputs import NotYet
from tarsy.controllers.schedules.alerts import SCHEDULE_LABEL
from tarsy.masking import InvalidPattern, mask_or_fail, usable
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import MaskingPlan
from tarsy.resources.v1alpha1 import Alert, Investigation
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.common import Author

_log = logging.getLogger(__name__)


async def alert_of_run(
    investigation: Investigation, context: ReconcileContext
) -> tuple[AlertContent, FieldPath, Author | None]:
    """Returns the alert of an investigation, the path of the field that holds it, and its author."""
    spec, meta = investigation.spec, investigation.metadata
    if spec.alert is not None:
        return spec.alert, FieldPath.of(investigation) / "alert", spec.author
    if spec.alert_ref is None:
        raise NotYet("AlertMissing", "spec: set exactly one of alertRef and alert; retryOf does not replace them")
    alert = await named_alert(investigation, context)
    if isinstance(alert, UnreadableObject):
        raise NotYet("AlertInvalid", str(alert.error))
    if alert is None:
        where = f"{meta.namespace}/{spec.alert_ref.name}"
        raise NotYet("AlertMissing", f"spec.alertRef.name: Alert {where} does not exist; create it, or name another")
    if spec.alert_ref.uid and spec.alert_ref.uid != alert.metadata.uid:
        text = f"spec.alertRef.uid: {alert} has another uid, as it was created anew; remove uid to investigate it"
        raise NotYet("AlertReplaced", text)
    return alert.spec, FieldPath.of(alert), alert.spec.author


async def named_alert(investigation: Investigation, context: ReconcileContext) -> Alert | UnreadableObject | None:
    """Finds the Alert of an `alertRef` in the cache, else in the API; None without one."""
    ref, namespace = investigation.spec.alert_ref, investigation.metadata.namespace
    if ref is None:
        return None
    if (alert := context.cache.get(Alert, namespace, ref.name)) is not None:
        return alert
    # The watch may tell of the Investigation before it tells of the Alert.
    raw = await context.kubernetes.client.find(Alert.KIND, namespace, ref.name)
    found = context.cache.find(context.cache.put(raw)) if raw else None
    return found if isinstance(found, Alert | UnreadableObject) else None


def alert_uid(investigation: Investigation, context: ReconcileContext) -> str | None:
    """Returns the uid of the Alert of an investigation, which its author need not have named; None without one."""
    ref = investigation.spec.alert_ref
    if ref is None or ref.uid:
        return ref.uid if ref is not None else None
    alert = context.cache.get(Alert, investigation.metadata.namespace, ref.name)
    return alert.metadata.uid if alert is not None else None


async def is_scheduled(investigation: Investigation, context: ReconcileContext) -> bool:
    """Returns whether an AlertSchedule created the alert of an investigation."""
    alert = await named_alert(investigation, context)
    return isinstance(alert, Alert) and SCHEDULE_LABEL in (alert.metadata.labels or {})


async def mask_alert(text: str, setting: MaskingPlan | None, context: ReconcileContext) -> str:
    """Masks the text of an alert, a runbook or a question before it is stored (`tarsy.masking.mask_or_fail`).

    Of a setting that cannot be used whole (its object is not Ready and says why), all that can be used is.

    Args:
        text: the text.
        setting: alertMasking of the namespace; None: the default.
        context: of the reconcile.
    """
    mask = context.mask
    if setting is not None:
        try:
            mask = await asyncio.to_thread(context.mask_of, setting)
        except InvalidPattern as error:
            _log.warning("parts of the namespace's alertMasking are invalid and ignored: %s", error.sentence)
            mask = await asyncio.to_thread(lambda: context.mask_of(usable(setting)))
    return await asyncio.to_thread(mask_or_fail, mask, text, "a text of an alert")
