"""Calls the judge of a suite, about one finding in a cluster and on one machine alike, or for a score."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from decimal import Decimal

from tarsy.engine.limits.budget import cost
from tarsy.engine.ports import Models
from tarsy.evals.cases import FrozenJudge
from tarsy.evals.checklist import (
    CheckedAnswer,
    ChecklistAnswer,
    JudgeReply,
    ReplyUnreadable,
    ask_judge,
    checklist_request,
    read_answers,
)
from tarsy.llm.protocol import GenerateRequest, ModelError
from tarsy.plan.model import ProviderPlan
from tarsy.store.judge_calls import EndedJudgeCall

_log = logging.getLogger(__name__)

JUDGE_SECONDS = 180.0
"""Time limit of a call with all retries."""

_LONGEST_PROBLEM = 300


class NoReply(Exception):
    """The judge did not reply; the message says why, without secrets.

    Args:
        problem: a clause or a sentence.
        cause: of the provider, where it said one.
    """

    def __init__(self, problem: str, cause: ModelError | None = None) -> None:
        super().__init__(problem)
        self.cause = cause


async def reply_of_judge(
    provider: ProviderPlan, request: GenerateRequest, models: Models, mask: Callable[[str], str], *, judge: str = "it"
) -> JudgeReply:
    """Sends a request to a judge, once.

    Args:
        provider: of the judge.
        request: what it is asked.
        models: clients for LLMProviders.
        mask: takes secrets out of what a provider says of a failure.
        judge: what the message of a timeout calls it.

    Raises:
        NoReply: there is none.
    """
    try:
        async with asyncio.timeout(JUDGE_SECONDS), models.client(provider) as client:
            return await ask_judge(client, request)
    except ModelError as error:
        raise NoReply(mask(error.message)[:_LONGEST_PROBLEM], error) from error
    except TimeoutError:
        raise NoReply(f"{judge} did not answer within {JUDGE_SECONDS:g} s") from None
    except Exception as error:
        _log.exception("the judge of a suite could not be called")
        raise NoReply(f"an error in TARSy itself ({type(error).__name__}); the log has the details") from error


async def call_judge(judge: FrozenJudge, text: str, models: Models, mask: Callable[[str], str]) -> EndedJudgeCall:
    """Calls a judge once; a failure is a result.

    Args:
        judge: as frozen.
        text: of the finding.
        models: clients for LLMProviders.
        mask: takes secrets out of quotes and failures.
    """
    try:
        reply = await reply_of_judge(judge.provider, checklist_request(judge.checklist, text), models, mask)
    except NoReply as error:
        return EndedJudgeCall(problem=str(error))
    tokens, spent = _usage(judge, reply)
    try:
        answers = read_answers(reply.text, judge.checklist, text)
    except ReplyUnreadable as error:
        return EndedJudgeCall(problem=str(error), tokens=tokens, cost_usd=spent)
    told = [
        {"question": one.question, "answer": one.answer.value, "quote": mask(one.quote), "why": one.why}
        for one in answers
    ]
    return EndedJudgeCall(answers=told, tokens=tokens, cost_usd=spent)


def stored_answer(stored: Mapping[str, str]) -> CheckedAnswer:
    """Returns an answer as `call_judge` stores it."""
    answer = ChecklistAnswer(stored["answer"])
    return CheckedAnswer(stored["question"], answer, stored.get("quote", ""), stored.get("why", ""))


def _usage(judge: FrozenJudge, reply: JudgeReply) -> tuple[int, Decimal | None]:
    """Returns tokens and cost of a call; the cost is None where it is not known."""
    tokens = reply.usage.total_tokens if reply.usage is not None else 0
    return tokens, cost(reply.usage, judge.provider.rates)
