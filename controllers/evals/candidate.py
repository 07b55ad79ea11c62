"""Resolves what an EvalRun needs before it begins, and freezes its terms.

Watches: nothing of its own. Decides: whether suite, candidate and baseline can be used, and whether the author may run
the candidate and read what the cases were made of. Writes: nothing.
"""

from collections.abc import Sequence
from uuid import UUID

from tarsy.controllers.evals.judge_provider import find_judge
from tarsy.controllers.evals.judging import agreement_of
from tarsy.controllers.evals.recordings import source_field
from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.readiness.provider_checks import provider_plan_of
from tarsy.controllers.runs.authorization import authorization_refusal
from tarsy.controllers.runs.inputs import NotYet
from tarsy.controllers.runs.replay import source_reads
from tarsy.evals.cases import FrozenJudge, FrozenSamples, freeze, freeze_judge, read_known_terms
from tarsy.plan.errors import PlanInvalid
from tarsy.plan.reach import read_plan
from tarsy.plan.revision.template import revision_of
from tarsy.plan.select import search_path
from tarsy.plan.what_if import is_stranger
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1 import Chain, EvalRun, EvalSuite, LLMProvider
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.judging.eval_rows import NewEvalRun
from tarsy.store.judging.evals import Evals

REVISION_DIGITS = 16
"""Hexadecimal digits of a revision in a status."""


def find_chain(run: EvalRun, context: ReconcileContext) -> Chain:
    """Returns the Chain of a candidate.

    Raises:
        NotYet: there is none.
    """
    name = run.spec.candidate.chain_ref.name
    for place in search_path(run.metadata.namespace, context.settings.library_namespace):
        if (chain := context.cache.get(Chain, place, name)) is not None:
            return chain
    where = f"spec.candidate.chainRef.name: Chain {run.metadata.namespace}/{name}"
    raise NotYet("ChainMissing", f"{where} does not exist; create it, or name another")


def revision(chain: Chain, context: ReconcileContext) -> str:
    """Returns the revision of a Chain as its objects are now.

    Raises:
        NotYet: the Chain cannot be planned.
    """
    try:
        found = revision_of(chain, context.cache, context.settings.library_namespace)
    except PlanInvalid as error:
        raise NotYet("PlanInvalid", "; ".join(str(one) for one in error.errors)) from error
    return found.digest[:REVISION_DIGITS]


async def prepare(run: EvalRun, evals: Evals, context: ReconcileContext) -> NewEvalRun:
    """Resolves suite, candidate and baseline of an EvalRun, and freezes its terms.

    Args:
        run: the object.
        evals: the stored cases and results.
        context: of the reconcile.

    Raises:
        NotYet: one of them cannot be used; the message names the field and the remedy.
    """
    meta = run.metadata
    suite = _suite(run, context)
    chain = find_chain(run, context)
    reads = [
        read
        for index, case in enumerate(suite.spec.cases)
        for read in source_reads(case.source, source_field(suite, index))
    ]
    refused = await authorization_refusal(
        run.spec.author,
        [Key(chain.KIND, chain.metadata.namespace, chain.metadata.name), *_judge_key(suite)],
        context.kubernetes.client,
        required=context.settings.require_author,
        reads={read.what: read for read in reads}.values(),
    )
    if refused is not None:
        raise NotYet(*refused)
    stored = await evals.cases(UUID(suite.metadata.uid))
    baseline = await _baseline(run, evals, context)
    provider = run.spec.candidate.llm_provider_ref
    terms = freeze(
        suite.spec,
        {name: case.digest for name, case in stored.items()},
        baseline[1] if baseline is not None else None,
        provider.name if provider is not None else None,
        await _judge(suite, evals, context),
    )
    namespace = (await context.kubernetes.client.find("Namespace", None, meta.namespace) or {}).get("metadata", {})
    return NewEvalRun(
        id=UUID(meta.uid),
        namespace=meta.namespace,
        namespace_uid=namespace.get("uid", ""),
        name=meta.name,
        suite=UUID(suite.metadata.uid),
        suite_name=suite.metadata.name,
        suite_digest=suite.status.digest or "",
        terms=terms.dump(),
        chain=chain.metadata.name,
        chain_namespace=chain.metadata.namespace,
        revision=revision(chain, context),
        baseline=baseline[0] if baseline is not None else None,
    )


