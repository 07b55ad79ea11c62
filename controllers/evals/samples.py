"""Runs the samples of an EvalRun, which are Investigations with `spec.replay`, and judges those that have ended.

Watches: nothing of its own. Decides: which samples are created next, within the parallelism and the budget of the
suite, and the outcome of each that has ended. Writes: Investigations with names that follow from the EvalRun, and the
samples in the database. Doing it twice does it once: a crash between two steps loses nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tarsy.controllers.evals.judging import RunJudge
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.runs.acceptance import was_given_up
from tarsy.evals.cases import EvalTerms, FrozenCase
from tarsy.evals.checklist import with_judge
from tarsy.evals.expectations import Checked, FinishedRun, Judgement, MadeCall, Outcome
from tarsy.evals.expectations import judge as judge_run
from tarsy.evals.spending import budget_reached
from tarsy.kube.client import ApiError
from tarsy.record.judging.replay import Rung, covered_calls
from tarsy.record.run import InvestigationRecord, State
from tarsy.resources.meta import API_VERSION
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import EvalRun, Investigation
from tarsy.resources.v1alpha1.eval_suite import EvalBudget
from tarsy.store.judging.eval_rows import BegunSample, EndedSample, EvalRunRecord, EvalUsage, RecordedToolCall
from tarsy.store.judging.evals import Evals

RUN_LABEL = "tarsy.dev/eval-run-uid"
"""Label of an Investigation that is a sample, with the uid of its EvalRun."""

ACCEPTANCE_SECONDS = 600
KEPT_SECONDS = 86_400
"""Seconds that a sample waits to be accepted, and that its object is kept after its end."""

_NAME_LIMIT = 63


def sample_name(run: EvalRun, case: str, sample: int) -> str:
    """Builds the name of the Investigation of a sample from the EvalRun's name, and a hash; always the same."""
    digest = hashlib.sha256(f"{run.metadata.uid}/{case}/{sample}".encode()).hexdigest()[:10]
    return f"{run.metadata.name[: _NAME_LIMIT - 11].rstrip('-.')}-{digest}"


def next_samples(terms: EvalTerms, begun: Sequence[BegunSample]) -> list[tuple[FrozenCase, int]]:
    """Returns the samples to create now: first one of each case, then the second of each, within the parallelism."""
    known = {(one.case_name, one.sample) for one in begun}
    room = terms.parallelism - sum(not one.ended for one in begun)
    waiting = [
        (case, sample) for sample in range(terms.samples) for case in terms.cases if (case.name, sample) not in known
    ]
    return waiting[: max(0, room)]


def spent(budget: EvalBudget | None, usage: EvalUsage) -> str | None:
    """Returns why no further sample is started; None: the budget is not reached."""
    return budget_reached(budget, usage, whose="The", unknown="a sample is unknown; set rates on its LLMProviders")


