"""Asks the judge of a suite on one machine: about the labelled findings first, then about each sample."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from tarsy.engine.ports import Models
from tarsy.evals.agreement import JudgeAgreement, judge_budget_spent, measure_agreement
from tarsy.evals.cases import FrozenJudge
from tarsy.evals.checklist import CheckedAnswer, judge_checks, judged_text, unanswered, with_judge
from tarsy.evals.expectations import Judgement, Outcome
from tarsy.evals.result import JudgeResult
from tarsy.record.finding import Finding
from tarsy.runtime.judge_call import call_judge, stored_answer
from tarsy.store.judging.judge_calls import JudgeUsage

_AT_ONCE = 2


class SuiteJudging:
    """The judge of one measurement; use it after `measured`.

    Args:
        judge: as frozen.
        models: clients for LLMProviders.
        mask: takes secrets out of quotes and failures.
    """

    def __init__(self, judge: FrozenJudge, models: Models, mask: Callable[[str], str]) -> None:
        self._judge = judge
        self._models = models
        self._mask = mask
        self._usage = JudgeUsage()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self.agreement: JudgeAgreement

    @classmethod
    async def measured(cls, judge: FrozenJudge, models: Models, mask: Callable[[str], str]) -> "SuiteJudging":
        """Asks about all labelled findings, and decides what the answers are worth.

        Args:
            judge: as frozen.
            models: clients for LLMProviders.
            mask: takes secrets out of quotes and failures.
        """
        made = cls(judge, models, mask)
        found = await asyncio.gather(*(made._ask(label.finding) for label in judge.labels))
        made.agreement = measure_agreement(
            [label.answers for label in judge.labels],
            [answers for answers, _ in found],
            gates=judge.gates,
            least=judge.agreement_min,
            unavailable=next((problem for answers, problem in found if answers is None), ""),
        )
        return made

    @property
    def result(self) -> JudgeResult:
        """The agreement and the usage so far."""
        usage, agreement = self._usage, self.agreement
        return JudgeResult(
            role=agreement.role,
            sentence=agreement.sentence,
            kappa=agreement.kappa,
            answers=agreement.answers,
            calls=usage.calls,
            failed_calls=usage.failed,
            tokens=usage.tokens,
            cost_usd=usage.cost_usd,
            cost_complete=usage.cost_complete,
        )

    async def judged(self, judged: Judgement, finding: Finding | None) -> Judgement:
        """Adds the answers about a sample to its outcome; one that is unclear is not judged.

        Args:
            judged: by the checks without a model.
            finding: of the sample.
        """
        agreement = self.agreement
        if finding is None or judged.outcome is Outcome.INCONCLUSIVE:
            return judged
        if agreement.role == "Unavailable":
            return with_judge(judged, unanswered(agreement.sentence, gates=True), gates=True)
        answers, problem = await self._ask(judged_text(finding))
        if answers is None:
            checks = unanswered(f"The judge could not be asked: {problem}", gates=agreement.gates)
        else:
            checks = judge_checks(self._judge.checklist, answers, gates=agreement.gates)
        return with_judge(judged, checks, gates=agreement.gates)

    async def _ask(self, text: str) -> tuple[tuple[CheckedAnswer, ...] | None, str]:
        """Returns the answers, or None and why there are none."""
        async with self._places:
            if (spent := judge_budget_spent(self._judge.budget, self._usage)) is not None:
                return None, spent
            ended = await call_judge(self._judge, text, self._models, self._mask)
        usage = self._usage
        known = None if ended.cost_usd is None else (usage.cost_usd or Decimal(0)) + ended.cost_usd
        self._usage = replace(
            usage,
            calls=usage.calls + 1,
            failed=usage.failed + (ended.answers is None),
            tokens=usage.tokens + ended.tokens,
            cost_usd=usage.cost_usd if known is None else known,
            cost_complete=usage.cost_complete and known is not None,
        )
        if ended.answers is None:
            return None, ended.problem or ""
        return tuple(map(stored_answer, ended.answers)), ""
