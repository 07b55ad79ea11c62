"""Tests the verdict on a candidate: floors, the paired comparison, and suites that say too little."""

from collections.abc import Sequence

import pytest

from tarsy.evals.expectations import Outcome
from tarsy.evals.verdict import CaseSamples, SuiteVerdict, Verdict, decide
from tarsy.resources.v1alpha1.expectation import Gate


def case(name: str, passed: int = 1, failed: int = 0, inconclusive: int = 0, **more: int | str) -> CaseSamples:
    asked = passed + failed + inconclusive
    return CaseSamples(
        name, **{"passed": passed, "failed": failed, "inconclusive": inconclusive, "asked": asked, **more}
    )  # type: ignore[arg-type]


def suite(size: int, failing: Sequence[int] = ()) -> list[CaseSamples]:
    return [case(f"case-{n:03}", int(n not in failing), int(n in failing)) for n in range(size)]


def decided(
    candidate: Sequence[CaseSamples], baseline: Sequence[CaseSamples] | None = None, **gate: float
) -> SuiteVerdict:
    names = {one.name for one in candidate}
    return decide(candidate, baseline, Gate.model_validate(gate), names)


def test_empty_suite_is_insufficient() -> None:
    found = decided([])
    assert (found.verdict, found.reasons) == (Verdict.INSUFFICIENT, ("The suite has no case.",))
    assert decided([], []).verdict is Verdict.INSUFFICIENT


def test_all_cases_passed_without_a_baseline() -> None:
    found = decided(suite(5))
    assert found.verdict is Verdict.PASSED
    assert found.pass_rate == 1.0
    assert found.power == "Without a baseline, only the floors of the gate are checked."


@pytest.mark.parametrize(
    ("failing", "verdict"), [(1, Verdict.PASSED), (2, Verdict.PASSED), (3, Verdict.REGRESSED), (10, Verdict.REGRESSED)]
)
def test_pass_rate_at_below_and_above_its_floor(failing: int, verdict: Verdict) -> None:
    assert decided(suite(10, range(failing)), passRateMin=0.8).verdict is verdict


@pytest.mark.parametrize(
    ("wrong", "most", "verdict"), [(0, 0, Verdict.PASSED), (1, 0, Verdict.REGRESSED), (1, 1, Verdict.PASSED)]
)
def test_confidently_wrong_samples_at_and_above_their_limit(wrong: int, most: int, verdict: Verdict) -> None:
    cases = [*suite(9), case("wrong", 2, 1, confident_wrong=wrong)]
    assert decided(cases, confidentWrongMax=most).verdict is verdict


@pytest.mark.parametrize(
    ("newly_failing", "verdict"), [(5, Verdict.PASSED), (6, Verdict.REGRESSED), (7, Verdict.REGRESSED)]
)
def test_paired_comparison_tells_a_regression_from_six_to_none_on(newly_failing: int, verdict: Verdict) -> None:
    """Six discordant pairs to none have p = 0.031, five have p = 0.0625."""
    found = decided(suite(60, range(newly_failing)), suite(60))
    assert found.verdict is verdict
    assert len(found.regressed) == newly_failing


def test_cases_that_improve_weigh_against_those_that_regress() -> None:
    found = decided(suite(60, range(6)), suite(60, range(6, 12)))
    assert found.verdict is Verdict.PASSED
    assert found.p_value == 1.0
    assert decided(suite(60), suite(60, range(10))).verdict is Verdict.PASSED


def test_smaller_alpha_needs_more_evidence() -> None:
    assert decided(suite(60, range(6)), suite(60), alpha=0.01).verdict is Verdict.PASSED
    assert decided(suite(60, range(8)), suite(60), alpha=0.01).verdict is Verdict.REGRESSED


def test_suite_that_lost_a_case_of_the_baseline_is_insufficient() -> None:
    found = decided(suite(9), suite(10))
    assert found.verdict is Verdict.INSUFFICIENT
    assert found.reasons[0] == (
        "The suite has shrunken: 1 case of the baseline is not in it any more: case-009. Restore it, or measure the "
        "baseline again."
    )
    assert decided(suite(10), suite(9)).verdict is Verdict.PASSED


def test_case_that_was_not_run_is_insufficient() -> None:
    found = decide(suite(9), None, Gate(), {one.name for one in suite(10)})
    assert found.verdict is Verdict.INSUFFICIENT
    assert found.reasons == ("1 case of the suite was not run: case-009.",)


