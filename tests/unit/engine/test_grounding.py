"""Names, numbers, images and times of a claim must occur in what it rests on."""

from uuid import UUID

import pytest

from for_each import for_each
from tarsy.engine.findings.citations import check_citations
from tarsy.engine.findings.grounding import LONGEST, MOST, entities, ungrounded_entities
from tarsy.record.finding import Citation, Claim, Confidence, Evidence, Finding
from tarsy.record.integrity import EvidenceMarks, Integrity

CONTROL = EvidenceMarks(Integrity.K)
QUOTE = 'lastState: {terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-11-24T10:42:11Z"}}'


@for_each(
    ("claim", "found"),
    [
        ("The container is killed for its memory.", ()),
        ("It ends with exit code 137.", ("137",)),
        ("It used 1,024 MiB of 512Mi, that is 99.9%.", ("1024", "512Mi", "99.9")),
        ("PAYMENT_API_URL is not set.", ("PAYMENT_API_URL",)),
        ("Image shop/checkout:1.8.0 cannot be pulled.", ("shop/checkout:1.8.0",)),
        ("The ConfigMap checkout-config lost a key.", ("checkout-config",)),
        ("The deployments order-api and cart changed.", ("order-api",)),
        ("The checkout-config ConfigMap lost a key.", ("checkout-config",)),
        ("A well-known out-of-memory kill, read-only and long-lived.", ()),
        ("It failed at 10:42, e.g. again at 10:42.", ("10:42",)),
        ("Its key [MASKED_API_KEY_2] is wrong.", ()),
        ("`db.shop.svc` answers, (see 10.0.0.7).", ("db.shop.svc", "10.0.0.7")),
        ("", ()),
        ("x" * LONGEST + "1", ()),
        ("x" * (LONGEST - 1) + "1", ("x" * (LONGEST - 1) + "1",)),
    ],
)
def test_entities_are_told_by_their_shape(claim: str, found: tuple[str, ...]) -> None:
    assert entities(claim) == found


@pytest.mark.parametrize(
    "claim",
    [
        "The container ended with code 137 at 10:42.",
        "It was killed at 2026-11-24T10:42:11Z with 137.",
        "Container shop/checkout ended (137).",
        "Pod checkout-6f7d9c8b54 ended.",
        "It has 1,024 MiB.",
        "It has 1024 Mi.",
        "All of it changed, and nobody knows why.",
    ],
)
def test_what_its_grounds_name_is_grounded(claim: str) -> None:
    arguments = '{"namespace": "shop", "pod": "checkout-6f7d9c8b54-k8x2p"}'
    alert = 'container="checkout" memory="1024Mi"'
    assert ungrounded_entities(claim, [QUOTE, arguments, alert]) == ()


@pytest.mark.parametrize(
    ("claim", "missing"),
    [
        ("It ended with code 13.", ("13",)),
        ("It ended with code 1.", ("1",)),
        ("It ended with code 1370.", ("1370",)),
        ("It ended at 10:43.", ("10:43",)),
        ("The image is shop/checkout:1.9.0.", ("shop/checkout:1.9.0",)),
        ("The Pod payment-db is at fault.", ("payment-db",)),
        ("PAYMENT_DB_URL is not set, and 137.", ("PAYMENT_DB_URL",)),
        (
            " ".join(f"n{number}" for number in range(200, 200 + MOST + 3)),
            tuple(f"n{n}" for n in range(200, 200 + MOST)),
        ),
    ],
)
def test_what_they_do_not_name_is_told(claim: str, missing: tuple[str, ...]) -> None:
    assert ungrounded_entities(claim, [QUOTE, '{"namespace": "shop", "pod": "checkout-6f7d9c8b54-k8x2p"}']) == missing


def test_a_number_inside_another_is_not_that_number() -> None:
    assert ungrounded_entities("It is 5.", ["0.5", "15", "5.1"]) == ("5",)
    assert ungrounded_entities("It is 5.", ["v5"]) == ()


EVIDENCE = {
    "call_a": Evidence(
        UUID(int=7), "s", "a", "kubernetes.get_pod", QUOTE, '{"namespace":"shop","name":"checkout-7d"}', CONTROL
    )
}


def judged(*claims: str, confidence: Confidence = Confidence.HIGH, alert: str | None = "") -> Finding:
    citation = Citation(call_id="call_a", quote="exitCode: 137")
    said = tuple(Claim(text=claim, citations=(citation,)) for claim in claims)
    return check_citations(Finding(summary="s", confidence=confidence, claims=said), EVIDENCE, alert=alert)


def test_a_true_quote_under_another_claim_does_not_raise_confidence() -> None:
    finding = judged("The database payment-db-0 in namespace pay is down.")
    (claim,) = finding.claims
    assert (claim.supported, claim.grounded, claim.ungrounded) == (True, False, ("payment-db-0",))
    assert finding.confidence is Confidence.LOW
    assert "payment-db-0" in finding.notes[0] and "from High to Low" in finding.notes[0]


@pytest.mark.parametrize("said", [Confidence.LOW, Confidence.INCONCLUSIVE])
def test_confidence_that_is_low_already_stays(said: Confidence) -> None:
    assert (judged("payment-db-0 is down.", confidence=said).confidence) is said


@pytest.mark.parametrize("said", [Confidence.HIGH, Confidence.MEDIUM])
def test_one_grounded_claim_keeps_the_confidence(said: Confidence) -> None:
    finding = judged("payment-db-0 is down.", "Pod shop/checkout-7d ends with 137.", confidence=said)
    assert (finding.confidence, finding.notes) == (said, ())
    assert [claim.grounded for claim in finding.claims] == [False, True]


def test_names_of_the_alert_may_be_used() -> None:
    assert judged("payment-db-0 is down.", alert='pod="payment-db-0"').confidence is Confidence.HIGH


def test_claims_that_rules_computed_are_not_checked() -> None:
    assert judged("payment-db-0 is down.", alert=None).claims[0].grounded


def test_a_quote_that_does_not_hold_grounds_nothing() -> None:
    citations = (
        Citation(call_id="call_a", quote="exitCode: 137"),
        Citation(call_id="call_a", quote="payment-db-0 died"),
    )
    finding = Finding(
        summary="s", confidence=Confidence.HIGH, claims=(Claim(text="payment-db-0 died", citations=citations),)
    )
    assert check_citations(finding, EVIDENCE, alert="").claims[0].ungrounded == ("payment-db-0",)
