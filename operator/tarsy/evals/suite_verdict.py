"""Decides the verdict on an EvalRun from its frozen terms and its stored samples, for controllers and readers alike."""

from collections.abc import Sequence

from tarsy.evals.agreement import JudgeAgreement
from tarsy.evals.cases import EvalTerms
from tarsy.evals.verdict import CaseSamples, SuiteVerdict, decide
from tarsy.store.judging.eval_rows import CaseTotals


def run_verdict(terms: EvalTerms, totals: Sequence[CaseTotals], agreement: JudgeAgreement | None) -> SuiteVerdict:
    """Decides the verdict from the samples by case.

    Args:
        terms: what the run measures and how it is decided.
        totals: samples by outcome, of the cases that have one.
        agreement: what the answers of the judge are worth; None: there is no judge, or it is not measured.
    """
    known = {one.name: one for one in totals}
    samples = [
        CaseSamples(
            name=case.name,
            digest=terms.digest_of(case, gates=agreement is not None and agreement.gates),
            passed=known[case.name].passed,
            failed=known[case.name].failed,
            inconclusive=known[case.name].inconclusive,
            confident_wrong=known[case.name].confident_wrong,
            asked=terms.samples,
        )
        for case in terms.cases
        if case.name in known
    ]
    baseline = None if terms.baseline is None else [one.samples() for one in terms.baseline]
    return decide(samples, baseline, terms.gate, {case.name for case in terms.cases})