def _judge_key(suite: EvalSuite) -> Sequence[Key]:
    """Returns the LLMProvider of the judge of a suite, which the author of a run must be allowed to use."""
    judge = suite.spec.judge
    return () if judge is None else (Key(LLMProvider.KIND, suite.metadata.namespace, judge.llm_provider_ref.name),)


async def _judge(suite: EvalSuite, evals: Evals, context: ReconcileContext) -> FrozenJudge | None:
    """Freezes the judge of a suite.

    A finding tells what the recorded results say, so it may go where these may go, and nowhere else.
    """
    judge = suite.spec.judge
    if judge is None:
        return None
    plan = provider_plan_of(find_judge(suite, context.cache))
    for case, recorded in sorted((await evals.case_plans(UUID(suite.metadata.uid))).items()):
        if is_stranger(plan, source := read_plan(recorded)):
            raise NotYet(
                "ProviderNotAllowed",
                f"spec.suiteRef.name: EvalSuite {suite.metadata.namespace}/{suite.metadata.name}: spec.judge."
                f"llmProviderRef.name: tools of namespace {source.chain.namespace} answered the recorded calls of case "
                f"{case} with its rights, so findings about them may only be sent to LLMProviders of that namespace; "
                "remove the case or the judge",
            )
    labels = {case.name: case.labels for case in suite.spec.cases if case.labels}
    return freeze_judge(judge, plan, labels, context.mask)


def _suite(run: EvalRun, context: ReconcileContext) -> EvalSuite:
    namespace, name = run.metadata.namespace, run.spec.suite_ref.name
    where = f"spec.suiteRef.name: EvalSuite {namespace}/{name}"
    suite = context.cache.get(EvalSuite, namespace, name)
    if suite is None:
        raise NotYet("SuiteMissing", f"{where} does not exist or is invalid; create it, or name another")
    ready = condition(suite.status.conditions, ConditionType.READY)
    if ready is None or suite.status.observed_generation != suite.metadata.generation:
        raise NotYet("SuiteNotReady", f"{where} has not been checked yet")
    if ready.status != "True":
        raise NotYet("SuiteNotReady", f"{where} is not Ready: {ready.message}")
    return suite


async def _baseline(
    run: EvalRun, evals: Evals, context: ReconcileContext
) -> tuple[UUID, tuple[FrozenSamples, ...]] | None:
    if run.spec.baseline is None:
        return None
    namespace, name = run.metadata.namespace, run.spec.baseline.eval_run_ref.name
    where = f"spec.baseline.evalRunRef.name: EvalRun {namespace}/{name}"
    found = context.cache.get(EvalRun, namespace, name)
    if found is None:
        raise NotYet("BaselineMissing", f"{where} does not exist; create it, or name another")
    if found.spec.suite_ref.name != run.spec.suite_ref.name:
        raise NotYet("BaselineOfAnotherSuite", f"{where} was measured with another suite; name one of this suite")
    record = await evals.run(UUID(found.metadata.uid))
    if record is None and found.status.finished_at is not None:
        text = f"{where} has no stored results any more; create a new EvalRun with another baseline, or without one"
        raise NotYet("BaselineExpired", text)
    if record is None or record.finished_at is None:
        raise NotYet("BaselineNotFinished", f"{where} has not finished; wait for it, or name another")
    if record.verdict == "Cancelled":
        raise NotYet("BaselineCancelled", f"{where} was cancelled; name one that finished")
    terms = read_known_terms(record.terms)
    agreement = agreement_of(record)
    totals = {one.name: one for one in await evals.by_case(record.id)}
    frozen = tuple(
        FrozenSamples(
            name=case.name,
            digest=terms.digest_of(case, gates=agreement is not None and agreement.gates),
            passed=totals[case.name].passed,
            failed=totals[case.name].failed,
            inconclusive=totals[case.name].inconclusive,
            asked=terms.samples,
        )
        for case in terms.cases
        if case.name in totals
    )
    return record.id, frozen
