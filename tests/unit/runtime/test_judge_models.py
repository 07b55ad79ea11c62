"""Tests that calls of judges are counted as those of runs are."""

import asyncio

import pytest

from tarsy.evals.checklist import JudgeReply
from tarsy.llm.protocol import EndChunk, GenerateRequest, LLMClient, ModelError, ModelErrorCode, WaitChunk
from tarsy.observe import metric_table as table
from tarsy.observe.metrics import Metrics
from tarsy.plan.model import ObjectRef, PlannedRates, ProviderPlan
from tarsy.record.messages import Message, Role
from tarsy.record.usage import Usage
from tarsy.runtime.judge_call import NoReply, reply_of_judge
from tarsy.runtime.judge_models import JudgeModels
from unit.engine.build import ScriptedModels
from wire.scripted_client import Answer

PROVIDER = ProviderPlan(
    ref=ObjectRef(kind="LLMProvider", namespace="shop", name="judge", uid="u", generation=1),
    type="openai",
    model="judge-1",
    rates=PlannedRates(input=10.0, output=10.0),
)
USED = Usage(input_tokens=1000, output_tokens=100, thinking_tokens=10, cached_tokens=5)


async def asked(answer: Answer, agent: str = "judge") -> tuple[Metrics, JudgeReply | NoReply]:
    metrics = Metrics()
    request = GenerateRequest((Message(Role.USER, "?"),), execution="e", agent=agent)
    models = JudgeModels(ScriptedModels(lambda _: answer), metrics)
    try:
        return metrics, await reply_of_judge(PROVIDER, request, models, lambda text: text)
    except NoReply as error:
        return metrics, error


@pytest.mark.parametrize(("agent", "kind"), [("judge", "checklist"), ("score", "score")])
async def test_an_answer_is_counted_with_tokens_and_cost(agent: str, kind: str) -> None:
    metrics, reply = await asked(Answer("yes", usage=USED), agent)
    assert isinstance(reply, JudgeReply) and reply.usage == USED
    assert metrics.value(table.MODEL_CALLS, provider_type="openai", kind=kind, outcome="completed") == 1
    assert metrics.value(table.MODEL_TOKENS, provider_type="openai", kind="input") == 1000
    assert metrics.value(table.MODEL_TOKENS, provider_type="openai", kind="output") == 100
    assert metrics.value(table.MODEL_COST, provider_type="openai") == pytest.approx(0.011)


@pytest.mark.parametrize(
    ("code", "billed"), [(ModelErrorCode.RATE_LIMIT, False), (ModelErrorCode.CREDENTIALS, False),
                         (ModelErrorCode.TIMEOUT, True), (ModelErrorCode.PARTIAL_STREAM, True)]
)  # fmt: skip
async def test_a_failure_is_counted_and_says_whether_it_may_be_billed(code: ModelErrorCode, billed: bool) -> None:
    metrics, reply = await asked(Answer(error=ModelError(code, "no", retryable=False)))
    assert isinstance(reply, NoReply) and reply.billed is billed
    assert metrics.value(table.MODEL_CALLS, provider_type="openai", kind="checklist", outcome="failed") == 1
    assert metrics.value(table.MODEL_ERRORS, provider_type="openai", code=code.value) == 1


class _Waits:
    """Models whose calls wait for the limits of their provider, for ever or until they are let through."""

    def __init__(self, over: bool) -> None:
        self._over = over

    def client(self, provider: ProviderPlan) -> "_Waits":
        return self

    async def __aenter__(self) -> LLMClient:
        return self  # type: ignore[return-value]

    async def __aexit__(self, *_: object) -> None:
        return None

    async def generate(self, request: GenerateRequest):  # type: ignore[no-untyped-def]
        yield WaitChunk("maxConcurrent", 1)
        if self._over:
            yield WaitChunk("maxConcurrent", 1, over=True)
            yield EndChunk("stop", None)
        await asyncio.Event().wait()


@pytest.mark.parametrize("over", [True, False])
async def test_a_wait_for_the_limits_of_the_provider_is_no_call(over: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.runtime.judge_call.WAIT_SECONDS", 0.01)
    monkeypatch.setattr("tarsy.runtime.judge_call.JUDGE_SECONDS", 0.02)
    request = GenerateRequest((Message(Role.USER, "?"),), execution="e", agent="judge")
    with pytest.raises(NoReply) as refused:
        await reply_of_judge(PROVIDER, request, _Waits(over), lambda text: text)
    assert refused.value.billed is over
    told = "it did not answer within" if over else "it waited for the limits of LLMProvider judge for"
    assert str(refused.value).startswith(told)
