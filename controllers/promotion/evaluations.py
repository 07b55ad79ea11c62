"""Reads the results of EvalRuns about the revisions of a Chain, and decides which EvalRun to create or cancel.

An EvalRun counts for a revision if it measured that revision with the Chain's own models, by the suite of
`spec.promotion` as it is now: one whose recordings or expectations changed since is another suite.

Decision: the name of an EvalRun that the operator creates is computed from revision and suite, so that a second
controller or a restart creates the same one; one at a time runs for a Chain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import count
from typing import Any

from tarsy.controllers.promotion.decision import SHORT, Evaluation, Verdict
from tarsy.resources.meta import API_VERSION, condition
from tarsy.resources.v1alpha1 import Chain, EvalRun, EvalSuite
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.runs.revisions import KnownRevision

PROMOTES = "tarsy.dev/promotes"
"""Label of EvalRuns that the operator created: uid of the Chain."""

OF_REVISION = "tarsy.dev/revision"
"""Annotation of EvalRuns that the operator created: digest of the revision."""

_MAX_NAME = 63
_FINISHED = ("Passed", "Regressed", "Insufficient", "Cancelled")


def suite_problem(suite: EvalSuite | None, name: str) -> tuple[str, str] | None:
    """Explains why a suite cannot evaluate, as reason and sentence; None: it can."""
    if suite is None:
        return "SuiteMissing", f"EvalSuite {name} does not exist; create it."
    ready = condition(suite.status.conditions, ConditionType.READY)
    if ready is None or ready.status == "Unknown":
        return "SuiteNotReady", f"EvalSuite {name} has not been checked yet."
    if ready.status == "False":
        return "SuiteNotReady", f"EvalSuite {name} is not Ready: {ready.message}"
    return None


def evaluations_of(
    revision: str, suite: EvalSuite, chain: Chain, runs: Iterable[EvalRun], baseline: str | None = None
) -> list[Evaluation]:
    """Returns the evaluations that count for a revision.

    One that passed without the baseline does not count: whoever may create EvalRuns could leave the comparison out.

    Args:
        revision: digest of the revision.
        suite: the suite of the Chain's promotion.
        chain: the Chain.
        runs: the EvalRuns of its namespace.
        baseline: name of the EvalRun that the revision must be compared with; None: there is none.
    """
    found = []
    for run in runs:
        if _measures(run, suite, chain) and _same_revision(run, revision) and _same_suite(run, suite):
            evaluation = _evaluation(run, own=_is_own(run, chain))
            compared = baseline is None or _baseline(run) == baseline
            if evaluation is not None and (compared or evaluation.verdict != "Passed"):
                found.append(evaluation)
    return found


def baselines(serving: KnownRevision, suite: EvalSuite, chain: Chain, runs: Iterable[EvalRun]) -> list[EvalRun]:
    """Lists the EvalRuns that a candidate may be compared with: measurements of the serving revision by the suite.

    Args:
        serving: the serving revision; the EvalRun that let it serve comes first.
        suite: the suite of the Chain's promotion.
        chain: the Chain.
        runs: the EvalRuns of its namespace.
    """
    by_name = {run.metadata.name: run for run in runs if run.spec.suite_ref.name == suite.metadata.name}
    measured = evaluations_of(serving.digest, suite, chain, by_name.values())
    passed = sorted(one.run for one in measured if one.verdict == "Passed")
    names = dict.fromkeys([serving.eval_run, *passed])
    return [by_name[name] for name in names if name in by_name]


def _baseline(run: EvalRun) -> str | None:
    return run.spec.baseline.eval_run_ref.name if run.spec.baseline is not None else None


def next_own_run(
    revision: str, suite: EvalSuite, chain: Chain, baseline: str | None, runs: Iterable[EvalRun]
) -> dict[str, Any]:
    """Builds the EvalRun that the operator creates for a revision.

    Args:
        revision: digest of the revision.
        suite: the suite; the samples run on behalf of its author.
        chain: the Chain.
        baseline: name of the EvalRun to compare with.
        runs: the EvalRuns of the namespace; a cancelled one of the same name is followed by another.
    """
    spec: dict[str, Any] = {
        "suiteRef": {"name": suite.metadata.name},
        "candidate": {"chainRef": {"name": chain.metadata.name}},
    }
    if baseline is not None:
        spec["baseline"] = {"evalRunRef": {"name": baseline}}
    if suite.spec.author is not None:
        spec["author"] = suite.spec.author.to_dict()
    name, taken = own_name(revision, suite, chain), {run.metadata.name for run in runs}
    number = next(n for n in count(1) if (name if n == 1 else f"{name}-{n}") not in taken)
    return {
        "apiVersion": API_VERSION,
        "kind": EvalRun.KIND,
        "metadata": {
            "name": name if number == 1 else f"{name}-{number}",
            "namespace": chain.metadata.namespace,
            "labels": {PROMOTES: chain.metadata.uid},
            "annotations": {OF_REVISION: revision},
        },
        "spec": spec,
    }


def own_name(revision: str, suite: EvalSuite, chain: Chain) -> str:
    """Returns the name of the EvalRun that the operator creates for a revision."""
    parts = (chain.metadata.uid, revision, suite.metadata.uid, suite.status.digest or "")
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]
    return f"{chain.metadata.name[: _MAX_NAME - 12].rstrip('-.')}-{digest}"


def unfinished(chain: Chain, runs: Iterable[EvalRun]) -> list[EvalRun]:
    """Lists the EvalRuns that the operator created for a Chain and that have not finished."""
    return [run for run in runs if _is_own(run, chain) and run.status.phase not in _FINISHED]


def superseded(runs: Iterable[EvalRun], revision: str, baseline: str | None = None) -> list[EvalRun]:
    """Lists the EvalRuns that measure something else than is to be measured now, and are not cancelled yet.

    One that has begun compares with results that are frozen. One that has not would wait for ever for a baseline that
    was deleted.

    Args:
        runs: unfinished EvalRuns that the operator created.
        revision: digest of the current revision.
        baseline: name of the EvalRun that it must be compared with; None: there is none.
    """
    return [
        run
        for run in runs
        if run.spec.desired_state != "Cancelled"
        and (
            run.metadata.annotations.get(OF_REVISION) != revision
            or (run.status.candidate is None and _baseline(run) != baseline)
        )
    ]


def _is_own(run: EvalRun, chain: Chain) -> bool:
    return run.metadata.labels.get(PROMOTES) == chain.metadata.uid


def _measures(run: EvalRun, suite: EvalSuite, chain: Chain) -> bool:
    measured = run.status.candidate
    return (
        run.spec.suite_ref.name == suite.metadata.name
        and run.spec.candidate.chain_ref.name == chain.metadata.name
        and run.spec.candidate.llm_provider_ref is None
        and (measured is None or measured.chain_namespace in (None, chain.metadata.namespace))
    )


def _same_revision(run: EvalRun, revision: str) -> bool:
    """Whether a run measured a revision; one that has not started measures the current objects."""
    measured = run.status.candidate.revision if run.status.candidate is not None else None
    if measured is None:
        return run.status.phase in (None, "Pending") and run.spec.desired_state == "Running"
    return len(measured) >= SHORT and revision.startswith(measured)


def _same_suite(run: EvalRun, suite: EvalSuite) -> bool:
    return run.status.suite_digest in (None, suite.status.digest)


def _evaluation(run: EvalRun, *, own: bool) -> Evaluation | None:
    status, name = run.status, run.metadata.name
    match status.phase:
        case "Passed" | "Regressed" | "Insufficient":
            verdict: Verdict = status.phase
            return Evaluation(verdict, name, status.summary or "", status.failed_cases, own)
        case "Cancelled":
            return None
        case None | "Pending":
            complete = condition(status.conditions, ConditionType.COMPLETE)
            if complete is not None and complete.status == "False":
                return Evaluation("Blocked", name, complete.message, own=own)
    return Evaluation("Running", name, own=own)
