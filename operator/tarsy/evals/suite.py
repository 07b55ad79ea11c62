"""Defines a suite of cases as it is run on one machine, without objects of a cluster.

A case is a cassette with its expectation. The models of YAML files are those of EvalSuite, so that a case means the
same in a folder and in a cluster.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field

from tarsy.evals.cases import case_digest, cassette_digest, suite_digest
from tarsy.evals.cassette import Cassette, Truth
from tarsy.evals.expectations import COVERAGE_MIN
from tarsy.resources.schema import Model
from tarsy.resources.v1alpha1.eval_suite import EvalBudget, Samples
from tarsy.resources.v1alpha1.expectation import Expectation, Gate
from tarsy.resources.v1alpha1.judge import MAX_LABELS, LabelledFinding, SuiteJudge


class SuiteFile(Model):
    """Settings of a suite: the fields of an EvalSuite without its cases."""

    samples: Samples = 1
    parallelism: Annotated[int, Field(ge=1, le=50)] = 4
    budget: EvalBudget | None = None
    gate: Gate = Field(default_factory=Gate)
    judge: SuiteJudge | None = None


class CaseFile(Model):
    """Expectation of a case and labelled findings about it, beside its cassette."""

    expect: Expectation
    coverage_min: Annotated[float, Field(ge=0, le=1)] | None = None
    labels: Annotated[tuple[LabelledFinding, ...], Field(max_length=MAX_LABELS)] = ()


@dataclass(frozen=True)
class SuiteCase:
    """One case.

    Attributes:
        name: of its file.
        cassette: the recorded world.
        expectation: of the finding.
        coverage_min: smallest share of the tool calls that the cassette must answer, from 0 to 1.
        labels: findings with the answers of people, which measure the judge.
    """

    name: str
    cassette: Cassette
    expectation: Expectation
    coverage_min: float = COVERAGE_MIN
    labels: tuple[LabelledFinding, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Digest of recording and expectation, as for the same case of an EvalSuite."""
        return case_digest(cassette_digest(self.cassette), self.expectation, self.coverage_min)


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases and how they are measured."""

    cases: tuple[SuiteCase, ...]
    settings: SuiteFile = field(default_factory=SuiteFile)

    @property
    def digest(self) -> str:
        """Digest of all cases and the judge."""
        return suite_digest({case.name: case.digest for case in self.cases}, self.settings.judge)


def expectation_of(truth: Truth) -> Expectation:
    """Returns the expectation that the known cause of a cassette makes.

    Args:
        truth: the known cause. Its keywords are prose, and are not expected.

    Raises:
        ValueError: it names no object that could be expected, or one whose name is invalid.
    """
    made: dict[str, Any] = {"distractors": list(truth.distractors)} if truth.distractors else {}
    if truth.verdict == "NoFault":
        made["verdict"] = "NoFault"
    elif truth.entities:
        made["rootCause"] = {"entities": list(truth.entities)}
    else:
        raise ValueError("its truth names no entities")
    if truth.required_tools:
        made["tools"] = {"required": list(truth.required_tools)}
    return Expectation.model_validate(made)
