"""Tests which samples start next, when a budget is reached, and the coverage of a replay."""

from decimal import Decimal
from uuid import uuid4

import pytest

from tarsy.controllers.evals.samples import coverage, next_samples, sample_name, spent
from tarsy.evals.cases import EvalTerms, FrozenCase
from tarsy.resources.v1alpha1 import EvalRun
from tarsy.resources.v1alpha1.eval_suite import EvalBudget
from tarsy.resources.v1alpha1.expectation import Expectation, Gate
from tarsy.store.judging.eval_rows import BegunSample, EvalUsage, RecordedToolCall

EXPECT = Expectation(verdict="Cause")


def terms(samples: int = 2, parallelism: int = 3) -> EvalTerms:
    cases = tuple(FrozenCase(name=name, recording=name, digest=name, expect=EXPECT) for name in ("a", "b"))
    return EvalTerms(cases=cases, samples=samples, parallelism=parallelism, gate=Gate())


def begun(case: str, sample: int, ended: bool = False) -> BegunSample:
    return BegunSample(case, sample, uuid4(), ended)


def test_each_case_has_its_first_sample_before_any_has_a_second() -> None:
    assert [(case.name, n) for case, n in next_samples(terms(), [])] == [("a", 0), ("b", 0), ("a", 1)]


@pytest.mark.parametrize(("unfinished", "started"), [(1, 2), (2, 1), (3, 0), (4, 0)])
def test_parallelism_at_below_and_above(unfinished: int, started: int) -> None:
    running = [begun("a", n) for n in range(unfinished)]
    assert len(next_samples(terms(samples=9), running)) == started


def test_nothing_is_left_when_all_samples_began() -> None:
    all_begun = [begun(case, n, ended=True) for case in "ab" for n in (0, 1)]
    assert next_samples(terms(), all_begun) == []


@pytest.mark.parametrize(("tokens", "is_spent"), [(99, False), (100, True), (101, True)])
def test_tokens_at_below_and_above(tokens: int, is_spent: bool) -> None:
    assert (spent(EvalBudget(tokens=100), EvalUsage(tokens, None, True)) is not None) is is_spent


@pytest.mark.parametrize(("cost", "is_spent"), [("0.99", False), ("1", True), ("1.01", True), (None, False)])
def test_cost_at_below_and_above(cost: str | None, is_spent: bool) -> None:
    known = None if cost is None else Decimal(cost)
    assert (spent(EvalBudget(cost_usd=1.0), EvalUsage(0, known, True)) is not None) is is_spent


def test_budget_of_unknown_cost_is_reached_at_once() -> None:
    assert "set rates" in (spent(EvalBudget(cost_usd=1.0), EvalUsage(0, None, False)) or "")
    assert spent(None, EvalUsage(10**9, None, False)) is None


def test_coverage_counts_answers_of_the_recording() -> None:
    calls = [RecordedToolCall("kube.get", False, rung) for rung in ("exact", "normalised", "derived", "miss")]
    assert coverage(calls) == 0.75
    assert coverage([RecordedToolCall("kube.get", False, None)]) is None
    assert coverage([]) is None
    newer = [RecordedToolCall("kube.get", False, rung) for rung in ("exact", "something-newer")]
    assert coverage(newer) == 0.5, "an origin that only a newer version knows is not known to be the recording"


def test_name_of_a_sample_follows_from_its_run() -> None:
    spec = {"suiteRef": {"name": "s"}, "candidate": {"chainRef": {"name": "c"}}}
    meta = {"name": "n" * 80, "namespace": "shop", "uid": "one"}
    run = EvalRun.model_validate({"kind": "EvalRun", "metadata": meta, "spec": spec})
    assert sample_name(run, "a", 0) == sample_name(run, "a", 0)
    assert len({sample_name(run, case, n) for case in "ab" for n in (0, 1)}) == 4
    assert len(sample_name(run, "a", 0)) == 63
