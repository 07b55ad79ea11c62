"""Runs the samples of a suite, a bounded number side by side, within its budget.

Decision: the first sample of every case is started before the second of any. Where the budget ends, all cases have
about the same number of samples, instead of some all and others none.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from tarsy.engine.ports import Models
from tarsy.evals.cases import FrozenJudge
from tarsy.evals.result import CaseResult, JudgeResult, SampleResult
from tarsy.masking import Maskers, default_masker
from tarsy.plan.model import AgentPlan, Plan, ProviderPlan
from tarsy.resources.v1alpha1.eval_suite import EvalBudget
from tarsy.runtime.in_process.judging import SuiteJudging
from tarsy.runtime.in_process.sample import PlannedCase, run_sample


@dataclass(frozen=True, slots=True)
class SuiteLimits:
    """Samples of each case, the maximum that runs side by side, and the usage limits of all together."""

    samples: int = 1
    parallelism: int = 4
    budget: EvalBudget | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Cases with their samples; `spent` is the limit of the budget that was reached, None: none was.

    `judge` is what the judge of the suite was worth and used; None: the suite has none.
    """

    cases: tuple[CaseResult, ...]
    spent: str | None
    judge: JudgeResult | None = None


_Told = Callable[[str, int, SampleResult], None]
"""Receives each sample when it ends: name of the case, number of the sample, result."""


def _nothing(case: str, number: int, sample: SampleResult) -> None:
    """Ignores a sample."""


async def run_suite(
    cases: Sequence[PlannedCase],
    limits: SuiteLimits,
    models: Models,
    tell: _Told = _nothing,
    judge: FrozenJudge | None = None,
) -> Measured:
    """Runs all samples, until the budget is reached.

    Args:
        cases: with their plans.
        limits: of the suite.
        models: clients for the providers of the plans.
        tell: receives each sample when it ends.
        judge: answers the checklist of the suite; None: it has none.
    """
    done: dict[tuple[int, int], SampleResult] = {}
    spent = _Spent(limits.budget)
    waiting = iter([(place, number) for number in range(limits.samples) for place in range(len(cases))])
    maskers = Maskers()
    judging = None if judge is None else await SuiteJudging.measured(judge, models, default_masker().mask)

    async def work() -> None:
        for place, number in waiting:
            if spent.reached is not None:
                return
            sample = await run_sample(cases[place], number, models, maskers, judging)
            done[place, number] = sample
            spent.add(sample)
            tell(cases[place].case.name, number, sample)

    async with asyncio.TaskGroup() as group:
        for _ in range(side_by_side(cases, limits.parallelism)):
            group.create_task(work())
    results = tuple(
        CaseResult(
            name=planned.case.name,
            digest=_digest(planned.case.digest, judge, judging),
            chain=f"{planned.plan.chain.namespace}/{planned.plan.chain.name}",
            plan_hash=planned.plan.digest,
            asked=limits.samples,
            samples=tuple(done[place, number] for number in range(limits.samples) if (place, number) in done),
        )
        for place, planned in enumerate(cases)
    )
    return Measured(results, spent.reached, None if judging is None else judging.result)


def _digest(digest: str, judge: FrozenJudge | None, judging: SuiteJudging | None) -> str:
    """Returns the digest that the samples of a case are compared by."""
    if judge is None or judging is None:
        return digest
    return judge.marked(digest, gates=judging.agreement.gates)


def side_by_side(cases: Sequence[PlannedCase], asked: int) -> int:
    """Returns how many samples run side by side: as many as asked, and as every provider's `maxConcurrent` allows.

    Args:
        cases: with their plans.
        asked: number of samples that the suite asks for.
    """
    limits = [one.limits.max_concurrent for case in cases for one in providers(case.plan) if one.limits is not None]
    return max(1, min([asked, *(most for most in limits if most is not None)]))


def providers(plan: Plan) -> Iterator[ProviderPlan]:
    """Yields the providers that a plan may ask, those of fallbacks and summaries included."""
    for agent in _agents(plan):
        yield agent.provider
        yield from (one.provider for one in agent.fallback)
        if agent.summarizer is not None:
            yield agent.summarizer


def _agents(plan: Plan) -> Iterator[AgentPlan]:
    for stage in plan.stages:
        yield from stage.members
        yield from stage.syntheses
    if plan.executive_summary is not None:
        yield plan.executive_summary


class _Spent:
    """Sums what samples used."""

    def __init__(self, budget: EvalBudget | None) -> None:
        self._budget = budget
        self._tokens = 0
        self._cost = Decimal(0)

    def add(self, sample: SampleResult) -> None:
        self._tokens += sample.tokens
        self._cost += sample.spent_usd

    @property
    def reached(self) -> str | None:
        """Returns the limit that was reached, as a sentence; None: none was."""
        budget = self._budget
        if budget is not None and budget.tokens is not None and self._tokens >= budget.tokens:
            return f"The budget of {budget.tokens:,} tokens was reached with {self._tokens:,}."
        if budget is not None and budget.cost_usd is not None and self._cost >= Decimal(str(budget.cost_usd)):
            return f"The budget of {budget.cost_usd} US dollars was reached with {self._cost:f}."
        return None
