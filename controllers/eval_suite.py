"""Reconciles EvalSuites: copies their recordings, and checks that they can be used.

Watches: EvalSuites. Decides: whether each recording is stored, whether each expression is valid. Writes: the recordings
into the database, `Ready` with every error at once, the number of cases, the last verdict, and what `Scoring` did
(`tarsy.controllers.evals.scoring`).
"""

from datetime import UTC, datetime
from uuid import UUID

from tarsy.controllers.evals.judge_provider import find_judge
from tarsy.controllers.evals.recordings import store_case
from tarsy.controllers.evals.scoring_status import scoring_conditions, scoring_status
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.runs.inputs import NotYet
from tarsy.evals.cases import case_digest, suite_digest, unknown_questions
from tarsy.evals.expectations import invalid_facts
from tarsy.resources.meta import Condition, set_condition
from tarsy.resources.v1alpha1 import EvalSuite, EvalSuiteStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.eval_suite import CaseCounts
from tarsy.store.judging.evals import Evals

RECHECK_SECONDS = 30.0
"""Seconds until a suite with a missing recording is looked at again: its sources and rights are not watched."""


async def reconcile(suite: EvalSuite, evals: Evals, context: ReconcileContext) -> float | None:
    """Updates the cases and the status of a suite; returns the seconds until the next look, None when none is needed.

    Args:
        suite: the object.
        evals: the stored cases.
        context: of all reconciles.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: Postgres is unavailable.
    """
    identity = UUID(suite.metadata.uid)
    stored = await evals.cases(identity)
    namespace = await context.kubernetes.client.find("Namespace", None, suite.metadata.namespace) or {}
    namespace_uid = namespace.get("metadata", {}).get("uid", "")
    problems: list[tuple[str, str]] = []
    digests: dict[str, str] = {}
    if suite.spec.judge is not None:
        try:
            find_judge(suite, context.cache)
        except NotYet as refusal:
            problems.append((refusal.reason, refusal.message))
    for index, case in enumerate(suite.spec.cases):
        for fact, sentence in invalid_facts(case.expect):
            problems.append(
                ("FactInvalid", f"spec.cases[{index}].expect.facts[{fact}].expression: {' '.join(sentence.split())}")
            )
        if unknown := unknown_questions(suite.spec.judge, case.labels):
            text = f"no question of spec.judge.checklist is named {', '.join(unknown)}; correct it, or add the question"
            problems.append(("LabelInvalid", f"spec.cases[{index}].labels: {text}"))
        known = stored.get(case.name)
        if known is not None and known.source == case.source.to_dict():
            digests[case.name] = case_digest(known.digest, case.expect, case.coverage_min)
            continue
        try:
            recording = await store_case(suite, index, namespace_uid, evals, context)
        except NotYet as refusal:
            problems.append((refusal.reason, refusal.message))
        else:
            digests[case.name] = case_digest(recording, case.expect, case.coverage_min)
    await evals.keep_cases(identity, [case.name for case in suite.spec.cases])
    if not suite.spec.cases:
        problems.append(("NoCases", "spec.cases: a suite without cases never passes; add one"))
    last = await evals.last_finished(identity)
    conditions = set_condition(suite.status.conditions, _ready(suite, problems), datetime.now(UTC))
    status = EvalSuiteStatus(
        observed_generation=suite.metadata.generation,
        conditions=scoring_conditions(suite, conditions, context.scoring),
        cases=CaseCounts(total=len(suite.spec.cases), stored=len(digests)),
        digest=suite_digest(digests, suite.spec.judge),
        last_run=last[0] if last is not None else suite.status.last_run,
        last_verdict=last[1] if last is not None else suite.status.last_verdict,
        scoring=await scoring_status(suite, context.scoring),
    )
    await write_status(context.kubernetes.client, context.cache, suite, status)
    return RECHECK_SECONDS if problems or suite.spec.scoring is not None else None


def _ready(suite: EvalSuite, problems: list[tuple[str, str]]) -> Condition:
    message = "; ".join(sentence for _, sentence in problems)
    return Condition(
        type=ConditionType.READY,
        status="False" if problems else "True",
        reason=min(reason for reason, _ in problems) if problems else "CasesStored",
        message=message or "All recordings are stored.",
        observed_generation=suite.metadata.generation,
    )
