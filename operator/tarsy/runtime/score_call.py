"""Calls the judge of a suite for the score of one investigation."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from tarsy.engine.limits.budget import cost
from tarsy.engine.ports import Models
from tarsy.evals.scoring import ScoreRequest, ScoreUnreadable, read_score
from tarsy.plan.model import ProviderPlan
from tarsy.record.judging.score import MissingTool, Score
from tarsy.record.usage import Usage
from tarsy.runtime.judge_call import JUDGE_LEASE_SECONDS, NoReply, reply_of_judge
from tarsy.store.judging.judge_spending import NOT_SENT, JudgeSpending
from tarsy.store.judging.scores import EndedScore, ScoreReservation


def score_reservation(asked: ScoreRequest, provider: ProviderPlan) -> ScoreReservation:
    """Returns the most that a call can use.

    Args:
        asked: the request.
        provider: that answers it.
    """
    most = Usage(input_tokens=asked.most_input_tokens, output_tokens=asked.most_output_tokens)
    return ScoreReservation(most.total_tokens, cost(most, provider.rates))


def score_spending(namespace: str, most: ScoreReservation, provider: ProviderPlan) -> JudgeSpending:
    """Returns what quotas count of a call.

    Args:
        namespace: of the suite.
        most: as `score_reservation` returns it.
        provider: that answers it.
    """
    return JudgeSpending(namespace, provider.ref.name, provider.model, most.tokens, most.cost_usd, JUDGE_LEASE_SECONDS)


async def call_for_score(
    asked: ScoreRequest, provider: ProviderPlan, models: Models, mask: Callable[[str], str]
) -> EndedScore:
    """Calls a judge once; a failure is a result.

    Args:
        asked: the request.
        provider: as `scoring_provider` returns it.
        models: clients for LLMProviders.
        mask: takes secrets out of what the judge says, and of failures.
    """
    try:
        reply = await reply_of_judge(provider, asked.request, models, mask, judge="the judge")
    except NoReply as error:
        if error.billed:
            return EndedScore(problem=_sentence(str(error)))
        return EndedScore(problem=_sentence(str(error)), tokens=0, cost_usd=Decimal(0), usage=NOT_SENT)
    tokens, spent = None, None
    if reply.usage is not None and reply.usage.complete:
        tokens, spent = reply.usage.total_tokens, cost(reply.usage, provider.rates)
    try:
        score = _masked(read_score(reply.text, asked), mask)
    except ScoreUnreadable as error:
        return EndedScore(problem=_sentence(str(error)), tokens=tokens, cost_usd=spent, usage=reply.usage)
    return EndedScore(score=score, tokens=tokens, cost_usd=spent, usage=reply.usage)


def _sentence(problem: str) -> str:
    """Returns a problem as it is stored and shown: with a capital letter and a full stop."""
    text = problem.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


def _masked(score: Score, mask: Callable[[str], str]) -> Score:
    return replace(
        score,
        reason=mask(score.reason),
        evidence=tuple(map(mask, score.evidence)),
        missing_tools=tuple(MissingTool(mask(one.name), mask(one.why)) for one in score.missing_tools),
    )
