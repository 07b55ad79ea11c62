"""Defines the rows of EvalSuites, EvalRuns and samples, as `tarsy.store.judging.evals` stores and reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class StoredCase:
    """A stored recording: its digest, and the source in the spec that it was copied from."""

    name: str
    digest: str
    source: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredRecording:
    """A stored recording with its source; `plan` is that of the recorded run, None where the source was a file."""

    namespace: str
    cassette: bytes
    source: Mapping[str, Any]
    plan: str | None


@dataclass(frozen=True, slots=True)
class NewCase:
    """A masked recording to store; `plan` is that of the recorded run, None where the source is a file."""

    suite: UUID
    name: str
    digest: str
    namespace: str
    namespace_uid: str
    source: Mapping[str, Any]
    cassette: bytes
    plan: str | None = None


@dataclass(frozen=True, slots=True)
class NewEvalRun:
    """An EvalRun that begins; `terms` are frozen."""

    id: UUID
    namespace: str
    namespace_uid: str
    name: str
    suite: UUID
    suite_name: str
    suite_digest: str
    terms: Mapping[str, Any]
    chain: str
    chain_namespace: str
    revision: str
    baseline: UUID | None = None


@dataclass(frozen=True, slots=True)
class EvalRunRecord:
    """An EvalRun as stored; `verdict` is None until it has finished, `agreement` until its judge is measured."""

    id: UUID
    namespace: str
    name: str
    suite: UUID
    suite_name: str
    suite_digest: str
    terms: Mapping[str, Any]
    chain: str
    chain_namespace: str
    revision: str
    baseline: UUID | None
    started_at: datetime
    finished_at: datetime | None
    verdict: str | None
    summary: str | None
    agreement: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class BegunSample:
    """A sample whose Investigation was created; `ended`: it has an outcome."""

    case_name: str
    sample: int
    investigation: UUID
    ended: bool


@dataclass(frozen=True, slots=True)
class EndedSample:
    """The outcome of a sample; `checks` are name, outcome and sentence of each check."""

    case_name: str
    sample: int
    outcome: str
    checks: Sequence[Mapping[str, str]]
    confident_wrong: bool = False
    coverage: float | None = None
    tokens: int = 0
    cost_usd: Decimal | None = None
    cost_complete: bool = True


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A sample as stored; `outcome` is None until it has ended."""

    case_name: str
    sample: int
    investigation: UUID
    outcome: str | None
    checks: Sequence[Mapping[str, str]] | None
    confident_wrong: bool
    coverage: float | None
    tokens: int
    cost_usd: Decimal | None
    cost_complete: bool


@dataclass(frozen=True, slots=True)
class CaseTotals:
    """Number of samples of a case by outcome."""

    name: str
    passed: int
    failed: int
    inconclusive: int
    confident_wrong: int


@dataclass(frozen=True, slots=True)
class StoredCell:
    """Samples of one case in one run; `rungs` are tool calls by the origin of their answers, as far as on record."""

    run: UUID
    totals: CaseTotals
    coverage: float | None
    tokens: int
    cost_usd: Decimal | None
    cost_complete: bool
    rungs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SampleDetail:
    """A sample as readers get it; `investigation` is the name of its run, None when that is not on record any more."""

    case_name: str
    sample: int
    investigation: str | None
    outcome: str | None
    checks: Sequence[Mapping[str, str]]
    confident_wrong: bool
    coverage: float | None
    tokens: int
    cost_usd: Decimal | None
    cost_complete: bool


@dataclass(frozen=True, slots=True)
class EvalUsage:
    """Usage of the samples that have ended; `cost_usd` is None when no cost is known."""

    tokens: int
    cost_usd: Decimal | None
    cost_complete: bool


@dataclass(frozen=True, slots=True)
class RecordedToolCall:
    """A tool call of a run: `server.tool`, whether it failed, and in a replay how its answer was found."""

    tool: str
    failed: bool
    rung: str | None
