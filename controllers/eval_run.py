"""Reconciles EvalRuns: runs the samples of a candidate, and decides whether it passed.

Watches: EvalRuns, and all configuration, which a run may wait for. Decides: when a run begins and with which terms,
when no further sample is started, and the verdict. Writes: the run and its samples into the database, Investigations,
`Complete` and `Passed`, and an Event with the verdict.

Decision: the terms are frozen when the run begins, and so is the revision of the candidate. If the candidate changes
before all samples have ended, the results would mix two revisions: the run ends as Insufficient. A run that promotion
created ends as Cancelled, so that a revision which comes back is measured again.
"""

from datetime import UTC, datetime
from uuid import UUID

from tarsy.controllers.evals.candidate import find_chain, prepare, revision
from tarsy.controllers.evals.judging import RunJudge, judge_lines
from tarsy.controllers.evals.projection import CANCELLED, ended_before, project, waiting
from tarsy.controllers.evals.samples import cancel_samples, collect, create_sample, next_samples, spent
from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.expiry import expire
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.promotion.evaluations import PROMOTES
from tarsy.controllers.runs.inputs import NotYet
from tarsy.controllers.runs.restored import ACCEPTED_UID, mark_accepted
from tarsy.evals.cases import EvalTerms, TermsUnreadable, read_terms
from tarsy.evals.suite_verdict import run_verdict
from tarsy.evals.verdict import Verdict
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1 import EvalRun
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.judging.eval_rows import EvalRunRecord
from tarsy.store.judging.evals import Evals

LOOK_SECONDS = 2.0
"""Seconds between two looks at the samples of a run: the end of an Investigation does not queue its EvalRun."""

RECHECK_SECONDS = 15.0
"""Seconds until a run that waits is looked at again: rights are not watched."""

_SUMMARY = 1024


async def reconcile(run: EvalRun, evals: Evals, context: ReconcileContext) -> float | None:
    """Brings an EvalRun forward; returns the seconds until the next look, None when none is needed.

    Args:
        run: the object.
        evals: the stored evaluations.
        context: of all reconciles.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: Postgres is unavailable.
    """
    now, identity = datetime.now(UTC), UUID(run.metadata.uid)
    client, cache = context.kubernetes.client, context.cache
    record = await evals.run(identity)
    if record is None:
        if _is_complete(run):  # its results are purged; the verdict stays in the status
            return await expire(client, cache, run, run.status.finished_at, now)
        if (end := _never(run)) is not None:
            status = ended_before(run, *end, now)
            await write_status(client, cache, run, status)
            return await expire(client, cache, run, status.finished_at, now)
        try:
            new = await prepare(run, evals, context)
        except NotYet as refusal:
            await write_status(client, cache, run, waiting(run, refusal.reason, refusal.message, now))
            return RECHECK_SECONDS
        await evals.begin(new)
        record = await evals.run(identity)
        if record is None:
            return LOOK_SECONDS
    if ACCEPTED_UID not in run.metadata.annotations:
        run = await mark_accepted(client, cache, run)
    try:
        terms = read_terms(record.terms)
    except TermsUnreadable as unknown:
        return await _left_alone(run, record, unknown, evals, context)
    if record.verdict is None:
        record = await _advance(run, record, terms, evals, context)
    totals, usage = await evals.by_case(identity), await evals.usage(identity)
    calls = context.judges.calls if terms.judge is not None else None
    judged = None if calls is None else await calls.usage(identity)
    status = project(run, record, terms, totals, usage, judged, now)
    if status.judge is not None and record.verdict is None and (held := context.judges.waits(identity)) is not None:
        status = status.model_copy(update={"judge": status.judge.model_copy(update={"message": held[:512]})})
    written = await write_status(client, cache, run, status)
    if record.verdict is None:
        return LOOK_SECONDS
    if written is not None and not _is_complete(run):
        await _tell(run, record.verdict, record.summary or record.verdict, context)
    return await expire(client, cache, run, record.finished_at, now)


