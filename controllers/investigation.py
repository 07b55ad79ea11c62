"""Reconciles Investigations: accepts them and passes on their desired state.

Watches: Investigations, Alerts, and all configuration (a plan that cannot be made is retried when something changes
that it may need). Decides: whether the author may use the chain; whether the plan can be resolved, and whether the wait
for that is over (`tarsy.controllers.runs.acceptance`); whether the object is a restored copy; whether it was deleted.
Writes: a pending run with its frozen plan into the record, `Accepted` until there is one, and the desired state, which
also cancels the questions about a finished investigation. From then on `publisher` writes the status from the record;
it is asked to write it again when another client has changed it.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.expiry import expire
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.promotion.planning import PlanSource, plan_source
from tarsy.controllers.runs.acceptance import rejected, tell_rerun, wait_for_acceptance, was_given_up
from tarsy.controllers.runs.alert_of_run import alert_of_run, alert_uid, is_scheduled, mask_alert, named_alert
from tarsy.controllers.runs.authorization import (
    RequiredRead,
    alert_read,
    authorization_refusal,
    config_map_reads,
)
from tarsy.controllers.runs.inputs import (
    BeingFetched,
    NotYet,
    alert_data,
)
from tarsy.controllers.runs.precedents import precedents_of, run_keys, told_precedent
from tarsy.controllers.runs.projection import project
from tarsy.controllers.runs.readable import limited_to_reader, reader_of
from tarsy.controllers.runs.replay import (
    RecordedInput,
    check_providers,
    provider_key,
    provider_override,
    recorded_input,
    required_reads,
)
from tarsy.controllers.runs.rest import note_rest
from tarsy.controllers.runs.restored import accepted_as, alert_has_another, made_for_alert, mark_accepted, needs_mark
from tarsy.controllers.runs.run_secret import make_run_secret, remove_run_secret, revoke_run_secret
from tarsy.controllers.runs.run_texts import run_runbook, skill_sources
from tarsy.controllers.runs.skill_texts import freeze_skills
from tarsy.evidence.alert_words import alert_words
from tarsy.evidence.history.kinds import HISTORY_LABEL
from tarsy.plan.errors import FieldPath, PlanInvalid
from tarsy.plan.model import Plan
from tarsy.plan.resolve import PlanRequest, resolve
from tarsy.plan.select import NoChain, select
from tarsy.plan.what_if import with_provider, without_other_providers
from tarsy.record.judging.precedent import Precedent
from tarsy.record.run import DesiredState
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1 import Alert, Investigation, LLMProvider
from tarsy.resources.v1alpha1.alert import AlertContent, Severity
from tarsy.resources.v1alpha1.common import Author, ConditionType
from tarsy.resources.v1alpha1.investigation import Replay
from tarsy.store.runs.lifecycle import NewRun

_log = logging.getLogger(__name__)

FETCH_RECHECK_SECONDS = 60.0

PRIORITIES: Mapping[Severity | None, int] = {"Critical": 10, "Warning": 0, None: 0, "Info": -10}
"""Of two runs that wait, the one with the higher priority is run first."""


async def reconcile(investigation: Investigation, context: ReconcileContext) -> float | None:
    """Reconciles an investigation; returns the seconds until the next look, None when none is needed.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError, StoreUnavailable: the record could not be read or written.
    """
    now = datetime.now(UTC)
    meta, store = investigation.metadata, context.store
    client, cache = context.kubernetes.client, context.cache
    identity = UUID(meta.uid)
    record = await store.reads.record(identity)
    if record is not None:
        wanted = DesiredState(investigation.spec.desired_state)
        if not record.state.finished and wanted is not record.desired_state:
            await store.runs.set_desired_state(identity, wanted)
        marked, published = not needs_mark(investigation), record.revision <= record.published_revision
        if not marked:  # a crash came between
            await mark_accepted(client, cache, investigation)
        right = published and project(record, investigation, now) == investigation.status
        if published and not right:
            context.publish_again(record)  # somebody else wrote the status
        if record.state.finished:
            await remove_run_secret(investigation, context)
            if wanted is DesiredState.CANCELLED:
                for question in await store.questions.unfinished(identity):
                    await store.runs.set_desired_state(question, wanted)
        if not record.state.finished or _finish_time(investigation) is None:
            return None  # its publication brings it back
        if marked and right and record.finished_at is not None:
            until = record.finished_at + timedelta(seconds=investigation.spec.ttl_seconds_after_finished)
            await note_rest(investigation, record, until, context)
        return await expire(client, cache, investigation, record.finished_at, now)
    if was_given_up(investigation.status.conditions):
        status = investigation.status.model_copy(update={"observed_generation": meta.generation})
        await write_status(client, cache, investigation, status)
        return await expire(client, cache, investigation, _finish_time(investigation), now)
    over = await _finished_without_record(investigation, context)
    if over is not None:
        await remove_run_secret(investigation, context)
        if over[0] != "RecordLost" or _finish_time(investigation) is None:  # what was found stays readable
            await write_status(client, cache, investigation, rejected(investigation, *over, now))
        return await expire(client, cache, investigation, _finish_time(investigation), now)
    try:
        run = await _plan(investigation, context)
    except BeingFetched:
        return FETCH_RECHECK_SECONDS  # its answer brings it back before that
    except NotYet as refusal:
        return await wait_for_acceptance(investigation, refusal, context, now)
    if run.plan.replay is None or run.plan.replay.on_miss == "Live":
        await make_run_secret(investigation, run.plan, context)
    if await store.runs.accept(run):
        for sentence in run.plan.not_used:
            await context.kubernetes.events.tell(investigation, "SettingNotUsed", sentence, kind="Warning")
        if run.retry_of is not None:
            await tell_rerun(run.id, context)
    if needs_mark(investigation):
        await mark_accepted(client, cache, investigation)
    return None


async def deleted(uid: str, namespace: str, context: ReconcileContext) -> None:
    """Stops the run of a deleted object and revokes its tokens; the record stays.

    Args:
        uid: of the object.
        namespace: of the object.
        context: of the reconcile.
    """
    context.at_rest.pop(uid, None)
    await context.store.runs.object_deleted(UUID(uid))
    await revoke_run_secret(uid, namespace, context)


async def _finished_without_record(investigation: Investigation, context: ReconcileContext) -> tuple[str, str] | None:
    """Explains why an investigation without a record must not run, as reason and message."""
    accepted, copy = accepted_as(investigation), False
    if accepted is not None:
        copy = accepted != investigation.metadata.uid
    elif made_for_alert(investigation):
        alert = await named_alert(investigation, context)
        copy = isinstance(alert, Alert) and alert_has_another(investigation, alert)
    if copy:
        return "Restored", "This is a copy of an investigation that ran before; create a new one to run it again."
    if accepted is not None:
        return (
            "RecordLost",
            "The record of this investigation is no longer in the database; create a new one to run it again.",
        )
    if investigation.spec.desired_state == "Cancelled":
        return "CancelledBeforeStart", "The investigation was cancelled before it started."
    if investigation.spec.desired_state == "Concluded":
        return "ConcludedBeforeStart", "The investigation was asked to conclude before it started."
    return None


async def _plan(investigation: Investigation, context: ReconcileContext) -> NewRun:
    if investigation.spec.replay is not None:
        return await _plan_replay(investigation, investigation.spec.replay, context)
    meta, spec = investigation.metadata, investigation.spec
    alert, source, named_by = await alert_of_run(investigation, context)
    chain_ref = (spec.chain_ref.name, FieldPath.of(investigation) / "chainRef" / "name") if spec.chain_ref else None
    try:
        chain = select(
            namespace=meta.namespace,
            alert=alert,
            catalog=context.cache,
            library_namespace=context.settings.library_namespace,
            source=source,
            chain_ref=chain_ref,
        )
        if isinstance(chain, NoChain):
            raise NotYet("NoChain", chain.message)
        # Before anything is told of what is in it.
        home, provider = chain.metadata.namespace, spec.llm_provider_ref
        brought = [Key(LLMProvider.KIND, home, provider.name)] if provider else []
        await _authorized(spec.author, [Key(chain.KIND, home, chain.metadata.name), *brought], context)
    except PlanInvalid as error:
        raise NotYet("PlanInvalid", "; ".join(str(e) for e in error.errors)) from error
    plan = _resolved(investigation, alert, source, await plan_source(chain, context), context)
    await _authorized(spec.author, [Key(ref.kind, ref.namespace, ref.name) for ref in plan.brought], context)
    await _may_read(investigation, alert, source, named_by, context)
    namespace = (await context.kubernetes.client.find("Namespace", None, meta.namespace) or {}).get("metadata", {})
    reader, history = reader_of(spec.author, alert, named_by), HISTORY_LABEL in (namespace.get("labels") or {})
    plan = await limited_to_reader(plan, reader, context.kubernetes.client, history=history)
    data = await alert_data(alert, source, context.kubernetes.client, context.kept_text)
    plan = await freeze_skills(plan, data, skill_sources(investigation, context))
    text = await mask_alert(data, plan.alert_masking, context)
    run, uid = UUID(meta.uid), namespace.get("uid", "")
    words = await asyncio.to_thread(alert_words, text)
    found = await precedents_of(run, plan, alert, words, reader, uid, context)
    return NewRun(
        id=run,
        namespace=meta.namespace,
        namespace_uid=uid,
        name=meta.name,
        alert_data=text,
        runbook=await mask_alert(
            await run_runbook(investigation, alert, source, chain, context), plan.alert_masking, context
        ),
        plan=plan,
        priority=PRIORITIES[alert.severity],
        severity=alert.severity,
        scheduled=await is_scheduled(investigation, context),
        alert_uid=alert_uid(investigation, context),
        retry_of=spec.retry_of,
        author=spec.author.to_dict() if spec.author else {},
        keys=run_keys(alert, words),
        precedents=await _as_told(found, plan, context),
    )


def _resolved(
    investigation: Investigation, alert: AlertContent, at: FieldPath, planned: PlanSource, context: ReconcileContext
) -> Plan:
    """Resolves the plan of a run by the revisions that serve, or raises NotYet with all that is wrong."""
    spec, provider = investigation.spec, investigation.spec.llm_provider_ref
    try:
        plan = resolve(
            PlanRequest(
                namespace=investigation.metadata.namespace,
                alert=alert,
                chain=with_provider(planned.chain, provider.name) if provider else planned.chain,
                catalog=planned.catalog,
                library_namespace=context.settings.library_namespace,
                source=at,
                budget=(spec.budget, FieldPath.of(investigation) / "budget") if spec.budget else None,
            )
        )
    except PlanInvalid as error:
        raise planned.refusal(error.errors, at) from error
    if withdrawn := planned.withdrawn():
        raise planned.refusal(withdrawn, at)
    return without_other_providers(plan) if provider else plan


async def _plan_replay(investigation: Investigation, replay: Replay, context: ReconcileContext) -> NewRun:
    meta, spec, at = investigation.metadata, investigation.spec, FieldPath.of(investigation) / "replay"
    # Before anything is told of what is recorded.
    await _authorized(spec.author, (), context, await required_reads(investigation, replay, context))
    recorded = await recorded_input(investigation, replay, context)
    library = context.settings.library_namespace
    override = replay.overrides.chain_ref if replay.overrides else None
    named = (override.name, at / "overrides" / "chainRef" / "name") if override else None
    if named is None and recorded.chain is not None:
        named = (recorded.chain, at / "of")
    provider = provider_override(replay)
    try:
        chain = select(
            namespace=meta.namespace,
            alert=recorded.alert,
            catalog=context.cache,
            library_namespace=library,
            source=at,
            chain_ref=named,
        )
        if isinstance(chain, NoChain):
            raise NotYet("NoChain", chain.message)
        brought = provider_key(replay, chain.metadata.namespace)
        used = [Key(chain.KIND, chain.metadata.namespace, chain.metadata.name), *([brought] if brought else [])]
        await _authorized(spec.author, used, context)
        plan = resolve(
            PlanRequest(
                namespace=meta.namespace,
                alert=recorded.alert,
                chain=with_provider(chain, provider.name) if provider else chain,
                catalog=context.cache,
                library_namespace=library,
                source=at,
                budget=(spec.budget, FieldPath.of(investigation) / "budget") if spec.budget else None,
            )
        )
    except PlanInvalid as error:
        raise NotYet("PlanInvalid", "; ".join(str(e) for e in error.errors)) from error
    if provider:
        plan = without_other_providers(plan)
    await _authorized(spec.author, [Key(ref.kind, ref.namespace, ref.name) for ref in plan.brought], context)
    check_providers(plan, recorded)
    namespace = (await context.kubernetes.client.find("Namespace", None, meta.namespace) or {}).get("metadata", {})
    header = recorded.cassette.header
    data, runbook = await _recorded_texts(recorded, plan, context)
    sources = skill_sources(investigation, context)
    return NewRun(
        id=UUID(meta.uid),
        namespace=meta.namespace,
        namespace_uid=namespace.get("uid", ""),
        name=meta.name,
        alert_data=data,
        runbook=runbook,
        plan=await freeze_skills(recorded.plan(plan, replay), header.alert.data, sources, _replayed(recorded, replay)),
        precedents=await _as_told((header.precedents or ()) if plan.precedents is not None else (), plan, context),
        author=spec.author.to_dict() if spec.author else {},
        cassette=await asyncio.to_thread(lambda: recorded.data),
    )


async def _recorded_texts(recorded: RecordedInput, plan: Plan, context: ReconcileContext) -> tuple[str, str]:
    """Returns data and runbook of a recorded alert; those of a case, which no run has stored, are masked first."""
    texts = (recorded.cassette.header.alert.data, recorded.cassette.header.runbook or "")
    if recorded.source is not None:
        return texts
    data, runbook = texts
    return await mask_alert(data, plan.alert_masking, context), await mask_alert(runbook, plan.alert_masking, context)


def _replayed(recorded: RecordedInput, replay: Replay) -> Plan | None:
    """Returns the plan whose skills a replay keeps: that of the run; a case of a suite measures the skills of now."""
    return recorded.source if replay.of is not None else None


async def _authorized(
    author: Author | None, used: Iterable[Key], context: ReconcileContext, reads: Iterable[RequiredRead] = ()
) -> None:
    if refused := await authorization_refusal(
        author, used, context.kubernetes.client, required=context.settings.require_author, reads=reads
    ):
        raise NotYet(*refused)


async def _may_read(
    investigation: Investigation, alert: AlertContent, at: FieldPath, named_by: Author | None, context: ReconcileContext
) -> None:
    """Checks that the author of the run, and of the alert, may read the texts that the alert names."""
    author, ref = investigation.spec.author, investigation.spec.alert_ref
    texts = config_map_reads(alert, at)
    strange = ref is not None and author is not None and (named_by is None or named_by.username != author.username)
    theirs = (
        [alert_read(ref.name, FieldPath.of(investigation) / "alertRef" / "name")] if ref is not None and strange else []
    )
    await _authorized(author, (), context, [*theirs, *texts])
    if named_by != author and texts:
        await _authorized(named_by, (), context, texts)


async def _as_told(found: Iterable[Precedent], plan: Plan, context: ReconcileContext) -> list[Precedent]:
    """Returns precedents as they are stored for a run: with secrets masked, and within their limits."""
    return [told_precedent(one, await mask_alert(one.summary, plan.alert_masking, context)) for one in found]


def _finish_time(investigation: Investigation) -> datetime | None:
    end = condition(investigation.status.conditions, ConditionType.FINISHED)
    return end.last_transition_time if end and end.status == "True" else None
