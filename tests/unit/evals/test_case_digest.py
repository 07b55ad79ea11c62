"""The digest of a case is the same for a case of an EvalSuite and for one of a folder."""

import gzip

import pytest

from tarsy.evals.cases import (
    EvalTerms,
    FrozenCase,
    TermsUnreadable,
    freeze,
    masked_recording,
    read_known_terms,
    read_terms,
    recording_digest,
)
from tarsy.evals.cassette import Cassette, Truth
from tarsy.evals.expectations import COVERAGE_MIN
from tarsy.evals.suite import SuiteCase
from tarsy.resources.v1alpha1.eval_suite import EvalSuiteSpec
from tarsy.resources.v1alpha1.expectation import Expectation, Gate
from unit.evals.cassettes import call, cassette

EXPECT = {"rootCause": {"entities": ["Deployment/checkout"]}, "citations": {"precisionMin": 1}}
RECORDED = cassette(call("logs", "out of memory", limit=5), call("logs", "ok"))


def of_a_suite(recorded: Cassette, least: float | None = None) -> str:
    recording = recording_digest(masked_recording(recorded, str))
    case = {"name": "one", "source": {"investigationRef": {"name": "a"}}, "expect": EXPECT, "coverageMin": least}
    spec = EvalSuiteSpec.model_validate({"cases": [{key: part for key, part in case.items() if part is not None}]})
    return freeze(spec, {"one": recording}, None).cases[0].digest


def of_a_folder(recorded: Cassette, least: float = COVERAGE_MIN) -> str:
    return SuiteCase("another-name", recorded, Expectation.model_validate(EXPECT), least).digest


@pytest.mark.parametrize("recorded", [RECORDED, RECORDED.with_truth(Truth(entities=("Pod/a",)))])
def test_a_case_has_one_digest_in_a_cluster_and_in_a_folder(recorded: Cassette) -> None:
    assert of_a_suite(recorded) == of_a_folder(recorded) == of_a_folder(RECORDED)
    assert of_a_suite(recorded, COVERAGE_MIN) == of_a_suite(recorded)
    assert of_a_suite(recorded, 1) == of_a_folder(recorded, 1.0) != of_a_suite(recorded)


def test_another_recording_has_another_digest() -> None:
    assert of_a_folder(cassette(call("logs", "ok"))) != of_a_folder(RECORDED)


def test_the_digest_of_a_recording_does_not_depend_on_its_compression() -> None:
    recording = masked_recording(RECORDED, str)
    assert recording_digest(gzip.compress(gzip.decompress(recording), 1)) == recording_digest(recording)


def test_terms_that_are_not_set_are_not_stored_so_that_older_versions_read_them() -> None:
    case = FrozenCase(name="one", recording="r", digest="d", expect=Expectation.model_validate(EXPECT))
    terms = EvalTerms(cases=(case,), samples=1, parallelism=1, gate=Gate())
    stored = terms.dump()
    assert read_terms(stored) == terms and None not in stored["gate"].values() and "baseline" not in stored
    assert read_terms(terms.model_dump(mode="json")) == terms, "as the version before stored them"
    newer = {
        **stored,
        "gate": {**stored["gate"], "newer": 1},
        "cases": [{**stored["cases"][0], "expect": {"newer": 1}}],
    }
    with pytest.raises(TermsUnreadable, match="newer"):
        read_terms(newer)
    known = read_known_terms(newer)
    assert (known.gate, known.cases[0].digest) == (terms.gate, "d")
