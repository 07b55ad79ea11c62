"""Prepares recordings as cases of a suite, and freezes the terms that an EvalRun is judged by.

Decision: a recording is masked again when it becomes a case. It may come from anywhere, and patterns that were added
since it was made take effect. The digest of a case covers the masked recording and what is expected of it, so that two
runs are compared only on cases that mean the same.
"""

import gzip
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from tarsy.evals.cassette import (
    Cassette,
    ChangesRecord,
    Header,
    RecordedCall,
    ServerRecord,
    cassette_lines,
    write_cassette,
)
from tarsy.evals.expectations import COVERAGE_MIN
from tarsy.evals.verdict import CaseSamples
from tarsy.masking import without_secrets_or_withheld
from tarsy.plan.model import ProviderPlan
from tarsy.record.judging.precedent import Precedent
from tarsy.resources.v1alpha1.eval_suite import EvalBudget, EvalSuiteSpec
from tarsy.resources.v1alpha1.expectation import Expectation, Gate
from tarsy.resources.v1alpha1.judge import AGREEMENT_MIN, ChecklistQuestion, JudgeBudget, LabelledFinding, SuiteJudge

WITHHELD = "This recorded text could not be searched for secrets and is withheld."

_NOT_JUDGED = {"verdict": "Inconclusive"}
_Mask = Callable[[str], str]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class FrozenCase(_Frozen):
    """A case as an EvalRun began with it.

    Attributes:
        recording: digest of the stored recording.
        digest: digest of recording and expectation.
    """

    name: str
    recording: str
    digest: str
    expect: Expectation
    coverage_min: float = COVERAGE_MIN


class FrozenSamples(_Frozen):
    """Samples of a case of the baseline, as they were when an EvalRun began."""

    name: str
    digest: str
    passed: int
    failed: int
    inconclusive: int
    asked: int

    def samples(self) -> CaseSamples:
        """Returns the samples as a verdict takes them."""
        return CaseSamples(self.name, self.digest, self.passed, self.failed, self.inconclusive, asked=self.asked)


class FrozenLabel(_Frozen):
    """A labelled finding: its case, its number there, its text, and the answers of a person by question."""

    case: str
    number: int
    finding: str
    answers: dict[str, str]


class FrozenJudge(_Frozen):
    """The judge of a suite as an EvalRun began with it; `provider` has temperature 0."""

    provider: ProviderPlan
    checklist: tuple[ChecklistQuestion, ...]
    gates: bool = False
    agreement_min: float = AGREEMENT_MIN
    budget: JudgeBudget | None = None
    labels: tuple[FrozenLabel, ...] = ()

    def marked(self, digest: str, *, gates: bool) -> str:
        """Returns the digest of a case that this judge decides: only results of the same judge are compared.

        Args:
            digest: of the case without a judge.
            gates: whether it decides.
        """
        if not gates:
            return digest
        provider = self.provider
        what = [provider.type, provider.model, provider.base_url or "", *(one.question for one in self.checklist)]
        return f"{digest}+{hashlib.sha256(orjson.dumps(what)).hexdigest()[:16]}"


class EvalTerms(_Frozen):
    """Holds the terms of an EvalRun: its measurement and its gate, frozen when it begins.

    `baseline` is None without one, `judge` too.
    """

    cases: tuple[FrozenCase, ...]
    samples: int
    parallelism: int
    gate: Gate
    budget: EvalBudget | None = None
    baseline: tuple[FrozenSamples, ...] | None = None
    llm_provider: str | None = None
    judge: FrozenJudge | None = None

    def digest_of(self, case: FrozenCase, *, gates: bool) -> str:
        """Returns the digest that the samples of a case are compared by; `gates`: whether the judge decides."""
        return case.digest if self.judge is None else self.judge.marked(case.digest, gates=gates)

    def dump(self) -> dict[str, Any]:
        """Returns the terms as they are stored, without fields that are not set: older versions read them."""
        return self.model_dump(mode="json", exclude_none=True)


class TermsUnreadable(ValueError):
    """Raised for frozen terms that a newer version wrote and this one cannot judge by."""


def read_terms(stored: Mapping[str, Any]) -> EvalTerms:
    """Reads the frozen terms that an EvalRun is judged by.

    Raises:
        TermsUnreadable: they contain what this version does not know, so its verdict would be another one.
    """
    try:
        return EvalTerms.model_validate(stored, extra="forbid")
    except ValidationError as error:
        fields = sorted({".".join(map(str, one["loc"])) for one in error.errors(include_url=False)})
        raise TermsUnreadable(", ".join(fields[:5])) from error


def read_known_terms(stored: Mapping[str, Any]) -> EvalTerms:
    """Reads as much of frozen terms as this version knows, for display and for the samples of a baseline.

    No expectation is read: only judging needs them.
    """
    cases = [{**case, "expect": _NOT_JUDGED} for case in stored["cases"]]
    return EvalTerms.model_validate({**stored, "cases": cases}, extra="ignore")


def masked_recording(cassette: Cassette, mask: _Mask) -> bytes:
    """Returns the file of a cassette with all texts masked, and without a known cause.

    Args:
        cassette: the recording.
        mask: masks one text.

    Raises:
        CassetteError: the masked recording exceeds a limit.
    """
    text = partial(_masked, mask)
    header = cassette.header.model_copy(
        update={
            "alert": cassette.header.alert.model_copy(update={"data": text(cassette.header.alert.data)}),
            "runbook": None if cassette.header.runbook is None else text(cassette.header.runbook),
            "servers": {name: _server(one, text) for name, one in cassette.header.servers.items()},
            "changes": None if cassette.header.changes is None else _changes(cassette.header.changes, text),
            "precedents": _precedents(cassette.header.precedents, text),
            "truth": None,
        }
    )
    return write_cassette(
        Cassette(Header.model_validate(header.model_dump()), tuple(_call(c, text) for c in cassette.calls))
    )


