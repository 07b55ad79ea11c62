"""Tests the decision about the revision that serves, as a table, and which EvalRuns count for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from for_each import for_each
from tarsy.controllers.promotion.decision import Evaluation, Override, Situation, decide
from tarsy.controllers.promotion.evaluations import (
    OF_REVISION,
    PROMOTES,
    baselines,
    evaluations_of,
    next_own_run,
    own_name,
    suite_problem,
    superseded,
    unfinished,
)
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import Chain, EvalRun, EvalSuite
from tarsy.store.runs.revisions import KnownRevision, RevisionState
from unit.controllers.builders import UID, raw

OLD, NEW = "a" * 64, "b" * 64
CANDIDATE, SERVING, REJECTED, RETIRED = RevisionState
SERVES = KnownRevision(OLD, 1, SERVING, "FirstRevision")
PUSHED = Situation("WhenPassed", "nightly", NEW, (SERVES,))


def evaluation(verdict: Any, run: str = "pods-1", **rest: Any) -> Evaluation:
    return Evaluation(verdict, run, **rest)


def own(verdict: Any) -> Evaluation:
    return evaluation(verdict, "pods-own", own=True)


@for_each(
    ("found", "serves", "promoted", "reason", "state", "evaluate"),
    [
        (replace(PUSHED, known=()), NEW, True, "FirstRevision", SERVING, False),
        (replace(PUSHED, current=OLD), OLD, True, "FirstRevision", None, False),
        (PUSHED, OLD, False, "Evaluating", CANDIDATE, True),
        (replace(PUSHED, evaluations=(evaluation("Running"),)), OLD, False, "Evaluating", CANDIDATE, False),
        (replace(PUSHED, evaluations=(evaluation("Passed"),)), NEW, True, "Passed", SERVING, False),
        (replace(PUSHED, evaluations=(evaluation("Regressed"),)), OLD, False, "Regressed", REJECTED, False),
        (replace(PUSHED, evaluations=(own("Insufficient"),)), OLD, False, "Insufficient", CANDIDATE, False),
        (replace(PUSHED, evaluations=(own("Blocked"),)), OLD, False, "EvaluationBlocked", CANDIDATE, False),
        (replace(PUSHED, evaluations=(evaluation("Insufficient"),)), OLD, False, "Evaluating", CANDIDATE, True),
        (replace(PUSHED, evaluations=(evaluation("Blocked"),)), OLD, False, "Evaluating", CANDIDATE, True),
        (
            replace(PUSHED, evaluations=(evaluation("Insufficient"), own("Running"))),
            OLD,
            False,
            "Evaluating",
            CANDIDATE,
            False,
        ),
        (
            replace(PUSHED, evaluations=(evaluation("Insufficient"),), suite_problem=("SuiteMissing", "None.")),
            OLD,
            False,
            "Insufficient",
            CANDIDATE,
            False,
        ),
        (
            replace(PUSHED, evaluations=(evaluation("Passed", "a"), evaluation("Regressed", "b"))),
            OLD,
            False,
            "Regressed",
            REJECTED,
            False,
        ),
        (
            replace(PUSHED, evaluations=(evaluation("Insufficient", "a"), evaluation("Passed", "b"))),
            NEW,
            True,
            "Passed",
            SERVING,
            False,
        ),
        (replace(PUSHED, suite_problem=("SuiteMissing", "None.")), OLD, False, "SuiteMissing", CANDIDATE, False),
        (replace(PUSHED, current=None), OLD, False, "PlanInvalid", None, False),
        (replace(PUSHED, current=None, known=()), None, False, "PlanInvalid", None, False),
        (replace(PUSHED, policy="Immediate"), NEW, True, "Immediate", SERVING, False),
        (replace(PUSHED, policy="Immediate", current=None), OLD, False, "PlanInvalid", None, False),
        (replace(PUSHED, override=Override("b" * 16, "jane")), NEW, True, "Overridden", SERVING, False),
        (replace(PUSHED, override=Override("c" * 16, "jane")), OLD, False, "Evaluating", CANDIDATE, True),
        (replace(PUSHED, override=Override("b" * 16, "eve", "eve may not")), OLD, False, "Evaluating", CANDIDATE, True),
        (
            replace(PUSHED, override=Override("b" * 16, "jane"), evaluations=(evaluation("Regressed"),)),
            NEW,
            True,
            "Overridden",
            SERVING,
            False,
        ),
        (
            replace(PUSHED, known=(SERVES, KnownRevision(NEW, 1, RETIRED, "Passed", "pods-0"))),
            NEW,
            True,
            "ServedBefore",
            SERVING,
            False,
        ),
        (
            replace(
                PUSHED,
                known=(SERVES, KnownRevision(NEW, 1, RETIRED, "FirstRevision")),
                evaluations=(evaluation("Regressed"),),
            ),
            OLD,
            False,
            "Regressed",
            REJECTED,
            False,
        ),
        (
            replace(PUSHED, known=(SERVES, KnownRevision(NEW, 1, REJECTED, "Regressed", "pods-0"))),
            OLD,
            False,
            "Evaluating",
            CANDIDATE,
            True,
        ),
    ],
)
def test_which_revision_serves(
    found: Situation, serves: str | None, promoted: bool, reason: str, state: RevisionState | None, evaluate: bool
) -> None:
    decision = decide(found)
    assert (decision.serving, decision.promoted, decision.reason) == (serves, promoted, reason)
    assert (decision.state, decision.evaluate) == (state, evaluate)


def test_the_condition_names_the_failed_cases_and_the_remedy() -> None:
    cases = tuple(f"case-{number}" for number in range(12))
    message = decide(replace(PUSHED, evaluations=(evaluation("Regressed", cases=cases),))).message
    assert "New runs use revision aaaaaaaaaaaaaaaa." in message
    assert "case-9 and 2 more." in message and "case-10" not in message
    assert "set spec.promotion.override.revision to bbbbbbbbbbbbbbbb" in message


def test_an_override_that_does_not_count_is_explained() -> None:
    refused = decide(replace(PUSHED, override=Override("b" * 16, "eve", "eve may not promote")))
    assert "spec.promotion.override does not count: eve may not promote." in refused.message
    other = decide(replace(PUSHED, override=Override("c" * 16, "jane")))
    assert "it names revision cccccccccccccccc" in other.message


def test_a_serving_revision_tells_how_it_came_to_serve() -> None:
    by_hand = KnownRevision(NEW, 2, SERVING, "Overridden", author={"username": "jane"})
    assert "jane permitted it to serve" in decide(replace(PUSHED, known=(by_hand,))).message


CHAIN = parse_as(Chain, raw("Chain", "pods", {"stages": [{"name": "look", "agents": [{"name": "triage"}]}]}))


def suite(digest: str = "s1", ready: str = "True") -> EvalSuite:
    status = {"digest": digest, "conditions": [{"type": "Ready", "status": ready, "reason": "R", "message": "Why."}]}
    return parse_as(EvalSuite, raw("EvalSuite", "nightly", {"cases": []}, status))


def run(name: str = "r", phase: str | None = "Passed", revision: str | None = NEW, **changes: Any) -> EvalRun:
    spec = {"suiteRef": {"name": "nightly"}, "candidate": {"chainRef": {"name": "pods"}}} | changes.pop("spec", {})
    status: dict[str, Any] = {"phase": phase, "suiteDigest": "s1"} | changes.pop("status", {})
    if revision is not None:
        status["candidate"] = {"chain": "pods", "chainNamespace": "team-a", "revision": revision}
    status = {key: value for key, value in status.items() if value is not None}
    return parse_as(EvalRun, raw("EvalRun", name, spec, status, **changes))


OTHER_SUITE = {"suiteRef": {"name": "easy"}}


def verdicts(*runs: EvalRun, of: EvalSuite | None = None) -> list[str]:
    return [one.verdict for one in evaluations_of(NEW, of or suite(), CHAIN, runs)]


@for_each(
    ("measured", "counts"),
    [
        (run(), ["Passed"]),
        (run(revision=NEW[:16]), ["Passed"]),
        (run(revision=NEW[:15]), []),
        (run(revision=OLD), []),
        (run(phase="Regressed"), ["Regressed"]),
        (run(phase="Insufficient"), ["Insufficient"]),
        (run(phase="Cancelled"), []),
        (run(phase="Running"), ["Running"]),
        (run(phase="Pending", revision=None, status={"suiteDigest": None}), ["Running"]),
        (run(phase="Passed", revision=None), []),
        (run(status={"suiteDigest": "s0"}), []),
        (run(spec={"suiteRef": {"name": "easy"}}), []),
        (run(spec={"candidate": {"chainRef": {"name": "other"}}}), []),
        (run(spec={"candidate": {"chainRef": {"name": "pods"}, "llmProviderRef": {"name": "better"}}}), []),
        (
            run(
                phase="Pending",
                revision=None,
                status={"conditions": [{"type": "Complete", "status": "False", "reason": "Forbidden"}]},
            ),
            ["Blocked"],
        ),
    ],
)
def test_which_evaluations_count_for_a_revision(measured: EvalRun, counts: list[str]) -> None:
    assert verdicts(measured) == counts


@pytest.mark.parametrize(
    ("against", "baseline", "counts"),
    [
        (None, None, ["Passed", "Regressed"]),
        ("base", None, ["Passed", "Regressed"]),
        ("base", "base", ["Passed", "Regressed"]),
        (None, "base", ["Regressed"]),
        ("worse", "base", ["Regressed"]),
    ],
)
def test_an_evaluation_without_the_baseline_passes_nothing(
    against: str | None, baseline: str | None, counts: list[str]
) -> None:
    spec = {"baseline": {"evalRunRef": {"name": against}}} if against is not None else {}
    runs = [run(phase=phase, spec=spec) for phase in ("Passed", "Regressed")]
    found = evaluations_of(NEW, suite(), CHAIN, runs, baseline)
    assert [one.verdict for one in found] == counts


def test_a_candidate_is_compared_with_what_let_the_serving_revision_serve() -> None:
    runs = [run("b"), run("a"), run("old", revision=OLD), run("r", "Regressed"), run("c", spec=OTHER_SUITE)]
    served = replace(SERVES, digest=NEW)
    assert [one.metadata.name for one in baselines(served, suite(), CHAIN, runs)] == ["a", "b"]
    for decided, first in (("b", "b"), ("old", "old"), ("c", "a"), ("gone", "a")):
        assert baselines(replace(served, eval_run=decided), suite(), CHAIN, runs)[0].metadata.name == first


@pytest.mark.parametrize(
    ("found", "reason"),
    [(None, "SuiteMissing"), (suite(ready="False"), "SuiteNotReady"), (suite(ready="Unknown"), "SuiteNotReady")],
)
def test_a_suite_that_cannot_evaluate_says_why(found: EvalSuite | None, reason: str) -> None:
    problem = suite_problem(found, "nightly")
    assert problem is not None and problem[0] == reason
    assert suite_problem(suite(), "nightly") is None


def test_the_name_of_an_evaluation_follows_from_revision_and_suite() -> None:
    first = next_own_run(NEW, suite(), CHAIN, None, [])
    assert first == next_own_run(NEW, suite(), CHAIN, None, [])
    assert first["metadata"]["labels"] == {PROMOTES: UID}
    names = {own_name(NEW, suite(), CHAIN), own_name(OLD, suite(), CHAIN), own_name(NEW, suite("s2"), CHAIN)}
    assert len(names) == 3
    again = next_own_run(NEW, suite(), CHAIN, "base", [run(first["metadata"]["name"], "Cancelled")])
    assert again["metadata"]["name"] == first["metadata"]["name"] + "-2"
    assert again["spec"]["baseline"] == {"evalRunRef": {"name": "base"}}
    parse_as(EvalRun, again)


def test_condition_says_that_a_candidate_is_compared_with_nothing() -> None:
    for evaluations in ((), (own("Running"),)):
        found = replace(PUSHED, evaluations=evaluations)
        assert "No results of the serving revision are stored" in decide(replace(found, compared=False)).message
        assert "No results" not in decide(found).message


def test_evaluation_that_waits_for_a_baseline_which_is_gone_is_superseded() -> None:
    mine: dict[str, Any] = {"labels": {PROMOTES: UID}, "annotations": {OF_REVISION: NEW}}
    against: dict[str, Any] = {"spec": {"baseline": {"evalRunRef": {"name": "gone"}}}}
    waits = run("waits", "Pending", None, **mine, **against)
    begun = run("begun", "Running", NEW, **mine, **against)
    for baseline, left in (("gone", []), ("other", ["waits"]), (None, ["waits"])):
        assert [one.metadata.name for one in superseded([waits, begun], NEW, baseline)] == left
    assert [one.own for one in evaluations_of(NEW, suite(), CHAIN, [begun, run("theirs", "Running")])] == [True, False]


def test_a_push_in_the_middle_supersedes_the_evaluation_of_the_one_before() -> None:
    mine: dict[str, Any] = {"labels": {PROMOTES: UID}}
    old = run("old", "Running", OLD, annotations={OF_REVISION: OLD}, **mine)
    new = run("new", "Running", NEW, annotations={OF_REVISION: NEW}, **mine)
    done = run("done", "Passed", OLD, annotations={OF_REVISION: OLD}, **mine)
    theirs = run("theirs", "Running", OLD)
    cancelled = run("c", "Running", OLD, annotations={OF_REVISION: OLD}, spec={"desiredState": "Cancelled"}, **mine)
    open_runs = unfinished(CHAIN, [old, new, done, theirs, cancelled])
    assert [one.metadata.name for one in open_runs] == ["old", "new", "c"]
    assert [one.metadata.name for one in superseded(open_runs, NEW)] == ["old"]