async def _left_alone(
    run: EvalRun, record: EvalRunRecord, unknown: TermsUnreadable, evals: Evals, context: ReconcileContext
) -> float | None:
    """Leaves a run alone that a newer version began, as after a rollback; only its end is possible."""
    now, client, cache = datetime.now(UTC), context.kubernetes.client, context.cache
    if record.verdict is None and run.spec.desired_state == "Cancelled":
        await cancel_samples(run, await evals.begun(record.id), context)
        record = await _finish(run, record, CANCELLED, "The run was cancelled.", evals, context)
    if record.verdict is not None:
        if not _is_complete(run):
            status = ended_before(run, record.verdict, record.summary or record.verdict, now)
            await write_status(client, cache, run, status)
        return await expire(client, cache, run, record.finished_at, now)
    why = NotYet(
        "TermsUnreadable",
        f"A newer version started this run with terms that this version cannot evaluate ({unknown}). Upgrade again, "
        f"or set "
        "spec.desiredState to Cancelled and create a new run.",
    )
    await write_status(client, cache, run, waiting(run, why.reason, why.message, now))
    return RECHECK_SECONDS


async def _tell(run: EvalRun, found: str, said: str, context: ReconcileContext) -> None:
    """Writes the Event of a verdict."""
    if found == Verdict.PASSED:
        await context.kubernetes.events.tell(run, found, said)
    else:
        await context.kubernetes.events.tell(run, found, said, kind="Warning")


async def _advance(
    run: EvalRun, record: EvalRunRecord, terms: EvalTerms, evals: Evals, context: ReconcileContext
) -> EvalRunRecord:
    """Judges the samples that have ended, starts the next ones, and decides when none is left."""
    judge = None
    if terms.judge is not None:
        key = Key(run.KIND, run.metadata.namespace, run.metadata.name)
        judge = await RunJudge.of(key, record, terms.judge, context.judges)
    await collect(run, record, terms, await evals.begun(record.id), evals, context, judge)
    begun = await evals.begun(record.id)
    stop = _stop(run, record, context)
    if stop is not None:
        await cancel_samples(run, begun, context)
        return await _finish(run, record, *stop, evals, context)
    over_budget = spent(terms.budget, await evals.usage(record.id))
    upcoming = [] if over_budget is not None else next_samples(terms, begun)
    for case, sample in upcoming:
        await create_sample(run, record, case, sample, evals, context)
    if upcoming or any(not one.ended for one in begun):
        return record
    agreement = judge.agreement if judge is not None else None
    found = run_verdict(terms, await evals.by_case(record.id), agreement)
    reasons = (*([over_budget] if over_budget is not None else []), *found.reasons, *judge_lines(agreement))
    return await _finish(run, record, found.verdict.value, " ".join(reasons), evals, context)


async def _finish(
    run: EvalRun, record: EvalRunRecord, found: str, summary: str, evals: Evals, context: ReconcileContext
) -> EvalRunRecord:
    """Stores the verdict of a run whose object still exists.

    The end of its samples or of its Chain may be told before its own deletion, as when all go with a namespace: that is
    no verdict.
    """
    meta = run.metadata
    there = await context.kubernetes.client.find(EvalRun.KIND, meta.namespace, meta.name)
    if there is None or there["metadata"]["uid"] != meta.uid:
        await evals.deleted(record.id)
    else:
        text = summary if len(summary) <= _SUMMARY else f"{summary[: _SUMMARY - 1]}…"
        await evals.finish(record.id, found, text)
    return await evals.run(record.id) or record


def _stop(run: EvalRun, record: EvalRunRecord, context: ReconcileContext) -> tuple[str, str] | None:
    """Returns verdict and reason of a run that must not go on; None: it goes on."""
    if run.spec.desired_state == "Cancelled":
        return CANCELLED, "The run was cancelled."
    changed = CANCELLED if PROMOTES in run.metadata.labels else Verdict.INSUFFICIENT.value
    try:
        now = revision(find_chain(run, context), context)
    except NotYet as problem:
        return changed, f"The candidate cannot be measured any more: {problem.message}."
    if now != record.revision:
        text = (
            f"The candidate changed during the run, from revision {record.revision} to {now}; create a new EvalRun to "
            "measure it."
        )
        return changed, text
    return None


def _never(run: EvalRun) -> tuple[str, str] | None:
    """Returns why a run without a record never begins, as reason and message; None: it begins."""
    accepted = run.metadata.annotations.get(ACCEPTED_UID)
    if accepted is not None and accepted != run.metadata.uid:
        return "Restored", "This is a copy of a run that was measured before; create a new one to measure again."
    if accepted is not None:
        return "RecordLost", "The results of this run are no longer in the database; create a new run to measure again."
    if run.spec.desired_state == "Cancelled":
        return "CancelledBeforeStart", "The run was cancelled before it began."
    return None


def _is_complete(run: EvalRun) -> bool:
    found = condition(run.status.conditions, ConditionType.COMPLETE)
    return found is not None and found.status == "True"
