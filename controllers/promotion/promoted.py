"""Applies the decision about a Chain's revisions: the condition `Promoted`, the stored revisions, and the EvalRun.

Watches: nothing of its own; the reconcile of a Chain calls it. Decides: by `decision`, from the current objects, the
stored revisions, the EvalRuns in the cache, and a SubjectAccessReview about the author of an override. Writes: the
stored revisions, an EvalRun for a revision that has none, `desiredState` of one that is superseded, Events, and the
fields of the status.

Decision: everything is computed again from objects and stored revisions at each reconcile, so that a restart at any
point loses nothing. A revision is stored before the status names it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.promotion.current_objects import require_current
from tarsy.controllers.promotion.decision import Decision, Evaluation, Override, Situation, decide, short
from tarsy.controllers.promotion.evaluations import (
    baselines,
    evaluations_of,
    next_own_run,
    suite_problem,
    superseded,
    unfinished,
)
from tarsy.kube.access import UNDECIDED, ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError
from tarsy.plan.catalog import Catalog, ResourceCatalog
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.revision.snapshot import Snapshot, SnapshotUnreadable
from tarsy.plan.revision.template import Revision, revision_of
from tarsy.resources.meta import GROUP, Condition, set_condition
from tarsy.resources.v1alpha1 import Chain, ChainStatus, EvalRun, EvalSuite
from tarsy.resources.v1alpha1.chain import Promotion
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.runs.revisions import ChainIdentity, KnownRevision, Revisions, RevisionState

PROMOTE = "promote"
"""Verb on Chains that lets a revision serve without a passed evaluation."""

CHECK_SECONDS = 30.0
"""Seconds until a candidate is looked at again, beside the events of its EvalRun and suite."""


async def with_promotion(
    status: ChainStatus, chain: Chain, revisions: Revisions, context: ReconcileContext, now: datetime
) -> tuple[ChainStatus, float | None]:
    """Adds revisions and the condition `Promoted` to the status of a Chain.

    Args:
        status: the status without them.
        chain: the Chain.
        revisions: the stored revisions.
        context: of the reconcile.
        now: the current time.

    Returns:
        The status, and the seconds until the next look.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: the revisions could not be read or written.
    """
    promotion = chain.spec.promotion
    if promotion is None:
        if chain.status.serving_revision is not None:
            await revisions.forget(chain.metadata.uid)
        kept = tuple(item for item in status.conditions if item.type != ConditionType.PROMOTED)
        return status.model_copy(update={"conditions": kept}), None
    current, problem = _current(chain, context)
    known = await _known(chain, revisions, current, context)
    baseline = await _baseline(chain, promotion, known, context)
    found = await _situation(chain, promotion, current, known, baseline, context)
    if current is None and problem:
        found = _with_problem(found, problem)
    decision = decide(found)
    await _store(chain, decision, current, found, revisions, context)
    if promotion.policy == "WhenPassed":
        await _evaluate(chain, promotion, decision, current, baseline, context)
    return _status(status, chain, decision, current, now), None if decision.promoted else CHECK_SECONDS


def _current(chain: Chain, context: ReconcileContext) -> tuple[Revision | None, str]:
    try:
        return revision_of(chain, context.cache, context.settings.library_namespace or None), ""
    except PlanInvalid as invalid:
        return None, str(invalid)


def _with_problem(found: Situation, problem: str) -> Situation:
    return Situation(
        policy=found.policy, suite=found.suite, current=None, known=found.known, plan_problem=f"{problem}."
    )


async def _known(
    chain: Chain, revisions: Revisions, current: Revision | None, context: ReconcileContext
) -> list[KnownRevision]:
    """Reads the stored revisions; the serving one is renamed if only a new release computes another digest."""
    uid = chain.metadata.uid
    known = await revisions.known(uid)
    serving = next((one for one in known if one.state is RevisionState.SERVING), None)
    if current is None or serving is None or serving.digest == current.digest:
        return known
    stored = await revisions.serving(uid)
    if stored is None or _digest(stored[1], context) != current.digest:
        return known
    await revisions.rename_serving(uid, current.digest)
    return await revisions.known(uid)


def _digest(objects: str, context: ReconcileContext) -> str | None:
    """Computes the digest of stored objects as this release plans them; None: it cannot."""
    try:
        snapshot = Snapshot.load(objects)
        catalog: Catalog = ResourceCatalog(snapshot.objects.values())
        return revision_of(snapshot.chain, catalog, context.settings.library_namespace or None).digest
    except (SnapshotUnreadable, PlanInvalid):
        return None


async def _situation(
    chain: Chain,
    promotion: Promotion,
    current: Revision | None,
    known: list[KnownRevision],
    baseline: str | None,
    context: ReconcileContext,
) -> Situation:
    name = promotion.suite_ref.name if promotion.suite_ref is not None else ""
    suite = context.cache.get(EvalSuite, chain.metadata.namespace, name) if name else None
    evaluations: list[Evaluation] = []
    if suite is not None and current is not None:
        evaluations = evaluations_of(current.digest, suite, chain, _runs(chain, context), baseline)
    return Situation(
        policy=promotion.policy,
        suite=name,
        current=current.digest if current is not None else None,
        known=known,
        evaluations=evaluations,
        suite_problem=suite_problem(suite, name),
        override=await _override(chain, promotion, current, known, context),
        compared=baseline is not None,
    )


async def _baseline(
    chain: Chain, promotion: Promotion, known: list[KnownRevision], context: ReconcileContext
) -> str | None:
    """Finds the EvalRun that a candidate is compared with; None: no results of the serving revision are stored."""
    serving = next((one for one in known if one.state is RevisionState.SERVING), None)
    name, evals = promotion.suite_ref.name if promotion.suite_ref is not None else "", context.store.evals
    suite = context.cache.get(EvalSuite, chain.metadata.namespace, name) if name else None
    if serving is None or suite is None or evals is None:
        return None
    for run in baselines(serving, suite, chain, _runs(chain, context)):
        record = await evals.run(UUID(run.metadata.uid))
        if record is not None and record.verdict not in (None, "Cancelled"):
            return run.metadata.name
    return None


def _runs(chain: Chain, context: ReconcileContext) -> list[EvalRun]:
    return list(context.cache.list(EvalRun, chain.metadata.namespace))


async def _override(
    chain: Chain,
    promotion: Promotion,
    current: Revision | None,
    known: list[KnownRevision],
    context: ReconcileContext,
) -> Override | None:
    """Reads the override; the API is asked about its author only if it names the candidate."""
    wanted = promotion.override
    if wanted is None or current is None:
        return None
    by = wanted.author.username if wanted.author is not None else ""
    serves = any(one.digest == current.digest and one.state is RevisionState.SERVING for one in known)
    if serves or wanted.revision != short(current.digest):
        return Override(wanted.revision, by)
    if wanted.author is None:
        refusal = (
            "its author is unknown; install the admission webhook (manifests/base/admission.yaml), and set it again"
        )
        return Override(wanted.revision, by, refusal)
    subject = Subject(wanted.author.username, wanted.author.uid or "", wanted.author.groups)
    meta = chain.metadata
    what = ResourceAttributes(PROMOTE, GROUP, Chain.PLURAL, namespace=meta.namespace, name=meta.name)
    try:
        allowed = await may(context.kubernetes.client, subject, what)
    except ApiError as error:
        if error.reason != UNDECIDED:
            raise
        allowed = False
    if allowed:
        return Override(wanted.revision, by)
    refusal = (
        f"{by} may not promote {chain}; in namespace {meta.namespace} grant them a role with the verb {PROMOTE} on "
        f"{Chain.PLURAL}.{GROUP} {meta.name}, such as tarsy-promoter"
    )
    return Override(wanted.revision, by, refusal)


async def _store(
    chain: Chain,
    decision: Decision,
    current: Revision | None,
    found: Situation,
    revisions: Revisions,
    context: ReconcileContext,
) -> None:
    """Stores what was decided about the current revision, if it is new."""
    if decision.state is None or current is None:
        return
    before = next((one for one in found.known if one.digest == current.digest), None)
    author = _author(chain) if decision.reason == "Overridden" else None
    wanted = KnownRevision(
        digest=current.digest,
        generation=chain.metadata.generation,
        state=decision.state,
        reason=decision.reason,
        eval_run=decision.eval_run,
        author=author,
    )
    if before == wanted:
        return
    if decision.reason == "FirstRevision":
        await require_current(current.snapshot, context)
    meta = chain.metadata
    await revisions.put(ChainIdentity(meta.uid, meta.namespace, meta.name), wanted, current.snapshot.dump())
    if before is None or before.state is not decision.state:
        await _tell(chain, decision, context)


async def _tell(chain: Chain, decision: Decision, context: ReconcileContext) -> None:
    if decision.state is RevisionState.SERVING:
        await context.kubernetes.events.tell(chain, "RevisionServes", decision.message)
    elif decision.state is RevisionState.REJECTED:
        await context.kubernetes.events.tell(chain, "RevisionRejected", decision.message, kind="Warning")


def _author(chain: Chain) -> Mapping[str, Any] | None:
    override = chain.spec.promotion.override if chain.spec.promotion is not None else None
    return override.author.to_dict() if override is not None and override.author is not None else None


async def _evaluate(
    chain: Chain,
    promotion: Promotion,
    decision: Decision,
    current: Revision | None,
    baseline: str | None,
    context: ReconcileContext,
) -> None:
    """Cancels the EvalRuns of superseded revisions, then creates that of the current one: one at a time a Chain."""
    client, cache, meta = context.kubernetes.client, context.cache, chain.metadata
    digest = current.digest if current is not None else ""
    open_runs = unfinished(chain, _runs(chain, context))
    for run in superseded(open_runs, digest, baseline):
        body = {"spec": {"desiredState": "Cancelled"}}
        cache.put(await client.patch(EvalRun.KIND, meta.namespace, run.metadata.name, body))
    suite = cache.get(EvalSuite, meta.namespace, promotion.suite_ref.name) if promotion.suite_ref is not None else None
    if not decision.evaluate or suite is None or open_runs or not digest:
        return
    body = next_own_run(digest, suite, chain, baseline, _runs(chain, context))
    try:
        cache.put(await client.create(body))
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def _status(
    status: ChainStatus, chain: Chain, decision: Decision, current: Revision | None, now: datetime
) -> ChainStatus:
    condition = Condition(
        type=ConditionType.PROMOTED,
        status="True" if decision.promoted else "False",
        reason=decision.reason,
        message=decision.message,
        observed_generation=chain.metadata.generation,
    )
    waits = current is not None and current.digest != decision.serving
    return status.model_copy(
        update={
            "conditions": set_condition(status.conditions, condition, now),
            "serving_revision": short(decision.serving) if decision.serving is not None else None,
            "candidate_revision": short(current.digest) if current is not None and waits else None,
        }
    )