def _precedents(found: Sequence[Precedent] | None, text: _Mask) -> tuple[Precedent, ...] | None:
    if found is None:
        return None
    return tuple(one.model_copy(update={"summary": text(one.summary)}) for one in found)


def recording_digest(recording: bytes) -> str:
    """Returns the digest that a stored recording is found by: that of its text, however it was compressed.

    Args:
        recording: as `masked_recording` returns it.
    """
    return hashlib.sha256(gzip.decompress(recording)).hexdigest()


def cassette_digest(cassette: Cassette) -> str:
    """Returns the digest of a cassette without its known cause: `recording_digest` of what would be stored of it."""
    found = hashlib.sha256()
    for line in cassette_lines(cassette.with_truth(None)):
        found.update(line)
    return found.hexdigest()


def case_digest(recording: str, expect: Expectation, coverage_min: float | None) -> str:
    """Returns the digest of a case, the same in a cluster and in a folder.

    Args:
        recording: digest of its recording.
        expect: what is expected.
        coverage_min: smallest coverage of a replay; None: the default.
    """
    least = COVERAGE_MIN if coverage_min is None else coverage_min
    expected = {"expect": expect.to_dict(), "coverageMin": float(least), "recording": recording}
    return hashlib.sha256(orjson.dumps(expected, option=orjson.OPT_SORT_KEYS)).hexdigest()


def suite_digest(cases: dict[str, str], judge: SuiteJudge | None = None) -> str:
    """Returns the digest of a suite from the digests of its cases by name, and its judge."""
    what: dict[str, object] = {**cases, **({} if judge is None else {"judge of the suite": judge.to_dict()})}
    return hashlib.sha256(orjson.dumps(what, option=orjson.OPT_SORT_KEYS)).hexdigest()


def freeze(
    spec: EvalSuiteSpec,
    recordings: dict[str, str],
    baseline: tuple[FrozenSamples, ...] | None,
    llm_provider: str | None = None,
    judge: FrozenJudge | None = None,
) -> EvalTerms:
    """Freezes the terms of an EvalRun.

    Args:
        spec: of the suite.
        recordings: digest of the stored recording of each case, by name.
        baseline: samples to compare with; None: there is no baseline.
        llm_provider: LLMProvider that all agents use instead of their own; None: their own.
        judge: the judge; None: the suite has none.
    """
    cases = tuple(
        FrozenCase(
            name=case.name,
            recording=recordings[case.name],
            digest=case_digest(recordings[case.name], case.expect, case.coverage_min),
            expect=case.expect,
            coverage_min=COVERAGE_MIN if case.coverage_min is None else case.coverage_min,
        )
        for case in spec.cases
    )
    return EvalTerms(
        cases=cases,
        samples=spec.samples,
        parallelism=spec.parallelism,
        gate=spec.gate,
        budget=spec.budget,
        baseline=baseline,
        llm_provider=llm_provider,
        judge=judge,
    )


def freeze_judge(
    judge: SuiteJudge, provider: ProviderPlan, labels: Mapping[str, Sequence[LabelledFinding]], mask: _Mask
) -> FrozenJudge:
    """Freezes the judge of a suite.

    Args:
        judge: of the suite.
        provider: the plan of its LLMProvider.
        labels: labelled findings by case.
        mask: masks one text.
    """
    return FrozenJudge(
        provider=provider.model_copy(update={"temperature": 0.0}),
        checklist=judge.checklist,
        gates=judge.gates,
        agreement_min=judge.agreement_min,
        budget=judge.budget,
        labels=tuple(
            FrozenLabel(
                case=case,
                number=number,
                finding=_masked(mask, one.finding),
                answers={a.question: a.answer for a in one.answers},
            )
            for case, found in labels.items()
            for number, one in enumerate(found)
        ),
    )


def unknown_questions(judge: SuiteJudge | None, labels: Sequence[LabelledFinding]) -> list[str]:
    """Returns the names of questions that labelled findings answer and a judge is not asked."""
    known = {one.name for one in judge.checklist} if judge is not None else set[str]()
    return sorted({a.question for one in labels for a in one.answers} - known)


def _masked(mask: _Mask, text: str) -> str:
    return without_secrets_or_withheld(mask, text, "a recorded text of an evaluation", WITHHELD).text if text else text


def _server(server: ServerRecord, text: _Mask) -> ServerRecord:
    tools = tuple(tool.model_copy(update={"description": text(tool.description)}) for tool in server.tools)
    unavailable = None if server.unavailable is None else text(server.unavailable)
    return server.model_copy(
        update={"tools": tools, "instructions": text(server.instructions), "unavailable": unavailable}
    )


def _changes(changes: ChangesRecord, text: _Mask) -> ChangesRecord:
    statements = tuple(
        one.model_copy(update={"text": text(one.text), "quote": text(one.quote)}) for one in changes.statements
    )
    return changes.model_copy(update={"summary": text(changes.summary), "statements": statements})


def _call(call: RecordedCall, text: _Mask) -> RecordedCall:
    result = text(call.result)
    return call.model_copy(
        update={
            "arguments": _arguments(call.arguments, text),
            "result": result,
            "control": () if call.marks is None else call.marks.moved(call.result, result).control,
            "shown": None if call.shown is None else text(call.shown),
        }
    )


def _arguments(arguments: JsonValue, text: _Mask) -> JsonValue:
    """Masks each text among the arguments of a call."""
    match arguments:
        case str():
            return text(arguments)
        case list():
            return [_arguments(one, text) for one in arguments]
        case dict():
            return {name: _arguments(one, text) for name, one in arguments.items()}
        case _:
            return arguments
