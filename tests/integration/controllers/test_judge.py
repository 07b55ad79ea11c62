"""Tests that the judge of a suite decides only with measured agreement, and that an unavailable one decides nothing."""

import asyncio
import json
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from integration.controllers.desk import Desk, eventually
from integration.controllers.test_evals import RIGHT, answer, measure, recording, verdict
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode
from tarsy.record.usage import Usage
from tarsy.store.judging.judge_calls import JudgeCalls
from unit.engine.build import ScriptedModels
from wire.scripted_client import Answer

pytestmark = pytest.mark.once("the API server takes no part in it")

NAMES = ("dns", "oom", "volume")
QUESTION = {"name": "limit", "question": "Does the finding name the memory limit?"}
JUDGE = {"llmProviderRef": {"name": "judge"}, "checklist": [QUESTION], "gates": True}
USAGE = Usage(input_tokens=90, output_tokens=10)
VAGUE = "Deployment/checkout was killed."


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are looked at again soon, and failed calls are made again soon."""
    monkeypatch.setattr("tarsy.controllers.eval_run.LOOK_SECONDS", 0.2)
    monkeypatch.setattr("tarsy.controllers.eval_run.RECHECK_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.eval_suite.RECHECK_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.evals.judging.AGAIN_SECONDS", 0.1)


def reply(said: str, quote: str = "") -> Answer:
    return Answer(json.dumps({"answers": [{"question": "limit", "answer": said, "quote": quote}]}), usage=USAGE)


def careful(request: GenerateRequest) -> Answer:
    """A judge that answers as people do."""
    named = "limit is 64Mi" in request.messages[1].content
    return reply("yes", "limit is 64Mi") if named else reply("no")


def flattered(request: GenerateRequest) -> Answer:
    """A judge that approves everything; a quote is always there."""
    return reply("yes", "Deployment/checkout was killed")


def labels() -> list[dict[str, Any]]:
    """Eight labelled findings: half of them name the limit."""
    return [
        {
            "finding": f"{RIGHT if number % 2 else VAGUE} ({number}) password: hunter2-hunter2",
            "answers": [{"question": "limit", "answer": "Yes" if number % 2 else "No"}],
        }
        for number in range(8)
    ]


async def judged_suite(desk: Desk, judge: dict[str, Any] = JUDGE) -> None:
    """A suite of three cases with 24 labelled findings."""
    await desk.configure()
    rates = {"inputPerMillion": 1, "outputPerMillion": 1}
    await desk.put("LLMProvider", "judge", {"type": "openai", "model": "judge", "rates": rates})
    await desk.core("ConfigMap", "cases", {"data": {one: recording() for one in NAMES}})
    cases = [
        {
            "name": name,
            "source": {"configMapKeyRef": {"name": "cases", "key": name}},
            "expect": {"rootCause": {"entities": ["Deployment/checkout"]}},
            "labels": labels(),
        }
        for name in NAMES
    ]
    await desk.put("EvalSuite", "shop", {"cases": cases, "gate": {"passRateMin": 1}, "judge": judge})


async def checks(desk: Desk, run: dict[str, Any]) -> list[tuple[str, str]]:
    samples = await desk.evals.samples(UUID(run["metadata"]["uid"]))
    return sorted((check["name"], check["outcome"]) for sample in samples for check in sample.checks or ())


async def test_judge_that_agrees_with_people_decides(desk: Desk) -> None:
    await judged_suite(desk)
    models = ScriptedModels(careful)
    async with desk.controller(models=models):
        await measure(desk, "good")
        for _ in NAMES:
            await answer(desk, RIGHT)
        found = await verdict(desk, "good")
        assert found["phase"] == "Passed"
        judge = found["judge"]
        assert (judge["role"], judge["agreement"], judge["answers"], judge["calls"]) == ("Gates", "1.00", 24, 27)
        assert (judge["totalTokens"], Decimal(judge["costUSD"])) == (2_700, Decimal("0.0027"))
        assert "The judge decides: its agreement with people is 1.00" in found["summary"]
        vague = await measure(desk, "vague", baseline="good")
        for _ in NAMES:
            await answer(desk, VAGUE)
        found = await verdict(desk, "vague")
        assert found["phase"] == "Regressed"  # which the checks without a model do not see
        assert found["cases"]["failed"] == 3
        assert await checks(desk, vague) == [("judge", "Failed")] * 3 + [("rootCause", "Passed")] * 3
    assert {request.messages[0].content.split("\n")[0] for request in models.requests} == {"Agent: judge"}
    assert not [request for request in models.requests if "hunter2" in request.messages[1].content]
    assert not await desk.pool.fetchval("SELECT count(*) FROM eval_run WHERE terms::text LIKE '%hunter2%'")


async def test_judge_that_approves_everything_informs_only_and_says_so(desk: Desk) -> None:
    await judged_suite(desk)
    async with desk.controller(models=ScriptedModels(flattered)):
        run = await measure(desk, "one")
        for _ in NAMES:
            await answer(desk, VAGUE)
        found = await verdict(desk, "one")
    assert found["phase"] == "Passed"
    assert (found["judge"]["role"], found["judge"]["agreement"]) == ("Informs", "0.00")
    assert "The judge informs only: an agreement of at least 0.70 is needed" in found["summary"]
    assert ("judge (informs only)", "Passed") in await checks(desk, run)


@pytest.mark.parametrize(("gates", "phase"), [(True, "Insufficient"), (False, "Passed")])
async def test_unavailable_judge_passes_no_suite_and_fails_none(desk: Desk, gates: bool, phase: str) -> None:
    await judged_suite(desk, {**JUDGE, "gates": gates})
    models = ScriptedModels(careful)
    models.missing = ModelError(ModelErrorCode.CREDENTIALS_MISSING, "provider judge: no key", retryable=False)
    async with desk.controller(models=models):
        run = await measure(desk, "one")
        for _ in NAMES:
            await answer(desk, RIGHT)
        found = await verdict(desk, "one")
    assert found["phase"] == phase
    assert found["judge"]["role"] == ("Unavailable" if gates else "Informs")
    assert "provider judge: no key" in found["judge"]["message"]
    assert found["judge"]["failedCalls"] == found["judge"]["calls"]
    assert ("judge" if gates else "judge (informs only)", "Inconclusive") in await checks(desk, run)


async def test_reached_budget_makes_the_judge_unavailable(desk: Desk) -> None:
    await judged_suite(desk, {**JUDGE, "budget": {"tokens": 500}})
    async with desk.controller(models=ScriptedModels(careful)):
        await measure(desk, "one")
        for _ in NAMES:
            await answer(desk, RIGHT)
        found = await verdict(desk, "one")
    assert found["phase"] == "Insufficient"
    assert "its budget of 500 tokens is reached" in found["judge"]["message"]
    assert found["judge"]["totalTokens"] <= 500 + 2 * 100


async def test_call_that_was_interrupted_is_on_record_and_made_again(desk: Desk) -> None:
    await judged_suite(desk)
    never = asyncio.Event()
    asked = 0

    def hangs(request: GenerateRequest) -> Answer:
        nonlocal asked
        asked += 1
        return careful(request) if asked <= 5 else Answer(wait=never)

    async with desk.controller(models=ScriptedModels(hangs)):
        run = UUID((await measure(desk, "one"))["metadata"]["uid"])

        async def hanging() -> bool:
            return asked >= 7

        await eventually(hanging)
        for _ in NAMES:
            await answer(desk, RIGHT)
    models = ScriptedModels(careful)
    async with desk.controller(models=models):  # as after kill -9: nobody ended the calls of the first
        found = await verdict(desk, "one")
    assert (found["phase"], found["judge"]["role"]) == ("Passed", "Gates")
    assert (found["judge"]["calls"], found["judge"]["failedCalls"]) == (29, 2)
    assert found["judge"]["costUSD"].endswith("+")
    assert len(models.requests) == 27 - 5
    states = await desk.pool.fetch("SELECT state, count(*) AS n FROM judge_call WHERE run = $1 GROUP BY state", run)
    assert {row["state"]: row["n"] for row in states} == {"completed": 27, "interrupted": 2}


async def test_what_is_wrong_with_judge_and_labels_is_told(desk: Desk) -> None:
    judge = {**JUDGE, "llmProviderRef": {"name": "gone"}, "checklist": [{"name": "other", "question": "Is it?"}]}
    await judged_suite(desk, judge)
    async with desk.controller(models=ScriptedModels(careful)):

        async def told() -> bool:
            status, _, message = (await desk.conditions("EvalSuite", "shop")).get("Ready", ("", "", ""))
            assert status == "False"
            assert "spec.judge.llmProviderRef.name: LLMProvider" in message
            assert "spec.cases[1].labels: no question of spec.judge.checklist is named limit" in message
            return True

        await eventually(told)


async def test_first_end_of_a_call_stays_and_one_answer_is_enough(desk: Desk) -> None:
    from tarsy.store.judging.eval_rows import NewEvalRun
    from tarsy.store.judging.judge_calls import EndedJudgeCall, JudgeItem

    run, item = uuid4(), JudgeItem("oom", "sample", 0)
    new = NewEvalRun(run, "shop", "ns", "one", uuid4(), "s", "d", {}, "c", "shop", "r")
    await desk.evals.begin(new)
    first, second = (JudgeCalls(desk.pool, uuid4()) for _ in range(2))
    assert await first.begin(run, item) == 1
    assert await first.begin(run, item) is None  # its own is under way
    assert await second.begin(run, item) == 2  # the first is gone
    late = EndedJudgeCall(answers=[{"question": "limit", "answer": "No"}], tokens=7, cost_usd=Decimal(1))
    await first.end(run, item, 1, late)
    assert (await second.newest(run))[item].state == "started"
    right = EndedJudgeCall(answers=[{"question": "limit", "answer": "Yes"}], tokens=5, cost_usd=Decimal(2))
    await second.end(run, item, 2, right)
    await second.end(run, item, 2, late)
    newest = (await second.newest(run))[item]
    assert (newest.state, newest.answers) == ("completed", [{"question": "limit", "answer": "Yes"}])
    assert await first.begin(run, item) is None
    usage = await first.usage(run)
    assert (usage.calls, usage.failed, usage.tokens, usage.cost_complete) == (2, 1, 5, False)
    await first.agree(run, {"role": "Gates", "sentence": "a"})
    await first.agree(run, {"role": "Informs", "sentence": "b"})
    record = await desk.evals.run(run)
    assert record is not None and record.agreement == {"role": "Gates", "sentence": "a"}
