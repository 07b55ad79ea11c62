"""Reconciles Alerts: each becomes an Investigation.

Watches: Alerts, Investigations, Chains. Decides: whether a chain takes the alert; without one it waits, and is queued
again when a Chain appears. When it is five minutes old, the default chain of its namespace takes it. Writes: the
Investigation, the conditions `Accepted`, `Finished` and `Succeeded` (the outcome of the Investigation), and the
deletion of an alert whose time to live is over.

The Investigation's name is derived from the alert, so that creating it twice creates one. Its author is the alert's,
whose rights are checked at acceptance. An alert whose Investigation was deleted is finished and does not run again. So
is one that carries the uid of another alert: it was restored from a backup. An alert with the incidentKey of another is
folded into that one (`tarsy.controllers.incidents.keys`).
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tarsy.controllers.incidents.keys import folded_status, leader_again, leader_of
from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.clock import wall_clock
from tarsy.controllers.machinery.context import ControllerSettings, ReconcileContext
from tarsy.controllers.machinery.expiry import expire
from tarsy.controllers.machinery.lookup import look_up
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.runs.authorization import UNKNOWN_AUTHOR
from tarsy.controllers.runs.restored import ACCEPTED_UID, ALERT_LABEL, mark_accepted
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.errors import FieldPath, PlanInvalid
from tarsy.plan.select import NoChain, select
from tarsy.resources.meta import API_VERSION, Condition, condition, set_condition
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import Alert, AlertStatus, Chain, Investigation
from tarsy.resources.v1alpha1.alert import InvestigationRef
from tarsy.resources.v1alpha1.common import ConditionType

_NAME_LIMIT = 63


async def reconcile(alert: Alert, context: ReconcileContext) -> float | None:
    """Reconciles an alert; returns the seconds until the next look, None when none is needed.

    Raises:
        StoreError: Postgres is away, and the alert has an incidentKey.
        ApiError: the Kubernetes API refused or could not be reached.
    """
    now = wall_clock()
    client, cache, intake = context.kubernetes.client, context.cache, context.store.intake
    meta = alert.metadata
    if meta.annotations.get(ACCEPTED_UID, meta.uid) != meta.uid:
        await write_status(client, cache, alert, _restored(alert, now))
        return await expire(client, cache, alert, _finished_at(alert), now)
    if alert.status.folded_into is not None:
        return await _fold(alert, await leader_again(alert, cache, client), cache, client, now)
    if alert.status.investigation_ref is not None:
        investigation = await _made_before(alert, alert.status.investigation_ref, cache, client)
    else:
        name = investigation_name(alert)
        investigation = cache.get(Investigation, meta.namespace, name)
        if investigation is None:
            unknown = UNKNOWN_AUTHOR if context.settings.require_author and alert.spec.author is None else None
            selected = _selected(alert, cache, context.settings.library_namespace)
            refusal = unknown or selected.refusal
            wait = None
            if refusal == selected.refusal and selected.default is not None:
                wait = _until_default(alert, now, context.settings.default_chain_seconds)
                refusal = None if wait is None else _waits_for_default(selected, alert, context.settings)
            if refusal:
                await write_status(client, cache, alert, _status(alert, None, refusal, now))
                return wait
            if alert.spec.incident_key is not None and intake is not None:
                leader = await leader_of(alert, alert.spec.incident_key, cache, client, intake)
                if leader is not None:
                    return await _fold(alert, leader, cache, client, now)
            investigation = await _create(alert, name, selected.default, context)
        if not _is_of(investigation, alert):
            text = f"{investigation} belongs to another alert; delete it, or create the alert under another name"
            await write_status(client, cache, alert, _status(alert, None, ("NameTaken", text), now))
            return None
        if ACCEPTED_UID not in meta.annotations:
            alert = await mark_accepted(client, cache, alert)
    await write_status(client, cache, alert, _status(alert, investigation, None, now))
    return await expire(client, cache, alert, _finished_at(alert), now)


async def _fold(alert: Alert, leader: Alert | None, cache: Cache, client: KubeClient, now: datetime) -> float | None:
    if ACCEPTED_UID not in alert.metadata.annotations:
        alert = await mark_accepted(client, cache, alert)
    await write_status(client, cache, alert, folded_status(alert, leader, now))
    return await expire(client, cache, alert, _finished_at(alert), now)


async def _made_before(
    alert: Alert, reference: InvestigationRef, cache: Cache, client: KubeClient
) -> Investigation | None:
    """Finds the Investigation of an alert in the cache, else in the API; None when it is gone."""
    namespace = alert.metadata.namespace
    if not _is_finished(alert):
        return await look_up(Investigation, namespace, reference.name, cache, client, uid=reference.uid)
    found = cache.get(Investigation, namespace, reference.name)
    return found if found is not None and found.metadata.uid == reference.uid else None


def _is_of(investigation: Investigation, alert: Alert) -> bool:
    reference = investigation.spec.alert_ref
    return reference is not None and (reference.name, reference.uid) == (alert.metadata.name, alert.metadata.uid)


def investigation_name(alert: Alert) -> str:
    """Builds the name of an alert's Investigation from the alert's name and a hash of its uid; always the same."""
    digest = hashlib.sha256(alert.metadata.uid.encode()).hexdigest()[:8]
    return f"{alert.metadata.name[: _NAME_LIMIT - 9].rstrip('-.')}-{digest}"


@dataclass(frozen=True, slots=True)
class _Selected:
    """Why no chain takes an alert, as reason and message; and the default chain of its namespace in that case."""

    refusal: tuple[str, str] | None = None
    default: Chain | None = None


def _selected(alert: Alert, cache: Cache, library_namespace: str) -> _Selected:
    try:
        chain = select(
            namespace=alert.metadata.namespace,
            alert=alert.spec,
            catalog=cache,
            library_namespace=library_namespace,
            source=FieldPath.of(alert),
        )
    except PlanInvalid as error:
        return _Selected(("ChainRefused", "; ".join(f"{e.field}: {e.message}" for e in error.errors)))
    return _Selected(("NoChain", chain.message), chain.default) if isinstance(chain, NoChain) else _Selected()


def _until_default(alert: Alert, now: datetime, seconds: float) -> float | None:
    """Returns the seconds until the default chain takes an alert; None: it does now."""
    created = alert.metadata.creation_timestamp
    left = 0.0 if created is None else seconds - (now - created).total_seconds()
    return left if left > 0 else None


def _waits_for_default(selected: _Selected, alert: Alert, settings: ControllerSettings) -> tuple[str, str]:
    reason, message = selected.refusal or ("NoChain", "")
    chain, minutes = selected.default, settings.default_chain_seconds / 60
    name = "" if chain is None else chain.metadata.name
    return reason, f"{message}; otherwise the default chain {name} takes it {minutes:g} minutes after its creation"


async def _create(alert: Alert, name: str, default: Chain | None, context: ReconcileContext) -> Investigation:
    """Creates the Investigation of an alert, or returns the one that is there.

    Args:
        alert: the alert.
        name: of the Investigation.
        default: the default chain, where it takes the alert.
        context: of the reconcile.
    """
    meta, client = alert.metadata, context.kubernetes.client
    body: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": Investigation.KIND,
        "metadata": {"name": name, "namespace": meta.namespace, "labels": {ALERT_LABEL: meta.uid}},
        "spec": {
            "alertRef": {"name": meta.name, "uid": meta.uid},
            "ttlSecondsAfterFinished": alert.spec.ttl_seconds_after_finished,
        },
    }
    if default is not None:
        body["spec"]["chainRef"] = {"name": default.metadata.name}
    if alert.spec.author is not None:
        body["spec"]["author"] = alert.spec.author.to_dict()
    if alert.spec.budget is not None:
        body["spec"]["budget"] = alert.spec.budget.to_dict()
    try:
        created = await client.create(body)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        created = await client.get(Investigation.KIND, meta.namespace, name)
    else:
        if default is not None:
            context.note_default()
    context.cache.put(created)
    return parse_as(Investigation, created)


def _status(
    alert: Alert, investigation: Investigation | None, refusal: tuple[str, str] | None, now: datetime
) -> AlertStatus:
    old, generation = alert.status, alert.metadata.generation
    done = condition(investigation.status.conditions, ConditionType.FINISHED) if investigation else None
    gone = investigation is None and not refusal
    finished = gone or (done is not None and done.status == "True")
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
            reason="InvestigationDeleted" if gone else "InvestigationFinished",
            message="The investigation was deleted." if gone else "The investigation ended.",
        )
        if gone and (before := condition(old.conditions, ConditionType.FINISHED)) and before.status == "True":
            end = before
    else:
        end = Condition(
            type=ConditionType.FINISHED,
            status="False",
            reason="NotFinished",
            message="The investigation has not ended.",
        )
    conditions = old.conditions
    outcome = _outcome(alert, investigation, finished, gone)
    for item in (accepted, end, *([outcome] if outcome is not None else [])):
        conditions = set_condition(conditions, item.model_copy(update={"observed_generation": generation}), now)
    reference = old.investigation_ref
    if investigation is not None:
        reference = InvestigationRef(name=investigation.metadata.name, uid=investigation.metadata.uid)
    phase = "Waiting" if refusal else "Finished" if finished else "Investigating"
    wanted = {"conditions": conditions, "phase": phase, "investigation_ref": reference}
    return old.model_copy(update={"observed_generation": generation, **wanted})


def _outcome(alert: Alert, investigation: Investigation | None, finished: bool, gone: bool) -> Condition | None:
    """Copies the outcome of the alert's Investigation, with its reason and message; None keeps the old condition.

    One that is gone ended as it was told; an alert that ended before this condition was known is left as it is.
    """
    old = condition(alert.status.conditions, ConditionType.SUCCEEDED)
    if not finished:
        taken = condition(investigation.status.conditions, ConditionType.ACCEPTED) if investigation else None
        waits = taken is not None and taken.status == "False"
        return Condition(
            type=ConditionType.SUCCEEDED,
            status="Unknown",
            reason="NotAccepted" if waits else "NotFinished",
            message=taken.message if taken is not None and waits else "The investigation has not ended.",
        )
    if (old is not None and old.status != "Unknown" and gone) or (old is None and _is_finished(alert)):
        return None
    said = condition(investigation.status.conditions, ConditionType.SUCCEEDED) if investigation else None
    if said is None or said.status == "Unknown":
        return Condition(
            type=ConditionType.SUCCEEDED,
            status="False",
            reason="InvestigationDeleted" if gone else "Unknown",
            message="The investigation was deleted before it ended."
            if gone
            else "The investigation reports no outcome.",
        )
    return said


def _restored(alert: Alert, now: datetime) -> AlertStatus:
    generation, conditions = alert.metadata.generation, alert.status.conditions
    message = "This is a copy of an alert that has already been investigated; create a new one to investigate it again."
    for kind, status in (
        (ConditionType.ACCEPTED, "False"),
        (ConditionType.FINISHED, "True"),
        (ConditionType.SUCCEEDED, "False"),
    ):
        item = Condition.model_validate({"type": kind, "status": status, "reason": "Restored", "message": message})
        conditions = set_condition(conditions, item.model_copy(update={"observed_generation": generation}), now)
    wanted = {"observed_generation": generation, "conditions": conditions, "phase": "Finished"}
    return alert.status.model_copy(update=wanted | {"investigation_ref": None})


def _is_finished(alert: Alert) -> bool:
    end = condition(alert.status.conditions, ConditionType.FINISHED)
    return end is not None and end.status == "True"


def _finished_at(alert: Alert) -> datetime | None:
    """Returns when this controller saw the end: an alert is never deleted before its end was published."""
    end = condition(alert.status.conditions, ConditionType.FINISHED)
    return end.last_transition_time if end and end.status == "True" else None
