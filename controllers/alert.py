"""Alert: becomes an Investigation.

Watches: Alerts, Investigations, Chains. Decides: whether a chain takes the alert; it waits when none does yet, and is
looked at again when a Chain appears. Writes: the Investigation (named after the alert, so creating it twice is
creating it once), the conditions `Accepted` and `Finished`, and deletes the alert when its time is over.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from tarsy.controllers.cache import Cache
from tarsy.controllers.status import write_status
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.events import Events
from tarsy.plan.errors import At, PlanInvalid
from tarsy.plan.select import NoChain, select
from tarsy.resources.meta import API_VERSION, Condition, condition, set_condition
from tarsy.resources.v1alpha1 import Alert, AlertStatus, Investigation
from tarsy.resources.v1alpha1.alert import InvestigationRef
from tarsy.resources.v1alpha1.common import ConditionType

ALERT_LABEL = "tarsy.dev/alert-uid"
_NAME_LIMIT = 63


async def reconcile(
    alert: Alert, cache: Cache, client: KubeClient, events: Events, library_namespace: str
) -> float | None:
    """Brings an alert one step further; returns after how many seconds to look again, if at all.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    now = datetime.now(UTC)
    meta = alert.metadata
    name = alert.status.investigation_ref.name if alert.status.investigation_ref else investigation_name(alert)
    investigation = cache.get(Investigation, meta.namespace, name)
    if investigation is None and alert.status.investigation_ref is None:
        refusal = _refusal(alert, cache, library_namespace)
        if refusal:
            await write_status(client, alert, _status(alert, None, refusal, now))
            return None
        investigation = await _create(alert, name, client)
        await events.tell(alert, "InvestigationCreated", f"Investigation {name} was created.")
    finished = condition(investigation.status.conditions, ConditionType.FINISHED) if investigation else None
    await write_status(client, alert, _status(alert, investigation, None, now))
    if investigation is not None and not (finished and finished.status == "True"):
        return None
    over = (finished.last_transition_time if finished else None) or _finished_at(alert)
    return await expire(client, alert, over, now)


async def expire(
    client: KubeClient, obj: Alert | Investigation, finished: datetime | None, now: datetime
) -> float | None:
    """Deletes a finished object when its time is over; else the seconds until then."""
    if finished is None:
        return None
    left = (finished + timedelta(seconds=obj.spec.ttl_seconds_after_finished) - now).total_seconds()
    if left > 0:
        return left + 1
    await client.delete(obj.KIND, obj.metadata.namespace, obj.metadata.name, uid=obj.metadata.uid)
    return None


def investigation_name(alert: Alert) -> str:
    """The alert's name, cut, and a hash of its uid: the same alert always gives the same name."""
    digest = hashlib.sha256(alert.metadata.uid.encode()).hexdigest()[:8]
    return f"{alert.metadata.name[: _NAME_LIMIT - 9].rstrip('-.')}-{digest}"


def _refusal(alert: Alert, cache: Cache, library_namespace: str) -> tuple[str, str] | None:
    """Why no chain takes the alert, as reason and message."""
    try:
        chain = select(
            namespace=alert.metadata.namespace,
            alert=alert.spec,
            catalog=cache,
            library_namespace=library_namespace,
            source=At.of(alert),
        )
    except PlanInvalid as error:
        return "ChainRefused", "; ".join(f"{e.field}: {e.message}" for e in error.errors)
    return ("NoChain", chain.message) if isinstance(chain, NoChain) else None


async def _create(alert: Alert, name: str, client: KubeClient) -> Investigation:
    meta = alert.metadata
    body: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": Investigation.KIND,
        "metadata": {"name": name, "namespace": meta.namespace, "labels": {ALERT_LABEL: meta.uid}},
        "spec": {
            "alertRef": {"name": meta.name, "uid": meta.uid},
            "ttlSecondsAfterFinished": alert.spec.ttl_seconds_after_finished,
        },
    }
    try:
        created = await client.create(body)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        created = await client.get(Investigation.KIND, meta.namespace, name)
    return Investigation.model_validate(created)


def _status(
    alert: Alert, investigation: Investigation | None, refusal: tuple[str, str] | None, now: datetime
) -> AlertStatus:
    old, generation = alert.status, alert.metadata.generation
    done = condition(investigation.status.conditions, ConditionType.FINISHED) if investigation else None
    finished = (done is not None and done.status == "True") or (_is_finished(alert) and not refusal)
    if refusal:
        accepted = Condition(type=ConditionType.ACCEPTED, status="False", reason=refusal[0], message=refusal[1])
    else:
        accepted = Condition(
            type=ConditionType.ACCEPTED,
            status="True",
            reason="InvestigationCreated",
            message="A chain takes the alert.",
        )
    if finished:
        end = Condition(
            type=ConditionType.FINISHED,
            status="True",
            reason="InvestigationFinished",
            message="The investigation ended.",
        )
    else:
        end = Condition(
            type=ConditionType.FINISHED,
            status="False",
            reason="NotFinished",
            message="The investigation has not ended.",
        )
    conditions = old.conditions
    for item in (accepted, end):
        conditions = set_condition(conditions, item.model_copy(update={"observed_generation": generation}), now)
    reference = old.investigation_ref
    if investigation is not None:
        reference = InvestigationRef(name=investigation.metadata.name, uid=investigation.metadata.uid)
    return AlertStatus(
        observed_generation=generation,
        conditions=conditions,
        phase="Waiting" if refusal else "Finished" if finished else "Investigating",
        investigation_ref=reference,
    )


def _is_finished(alert: Alert) -> bool:
    end = condition(alert.status.conditions, ConditionType.FINISHED)
    return end is not None and end.status == "True"


def _finished_at(alert: Alert) -> datetime | None:
    """When the alert finished; one whose Investigation was deleted before its end counts from when that was seen."""
    end = condition(alert.status.conditions, ConditionType.FINISHED)
    return end.last_transition_time if end and end.status == "True" else None