def test_missing_samples_are_insufficient() -> None:
    found = decided([*suite(9), case("short", 2, asked=3)])
    assert found.verdict is Verdict.INSUFFICIENT
    assert found.reasons == ("1 case has fewer samples than the suite asks for: short.",)


@pytest.mark.parametrize(
    ("unclear", "verdict"),
    [(1, Verdict.PASSED), (2, Verdict.PASSED), (3, Verdict.INSUFFICIENT), (10, Verdict.INSUFFICIENT)],
)
def test_inconclusive_cases_at_below_and_above_their_limit(unclear: int, verdict: Verdict) -> None:
    cases = [*suite(10 - unclear), *(case(f"unclear-{n}", 0, inconclusive=1) for n in range(unclear))]
    assert decided(cases, inconclusiveMax=0.2).verdict is verdict


def test_broken_floor_of_a_mostly_inconclusive_suite_is_no_evidence_but_a_told_regression_is() -> None:
    unclear = [case(f"unclear-{n}", 0, inconclusive=1) for n in range(8)]
    found = decided([case("fails", 0, 1), *unclear])
    assert found.verdict is Verdict.INSUFFICIENT
    assert len(found.reasons) == 2
    before = [*suite(8), *(case(one.name) for one in unclear)]
    assert decided([*suite(8, range(8)), *unclear], before).verdict is Verdict.REGRESSED


@pytest.mark.parametrize(
    ("size", "asked", "verdict"),
    [
        (2, 0.5, Verdict.INSUFFICIENT),
        (60, 0.1, Verdict.INSUFFICIENT),
        (60, 0.2, Verdict.PASSED),
        (2, None, Verdict.PASSED),
    ],
)
def test_suite_must_be_able_to_show_the_loss_that_is_asked_for(
    size: int, asked: float | None, verdict: Verdict
) -> None:
    gate = {} if asked is None else {"detectableLossMax": asked}
    found = decided(suite(size), suite(size), **gate)
    assert found.verdict is verdict
    if size == 2:
        assert found.power == "With 2 paired cases, the comparison cannot show a loss of any size."


def test_broken_floor_of_a_suite_without_power_does_not_pass() -> None:
    found = decided(suite(2, [0]), suite(2), detectableLossMax=0.2)
    assert found.verdict is Verdict.INSUFFICIENT
    assert decided(suite(2, [0]), suite(2)).verdict is Verdict.REGRESSED


def test_case_that_changed_since_the_baseline_is_not_compared() -> None:
    before = [case(f"case-{n:03}", digest="old") for n in range(10)]
    now = [case(f"case-{n:03}", 0, 1, digest="new") for n in range(10)]
    found = decided(now, before, passRateMin=0)
    assert (found.verdict, found.p_value, found.regressed) == (Verdict.PASSED, None, ())


@pytest.mark.parametrize(
    ("passed", "failed", "inconclusive", "outcome"),
    [
        (2, 1, 0, Outcome.PASSED),
        (1, 1, 0, Outcome.FAILED),
        (1, 2, 0, Outcome.FAILED),
        (1, 0, 1, Outcome.PASSED),
        (1, 0, 2, Outcome.INCONCLUSIVE),
        (0, 0, 1, Outcome.INCONCLUSIVE),
    ],
)
def test_case_has_the_outcome_of_most_samples(passed: int, failed: int, inconclusive: int, outcome: Outcome) -> None:
    one = case("one", passed, failed, inconclusive)
    assert one.outcome is outcome
    assert one.flaky is (passed > 0 and failed > 0)


def test_table_has_a_row_for_each_case_with_the_baseline_beside_it() -> None:
    found = decided([case("b", 0, 1), case("a", 2, 1)], [case("a"), case("b")])
    assert [(row.name, row.outcome, row.before, row.flaky) for row in found.rows] == [
        ("a", Outcome.PASSED, Outcome.PASSED, True),
        ("b", Outcome.FAILED, Outcome.PASSED, False),
    ]
    assert found.flaky == ("a",)


def test_estimates_over_all_samples_of_a_case() -> None:
    found = decided([case("a", 2, 1), case("b", 3)])
    assert (found.pass_at, found.pass_all) == (1.0, 0.5)