async def create_sample(
    run: EvalRun, record: EvalRunRecord, case: FrozenCase, sample: int, evals: Evals, context: ReconcileContext
) -> None:
    """Creates the Investigation of a sample, and notes it.

    Args:
        run: the EvalRun.
        record: the same as stored.
        case: the case.
        sample: number of the sample, from 0.
        evals: the stored samples.
        context: of the reconcile.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    client, meta = context.kubernetes.client, run.metadata
    body = _body(run, record, case, sample)
    try:
        created = await client.create(body)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        created = await client.get(Investigation.KIND, meta.namespace, body["metadata"]["name"])
    found = parse_as(Investigation, created)
    await evals.add_sample(record.id, case.name, sample, UUID(found.metadata.uid))
    if meta.uid not in {owner.uid for owner in found.metadata.owner_references}:
        text = f"{found} belongs to another owner; delete it, and measure again"
        await evals.end_sample(record.id, _unclear(case.name, sample, text))


async def collect(
    run: EvalRun,
    record: EvalRunRecord,
    terms: EvalTerms,
    begun: Sequence[BegunSample],
    evals: Evals,
    context: ReconcileContext,
    judge: RunJudge | None,
) -> None:
    """Judges the samples that have ended.

    Args:
        run: the EvalRun.
        record: the same as stored.
        terms: the frozen terms.
        begun: its samples.
        evals: the stored samples.
        context: of the reconcile.
        judge: the judge of the run; None: it has none.
    """
    cases = {case.name: case for case in terms.cases}
    for one in begun:
        if one.ended or one.case_name not in cases:
            continue
        found = await context.store.reads.record(one.investigation)
        if found is None:
            why = await _why_without_record(run, one, context)
            ended = None if why is None else _unclear(one.case_name, one.sample, why)
        elif found.state.finished:
            case = cases[one.case_name]
            ended = _ended(one, found, case, await evals.made_calls(found.id), judge)
        else:
            ended = None
        if ended is not None:
            await evals.end_sample(record.id, ended)


async def cancel_samples(run: EvalRun, begun: Sequence[BegunSample], context: ReconcileContext) -> None:
    """Cancels the samples that have not ended.

    Args:
        run: the EvalRun.
        begun: its samples.
        context: of the reconcile.
    """
    for one in begun:
        if one.ended:
            continue
        name = sample_name(run, one.case_name, one.sample)
        body = {"metadata": {"uid": str(one.investigation)}, "spec": {"desiredState": "Cancelled"}}
        try:
            await context.kubernetes.client.patch(Investigation.KIND, run.metadata.namespace, name, body)
        except ApiError as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise


def finished_run(record: InvestigationRecord, calls: Sequence[RecordedToolCall]) -> FinishedRun:
    """Returns a run as it is judged.

    Args:
        record: of the finished investigation.
        calls: its tool calls.
    """
    outcome = record.outcome
    failure = outcome.failure if outcome is not None else None
    why = None
    if record.state is not State.COMPLETED:
        why = f"The run ended as {record.state.value}" + (f": {failure.message}" if failure is not None else ".")
    if any(call.rung in (Rung.SIMULATED, Rung.LIVE) for call in calls):
        why = "An answer of the replay was made up or is from a live tool, so the sample does not count."
    return FinishedRun(
        finding=outcome.finding if outcome is not None else None,
        calls=tuple(MadeCall(call.tool, call.failed) for call in calls),
        steps=record.model_calls,
        cost_usd=record.cost_usd if record.cost_complete else None,
        coverage=coverage(calls),
        failure=why,
    )


def coverage(calls: Sequence[RecordedToolCall]) -> float | None:
    """Returns the share of the replayed tool calls that the recording answered; None: no call was replayed."""
    rungs = Counter(call.rung for call in calls if call.rung is not None)
    return covered_calls(rungs) / rungs.total() if rungs else None


def _ended(
    one: BegunSample,
    record: InvestigationRecord,
    case: FrozenCase,
    calls: Sequence[RecordedToolCall],
    judge: RunJudge | None,
) -> EndedSample | None:
    """Returns the outcome of a sample; None: its judge has not answered yet. One that is unclear is not judged."""
    run = finished_run(record, calls)
    judged = judge_run(run, case.expect, case.coverage_min)
    if judge is not None and run.finding is not None and judged.outcome is not Outcome.INCONCLUSIVE:
        checks = judge.checks(one.case_name, one.sample, run.finding)
        if checks is None or judge.agreement is None:
            return None
        judged = with_judge(judged, checks, gates=judge.agreement.gates)
    return EndedSample(
        case_name=one.case_name,
        sample=one.sample,
        outcome=judged.outcome.value,
        checks=_stored(judged),
        confident_wrong=judged.confident_wrong,
        coverage=run.coverage,
        tokens=record.usage.total_tokens,
        cost_usd=record.cost_usd,
        cost_complete=record.cost_complete,
    )


def _stored(judged: Judgement) -> list[dict[str, str]]:
    return [{"name": one.name, "outcome": one.outcome.value, "sentence": one.sentence} for one in judged.checks]


def _unclear(case: str, sample: int, why: str) -> EndedSample:
    judged = Judgement(Outcome.INCONCLUSIVE, (Checked("finished", Outcome.INCONCLUSIVE, why),))
    return EndedSample(case, sample, judged.outcome.value, _stored(judged))


async def _why_without_record(run: EvalRun, one: BegunSample, context: ReconcileContext) -> str | None:
    """Explains why a sample without a record will have none; None: it may still be accepted."""
    name = sample_name(run, one.case_name, one.sample)
    raw = await context.kubernetes.client.find(Investigation.KIND, run.metadata.namespace, name)
    if raw is None or raw["metadata"]["uid"] != str(one.investigation):
        return f"Investigation {name} was deleted before it was accepted."
    found = parse_as(Investigation, raw)
    if was_given_up(found.status.conditions) or found.status.finished_at is not None:
        error = found.status.last_error
        return f"Investigation {name} was not accepted" + (f": {error.message}" if error is not None else ".")
    return None


def _body(run: EvalRun, record: EvalRunRecord, case: FrozenCase, sample: int) -> dict[str, Any]:
    meta, candidate = run.metadata, run.spec.candidate
    overrides: dict[str, Any] = {"chainRef": candidate.chain_ref.to_dict()}
    if candidate.llm_provider_ref is not None:
        overrides["llmProviderRef"] = candidate.llm_provider_ref.to_dict()
    owner = {"apiVersion": API_VERSION, "kind": run.KIND, "name": meta.name, "uid": meta.uid, "controller": True}
    spec: dict[str, Any] = {
        "replay": {
            "evalCase": {"suiteUid": str(record.suite), "name": case.name, "digest": case.recording},
            "overrides": overrides,
            "onMiss": "Refuse",
            "seed": sample,
        },
        "acceptanceTimeoutSeconds": ACCEPTANCE_SECONDS,
        "ttlSecondsAfterFinished": KEPT_SECONDS,
    }
    if run.spec.author is not None:
        spec["author"] = run.spec.author.to_dict()
    return {
        "apiVersion": API_VERSION,
        "kind": Investigation.KIND,
        "metadata": {
            "name": sample_name(run, case.name, sample),
            "namespace": meta.namespace,
            "labels": {RUN_LABEL: meta.uid},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }
