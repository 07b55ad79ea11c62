"""Investigation: is accepted, and follows what its owner wants.

Watches: Investigations, Alerts, and all configuration (a plan that could not be made is tried again when something it
may need changes). Decides: whether the plan can be resolved; whether the object is a restored copy; whether it was
deleted. Writes: a pending run with its frozen plan into the record, `Accepted` while there is none, and the desired
state. What an accepted run does is written by `publisher`, from the record.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tarsy.controllers.alert import ACCEPTED_UID, expire, mark_accepted
from tarsy.controllers.cache import Cache, Unreadable
from tarsy.controllers.status import write_status
from tarsy.kube.client import ApiError, KubeClient
from tarsy.masking import MaskingError
from tarsy.plan.errors import At, PlanInvalid
from tarsy.plan.resolve import resolve
from tarsy.plan.select import NoChain, search_path, select
from tarsy.record.run import DesiredState
from tarsy.resources.meta import Condition, condition, set_condition
from tarsy.resources.v1alpha1 import Alert, Investigation, InvestigationDefaults, InvestigationStatus
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.common import ConditionType, ConfigMapKeyRef
from tarsy.resources.v1alpha1.investigation import LastError
from tarsy.store.reads import Reads
from tarsy.store.runs import NewRun, Runs

log = logging.getLogger(__name__)

MAX_CONFIG_MAP_BYTES = 1_048_576
MAX_RUNBOOK_BYTES = 262_144
RECHECK_SECONDS = 30.0
"""How soon a ConfigMap or Namespace that was created later is noticed; they are not watched."""


class NotYet(Exception):
    """The investigation cannot be accepted as things are: why, for `Accepted`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class Desk:
    """What accepting an investigation needs."""

    cache: Cache
    client: KubeClient
    runs: Runs
    reads: Reads
    library_namespace: str
    mask: Callable[[str], str]


async def reconcile(investigation: Investigation, desk: Desk) -> float | None:
    """Brings an investigation one step further; returns after how many seconds to look again, if at all.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError, StoreUnavailable: the record could not be read or written.
    """
    now = datetime.now(UTC)
    identity = UUID(investigation.metadata.uid)
    record = await desk.reads.record(identity)
    if record is not None:
        wanted = DesiredState(investigation.spec.desired_state)
        if not record.state.finished and wanted is not record.desired_state:
            await desk.runs.set_desired_state(identity, wanted)
        if ACCEPTED_UID not in investigation.metadata.annotations:  # a crash came between
            await mark_accepted(desk.client, desk.cache, investigation)
        if not record.state.finished or _finish_time(investigation) is None:
            return None  # its publication brings it back
        return await expire(desk.client, investigation, record.finished_at, now)
    refusal = _finished_without_record(investigation)
    if refusal is not None:
        if refusal[0] != "RecordLost" or _finish_time(investigation) is None:  # what was found stays readable
            await write_status(desk.client, desk.cache, investigation, _finished(investigation, refusal, now))
        return await expire(desk.client, investigation, _finish_time(investigation), now)
    try:
        run = await _plan(investigation, desk)
    except NotYet as reason:
        await write_status(desk.client, desk.cache, investigation, _waiting(investigation, reason, now))
        return RECHECK_SECONDS
    await desk.runs.accept(run)
    await mark_accepted(desk.client, desk.cache, investigation)
    return None


async def deleted(uid: str, runs: Runs) -> None:
    """An Investigation is gone: its run stops, its record stays."""
    await runs.object_deleted(UUID(uid))


def _finished_without_record(investigation: Investigation) -> tuple[str, str] | None:
    """Why an investigation without a record shall not run, as reason and message."""
    uid = investigation.metadata.uid
    accepted = investigation.metadata.annotations.get(ACCEPTED_UID)
    if accepted is not None and accepted != uid:
        return "Restored", "This is a copy of an investigation that ran before; create a new one to run it again."
    if accepted is not None:
        return (
            "RecordLost",
            "The record of this investigation is gone from the database; create a new one to run it again.",
        )
    if investigation.spec.desired_state == "Cancelled":
        return "CancelledBeforeStart", "The investigation was cancelled before it started."
    if investigation.spec.desired_state == "Concluded":
        return "ConcludedBeforeStart", "The investigation was asked to conclude before it started."
    return None


