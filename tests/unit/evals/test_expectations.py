"""Tests each check of an expectation at, below and above its limit, and what counts as blame."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from for_each import for_each
from tarsy.evals.expectations import (
    Checked,
    FinishedRun,
    Judgement,
    MadeCall,
    Outcome,
    blamed,
    invalid_facts,
    judge,
    verdict_of,
)
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.resources.v1alpha1.expectation import Expectation


def claim(text: str, *held: bool) -> Claim:
    citations = tuple(
        Citation(call_id="call_0123456789ab", quote="refused", supported=one, tool="kube.get_pods") for one in held
    )
    return Claim(text=text, citations=citations, supported=any(held))


def finding(*claims: Claim, confidence: Confidence = Confidence.MEDIUM, summary: str = "It is broken.") -> Finding:
    return Finding(summary=summary, confidence=confidence, claims=claims)


OOM = claim("Deployment/checkout was killed: its memory limit is 64Mi.", True)


def judged(expect: dict[str, Any], **run: Any) -> Judgement:
    given = {"finding": finding(OOM), "steps": 3, "calls": (MadeCall("kube.get_pods"),), **run}
    return judge(FinishedRun(**given), Expectation.model_validate(expect))


def only(judgement: Judgement, name: str) -> Checked:
    (found,) = (check for check in judgement.checks if check.name == name)
    return found


@for_each(
    ("entity", "text", "is_blamed"),
    [
        ("Deployment/checkout", "Deployment/checkout was scaled to 0.", True),
        ("Deployment/checkout", "The deployment checkout was scaled to 0", True),
        ("Deployment/checkout", "deployments/checkout was scaled to 0", True),
        ("Deployment/checkout", "shop/checkout was scaled to 0", True),
        ("Deployment/checkout", "Service/checkout has no endpoints", False),
        ("Deployment/checkout", "service/checkout has no endpoints", False),
        ("checkout", "Service/checkout has no endpoints", True),
        ("checkout", "checkout-api has no endpoints", False),
        ("checkout", "old-checkout has no endpoints", False),
        ("checkout", "checkout.shop.svc cannot be resolved", False),
        ("checkout", "It is checkout.", True),
        ("checkout", "CHECKOUT crashes", True),
        ("Pod/checkout-*", "The pod checkout-7d9f-x2 was killed", True),
        ("Pod/checkout-*", "The pod cart-7d9f-x2 was killed", False),
        ("redis-0", "redis-0 is healthy, but checkout fails", False),
        ("checkout", "redis-0 is healthy, but checkout fails", True),
        ("checkout", "redis-0 is healthy. checkout fails", True),
        ("redis-0", "redis-0 was ruled out", False),
        ("redis-0", "redis-0 is not the cause", False),
        ("redis-0", "redis-0 is not responding", True),
    ],
)
def test_entity_is_blamed_where_a_sentence_names_it_and_does_not_rule_it_out(
    entity: str, text: str, is_blamed: bool
) -> None:
    assert blamed(entity, [claim(text, True)]) is is_blamed


def test_unsupported_claim_blames_nothing() -> None:
    assert not blamed("checkout", [claim("checkout crashes", False), claim("checkout crashes")])


def test_every_root_cause_must_be_blamed() -> None:
    both = {"rootCause": {"entities": ["checkout", "ConfigMap/limits"]}}
    assert judged(both).outcome is Outcome.FAILED
    more = finding(OOM, claim("ConfigMap/limits sets 64Mi.", True))
    assert judged(both, finding=more).outcome is Outcome.PASSED


def test_root_cause_that_is_only_named_without_support_is_reported_as_such() -> None:
    unsupported = finding(claim("checkout crashes", False), claim("cart is slow", True))
    check = only(judged({"rootCause": {"entities": ["checkout"]}}, finding=unsupported), "rootCause")
    assert check == Checked(
        "rootCause", Outcome.FAILED, "No supported claim blames checkout; it is only named without support."
    )


def test_blamed_distractor_fails() -> None:
    assert judged({"distractors": ["cart"]}).outcome is Outcome.PASSED
    assert judged({"distractors": ["checkout"]}).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (finding(OOM), "Cause"),
        (finding(OOM, confidence=Confidence.INCONCLUSIVE), "Inconclusive"),
        (finding(claim("checkout crashes", False)), "Inconclusive"),
        (finding(), "Inconclusive"),
        (finding(summary="No fault was found."), "NoFault"),
        (finding(summary="The pod has recovered.", confidence=Confidence.HIGH), "NoFault"),
        (finding(summary="No fault was found.", confidence=Confidence.INCONCLUSIVE), "Inconclusive"),
        (finding(OOM, summary="checkout is not healthy."), "Cause"),
    ],
)
def test_verdict_of_a_finding(given: Finding, verdict: str) -> None:
    assert verdict_of(given) == verdict
    for expected in ("Cause", "NoFault", "Inconclusive"):
        outcome = judged({"verdict": expected}, finding=given).outcome
        assert outcome is (Outcome.PASSED if expected == verdict else Outcome.FAILED)


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        ("claims.exists(c, c.text.contains('64Mi') && 'kube.get_pods' in c.tools)", Outcome.PASSED),
        ("claims.exists(c, c.text.contains('32Mi'))", Outcome.FAILED),
        ("finding.confidence == 'Medium' && steps == 3 && costUSD == null", Outcome.PASSED),
        ("calls.all(c, !c.failed) && calls[0].tool.startsWith('kube.')", Outcome.PASSED),
        ("calls[7].failed", Outcome.FAILED),
        ("size(claims)", Outcome.FAILED),
        ("lists.range(100000).all(i, lists.range(100000).all(j, i + j >= 0))", Outcome.FAILED),
    ],
)
def test_fact_is_an_expression_over_the_supported_claims(expression: str, outcome: Outcome) -> None:
    assert judged({"facts": [{"expression": expression}]}).outcome is outcome


def test_facts_that_cannot_be_compiled_are_found_before_a_run() -> None:
    expression = Expectation.model_validate({"facts": [{"expression": "size(claims) > 0"}, {"expression": "claim > "}]})
    ((index, sentence),) = invalid_facts(expression)
    assert index == 1
    assert "Syntax error" in sentence


def test_message_of_a_fact_explains_it() -> None:
    fact = {"facts": [{"expression": "steps > 3", "message": "The agent gave up early."}]}
    assert only(judged(fact), "facts").sentence == "The agent gave up early."


def test_required_tools_must_be_called() -> None:
    required = {"tools": {"required": ["kube.get_pods", "kube.get_events"]}}
    assert judged(required).outcome is Outcome.FAILED
    calls = (MadeCall("kube.get_pods"), MadeCall("kube.get_events", failed=True))
    assert judged(required, calls=calls).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("held", "outcome"),
    [((True, True, True, False), Outcome.PASSED), ((True, True, False), Outcome.FAILED), ((True,) * 4, Outcome.PASSED)],
)
def test_citation_precision_at_below_and_above(held: tuple[bool, ...], outcome: Outcome) -> None:
    given = finding(claim("checkout crashes", *held))
    assert judged({"citations": {"precisionMin": 0.75}}, finding=given).outcome is outcome


def test_claims_without_citations_have_no_precision() -> None:
    expect = {"citations": {"precisionMin": 0.01}}
    assert judged(expect, finding=finding(claim("checkout crashes"))).outcome is Outcome.FAILED
    assert judged(expect, finding=finding(summary="No fault.")).outcome is Outcome.PASSED


@pytest.mark.parametrize(("steps", "outcome"), [(4, Outcome.PASSED), (5, Outcome.PASSED), (6, Outcome.FAILED)])
def test_steps_at_below_and_above(steps: int, outcome: Outcome) -> None:
    assert judged({"limits": {"steps": 5}}, steps=steps).outcome is outcome


@pytest.mark.parametrize(
    ("cost", "outcome"),
    [("0.09", Outcome.PASSED), ("0.1", Outcome.PASSED), ("0.1000001", Outcome.FAILED), (None, Outcome.INCONCLUSIVE)],
)
def test_cost_at_below_above_and_unknown(cost: str | None, outcome: Outcome) -> None:
    known = None if cost is None else Decimal(cost)
    assert judged({"limits": {"costUSD": 0.1}}, cost_usd=known).outcome is outcome


@pytest.mark.parametrize(
    ("coverage", "outcome"),
    [(None, Outcome.PASSED), (0.69, Outcome.INCONCLUSIVE), (0.7, Outcome.PASSED), (1.0, Outcome.PASSED)],
)
def test_coverage_at_below_and_above(coverage: float | None, outcome: Outcome) -> None:
    assert judged({"verdict": "Cause"}, coverage=coverage).outcome is outcome


def test_run_that_did_not_end_well_is_neither_passed_nor_failed() -> None:
    assert judged({"verdict": "NoFault"}, failure="It ended as TimedOut.").outcome is Outcome.INCONCLUSIVE
    assert judged({"verdict": "NoFault"}, finding=None).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("confidence", "wrong"), [(Confidence.HIGH, True), (Confidence.MEDIUM, False), (Confidence.LOW, False)]
)
def test_wrong_finding_with_high_confidence_is_confidently_wrong(confidence: Confidence, wrong: bool) -> None:
    blames_another = finding(OOM, confidence=confidence)
    expect = {"rootCause": {"entities": ["cart"]}}
    assert judged(expect, finding=blames_another).confident_wrong is wrong
    assert not judged({**expect, "noConfidentWrong": False}, finding=blames_another).confident_wrong
    assert not judged({"limits": {"steps": 1}}, finding=blames_another).confident_wrong


@pytest.mark.parametrize(
    "expect",
    [
        {},
        {"noConfidentWrong": True},
        {"rootCause": {"entities": []}},
        {"rootCause": {"entities": ["a"]}},
        {"rootCause": {"entities": ["a*b"]}},
        {"rootCause": {"entities": ["checkout"]}, "verdict": "NoFault"},
        {"limits": {}},
        {"citations": {"precisionMin": 1.01}},
        {"tools": {"required": ["get_pods"]}},
    ],
)
def test_expectation_that_means_nothing_is_refused(expect: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Expectation.model_validate(expect)
