"""Calls the judge of a suite, about one finding in a cluster and on one machine alike, or for a score."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from decimal import Decimal

from tarsy.engine.limits.budget import cost
from tarsy.engine.model_calls.request import worst_case
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
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode, WaitChunk
from tarsy.plan.model import AgentLimits, ProviderPlan
from tarsy.store.judging.judge_calls import EndedJudgeCall
from tarsy.store.judging.judge_spending import NOT_SENT, JudgeSpending

_log = logging.getLogger(__name__)

JUDGE_SECONDS = 180.0
"""Time limit of a call with all retries."""

WAIT_SECONDS = 120.0
"""Time limit of a wait for the limits of the LLMProvider."""

JUDGE_LEASE_SECONDS = WAIT_SECONDS + JUDGE_SECONDS + 30
"""Seconds after which a call that has not ended was interrupted."""

_LONGEST_PROBLEM = 300
_NOT_BILLED = frozenset(
    {
        ModelErrorCode.CREDENTIALS_MISSING,
        ModelErrorCode.CREDENTIALS,
        ModelErrorCode.INVALID_REQUEST,
        ModelErrorCode.NOT_FOUND,
        ModelErrorCode.RATE_LIMIT,
    }
)
"""Failures of a call that no model has read. Every other one may be billed."""


class NoReply(Exception):
    """The judge did not reply; the message says why, without secrets.

    Args:
        problem: a clause or a sentence.
        cause: of the provider, where it said one.
        sent: whether the request may have left.
    """

    def __init__(self, problem: str, cause: ModelError | None = None, *, sent: bool = True) -> None:
        super().__init__(problem)
        self.billed = sent and (cause is None or cause.code not in _NOT_BILLED or cause.started)
        """Whether a model may have read the request."""


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
    waits = False
    try:
        async with asyncio.timeout(JUDGE_SECONDS) as limit, models.client(provider) as client:

            def waiting(wait: WaitChunk) -> None:
                nonlocal waits
                waits = not wait.over
                seconds = WAIT_SECONDS if waits else JUDGE_SECONDS
                limit.reschedule(asyncio.get_running_loop().time() + seconds)

            return await ask_judge(client, request, waiting)
    except ModelError as error:
        raise NoReply(mask(error.message)[:_LONGEST_PROBLEM], error) from error
    except TimeoutError:
        if waits:
            told = f"{judge} waited for the limits of LLMProvider {provider.ref.name} for {WAIT_SECONDS:g} s"
            raise NoReply(told, sent=False) from None
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
        return EndedJudgeCall(problem=str(error), usage=None if error.billed else NOT_SENT)
    tokens, spent = _usage(judge, reply)
    try:
        answers = read_answers(reply.text, judge.checklist, text)
    except ReplyUnreadable as error:
        return EndedJudgeCall(problem=str(error), tokens=tokens, cost_usd=spent, usage=reply.usage)
    told = [
        {"question": one.question, "answer": one.answer.value, "quote": mask(one.quote), "why": one.why}
        for one in answers
    ]
    return EndedJudgeCall(answers=told, tokens=tokens, cost_usd=spent, usage=reply.usage)


def judge_spending(namespace: str, judge: FrozenJudge, text: str) -> JudgeSpending:
    """Returns what quotas count of a call about a finding.

    Args:
        namespace: of the EvalRun.
        judge: as frozen.
        text: of the finding.
    """
    provider = judge.provider
    size = sum(len(one.content.encode()) for one in checklist_request(judge.checklist, text).messages)
    worst = worst_case(size, None, provider, provider.context_window or AgentLimits().context_tokens)
    return JudgeSpending(
        namespace, provider.ref.name, provider.model, worst.tokens, worst.cost_usd, JUDGE_LEASE_SECONDS
    )


def stored_answer(stored: Mapping[str, str]) -> CheckedAnswer:
    """Returns an answer as `call_judge` stores it."""
    answer = ChecklistAnswer(stored["answer"])
    return CheckedAnswer(stored["question"], answer, stored.get("quote", ""), stored.get("why", ""))


def _usage(judge: FrozenJudge, reply: JudgeReply) -> tuple[int, Decimal | None]:
    """Returns tokens and cost of a call; the cost is None where it is not known."""
    tokens = reply.usage.total_tokens if reply.usage is not None else 0
    return tokens, cost(reply.usage, judge.provider.rates)