async def _plan(investigation: Investigation, desk: Desk) -> NewRun:
    meta, spec = investigation.metadata, investigation.spec
    alert, source, author = await _alert(investigation, desk)
    chain_ref = (spec.chain_ref.name, At.of(investigation) / "chainRef" / "name") if spec.chain_ref else None
    try:
        chain = select(
            namespace=meta.namespace,
            alert=alert,
            catalog=desk.cache,
            library_namespace=desk.library_namespace,
            source=source,
            chain_ref=chain_ref,
        )
        if isinstance(chain, NoChain):
            raise NotYet("NoChain", chain.message)
        plan = resolve(
            namespace=meta.namespace,
            alert=alert,
            chain=chain,
            catalog=desk.cache,
            library_namespace=desk.library_namespace,
            source=source,
        )
    except PlanInvalid as error:
        raise NotYet("PlanInvalid", "; ".join(str(e) for e in error.errors)) from error
    namespace = await desk.client.find("Namespace", None, meta.namespace)
    return NewRun(
        id=UUID(meta.uid),
        namespace=meta.namespace,
        namespace_uid=(namespace or {}).get("metadata", {}).get("uid", ""),
        name=meta.name,
        alert_data=await _masked(await _data(alert, source, desk), desk),
        runbook=await _masked(await _runbook(alert, source, desk), desk),
        plan=plan,
        author=author,
    )


async def _masked(text: str, desk: Desk) -> str:
    """The text as it is stored: without secrets, or, where masking fails, as it came (fail open, DESIGN section 6)."""
    try:
        return await asyncio.to_thread(desk.mask, text)
    except MaskingError as error:
        log.warning("an alert or runbook was stored unmasked: %s", type(error).__name__)
        return text


async def _alert(investigation: Investigation, desk: Desk) -> tuple[AlertContent, At, Mapping[str, Any]]:
    spec, meta = investigation.spec, investigation.metadata
    if spec.alert is not None:
        return spec.alert, At.of(investigation) / "alert", {}
    if spec.alert_ref is None:
        raise NotYet("AlertMissing", "spec: set exactly one of alertRef and alert")
    alert = desk.cache.get(Alert, meta.namespace, spec.alert_ref.name)
    if alert is None:
        # The watch may tell of the Investigation before it tells of the Alert.
        raw = await desk.client.find(Alert.KIND, meta.namespace, spec.alert_ref.name)
        found = desk.cache.find(desk.cache.put(raw)) if raw else None
        if isinstance(found, Unreadable):
            raise NotYet("AlertInvalid", str(found.error))
        if not isinstance(found, Alert):
            where = f"{meta.namespace}/{spec.alert_ref.name}"
            raise NotYet("AlertMissing", f"spec.alertRef.name: there is no Alert {where}; create it, or name another")
        alert = found
    if spec.alert_ref.uid and spec.alert_ref.uid != alert.metadata.uid:
        raise NotYet("AlertReplaced", f"spec.alertRef.uid: {alert} is another Alert of that name; name it without uid")
    return alert.spec, At.of(alert), {}


async def _data(alert: AlertContent, at: At, desk: Desk) -> str:
    if alert.data is not None or alert.data_from is None:  # the kind's rules ask for exactly one of them
        return alert.data or ""
    return await _config_map(alert.data_from.config_map_key_ref, at / "dataFrom", MAX_CONFIG_MAP_BYTES, desk.client)


async def _runbook(alert: AlertContent, at: At, desk: Desk) -> str:
    """The alert's runbook, else that of the defaults; a runbook that is not there is the plan's error."""
    if alert.runbook is not None:
        if alert.runbook.inline is not None:
            return alert.runbook.inline
        if alert.runbook.config_map_key_ref is not None:
            reference = alert.runbook.config_map_key_ref
            return await _config_map(reference, at / "runbook", MAX_RUNBOOK_BYTES, desk.client)
        return ""
    for space in search_path(at.namespace, desk.library_namespace):
        defaults = desk.cache.get(InvestigationDefaults, space, "default")
        if defaults is None or defaults.spec.runbook is None:
            continue
        if defaults.spec.runbook.config_map_key_ref is not None:
            reference = defaults.spec.runbook.config_map_key_ref
            return await _config_map(reference, At.of(defaults) / "runbook", MAX_RUNBOOK_BYTES, desk.client)
        return defaults.spec.runbook.inline or ""
    return ""


async def _config_map(reference: ConfigMapKeyRef, at: At, limit: int, client: KubeClient) -> str:
    field = (at / "configMapKeyRef").error("")
    where = f"{field.kind} {field.namespace}/{field.name}: {field.field}: ConfigMap {at.namespace}/{reference.name}"
    try:
        found = await client.find("ConfigMap", at.namespace, reference.name)
    except ApiError as error:
        if error.reason != "Forbidden":
            raise
        raise NotYet("ConfigMapForbidden", f"{where} may not be read by TARSy; grant it `get` on configmaps") from error
    if found is None:
        raise NotYet("ConfigMapMissing", f"{where} does not exist; create it")
    text = (found.get("data") or {}).get(reference.key)
    if text is None:
        raise NotYet("ConfigMapKeyMissing", f"{where} has no key {reference.key} under data; add it")
    if not text.strip():
        raise NotYet("ConfigMapKeyEmpty", f"{where}: key {reference.key} is empty; fill it in")
    if len(text.encode()) > limit:
        raise NotYet("ConfigMapTooLarge", f"{where}: key {reference.key} has more than {limit} bytes; shorten it")
    return str(text)


def _waiting(investigation: Investigation, reason: NotYet, now: datetime) -> InvestigationStatus:
    generation = investigation.metadata.generation
    conditions = investigation.status.conditions
    for item in (
        Condition(type=ConditionType.ACCEPTED, status="False", reason=reason.reason, message=reason.message),
        Condition(
            type=ConditionType.FINISHED, status="False", reason="NotAccepted", message="The run has not started."
        ),
        Condition(
            type=ConditionType.SUCCEEDED, status="Unknown", reason="NotAccepted", message="The run has not started."
        ),
    ):
        conditions = set_condition(conditions, item.model_copy(update={"observed_generation": generation}), now)
    return InvestigationStatus(
        observed_generation=generation,
        conditions=conditions,
        phase="Pending",
        last_error=LastError(reason=reason.reason, message=reason.message),
    )


def _finished(investigation: Investigation, refusal: tuple[str, str], now: datetime) -> InvestigationStatus:
    reason, message = refusal
    generation = investigation.metadata.generation
    conditions = investigation.status.conditions
    for kind in (ConditionType.ACCEPTED, ConditionType.SUCCEEDED):
        item = Condition(type=kind, status="False", reason=reason, message=message, observed_generation=generation)
        conditions = set_condition(conditions, item, now)
    end = Condition(
        type=ConditionType.FINISHED, status="True", reason=reason, message=message, observed_generation=generation
    )
    cancelled = reason in ("CancelledBeforeStart", "ConcludedBeforeStart")
    return investigation.status.model_copy(
        update={
            "observed_generation": generation,
            "conditions": set_condition(conditions, end, now),
            "phase": "Cancelled" if cancelled else "Failed",
            "last_error": LastError(reason=reason, message=message),
            "finished_at": investigation.status.finished_at or now.replace(microsecond=0),
        }
    )


def _finish_time(investigation: Investigation) -> datetime | None:
    end = condition(investigation.status.conditions, ConditionType.FINISHED)
    return end.last_transition_time if end and end.status == "True" else None
