"""SIGKILL of the operator while a judge scores: the score is made once more, and both calls are paid for."""

import json
from uuid import UUID

import pytest
import yaml

from chaos.fleet import Fleet
from e2e.tenant import ANSWER, Tenant, condition
from e2e.waiting import until
from tarsy.record.judging.score import ScoreState, StoredScore
from tarsy.store.judging.scores import Scores

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.once("the API takes no part in what is shown"),
]

SCORE = json.dumps({"score": 30, "reason": "As shown.", "evidence": [], "tags": [], "missing_tools": []})
SCRIPT = yaml.safe_dump(
    {
        "agents": {"agent": [{"text": json.loads(ANSWER)}]},
        "sequential": [{"text": SCORE, "gate": "under-way"}, {"text": SCORE}, {"text": SCORE}],  # of the judge
    }
)
JUDGE = {
    "llmProviderRef": {"name": "model"},
    "checklist": [{"name": "disk", "question": "Does the finding name the disk?"}],
}


async def test_a_score_that_kill_9_interrupted_is_made_once_more_and_both_calls_are_paid_for(
    bare_tenant: Tenant, fleet: Fleet
) -> None:
    tenant, scores = bare_tenant, Scores(bare_tenant.pool)
    await tenant.use_model(SCRIPT)
    provider = (await tenant.get("model", "LLMProvider"))["spec"]
    await tenant.put("LLMProvider", "model", {**provider, "rates": {"inputPerMillion": 1, "outputPerMillion": 1}})
    await tenant.use_agent("agent")
    await tenant.use_chain(["agent"])
    scoring = {"enabled": True, "chains": ["chain"], "budget": {"tokens": 1_000_000}}
    await tenant.put("EvalSuite", "quality", {"judge": JUDGE, "scoring": scoring})
    fleet.operator()

    async def scores_now() -> bool:
        return condition(await tenant.get("quality", "EvalSuite"), "Scoring") == "True"

    await until("the suite scores", scores_now)
    run = await tenant.investigate()
    await tenant.asked(2)  # the agent, and the judge, whose answer does not come
    reserved = await _spent(tenant, run)
    await fleet.disband()
    await tenant.pool.execute("UPDATE score SET expires_at = now() - interval '1 second'")
    await tenant.machine.lapse_of_all()
    fleet.operator()

    found = await _completed(scores, run)
    assert found.attempts == 2 and len(tenant.model.journal.requests) == 3
    assert reserved < found.tokens < 2 * reserved and not found.cost_complete, "the lost call counts as the most"
    assert await _spent(tenant, run) == found.tokens

    await scores.request(found.suite, run, "again")
    again = await _completed(scores, run, 2)
    assert (again.attempts, again.cost_complete, len(tenant.model.journal.requests)) == (1, True, 4)
    assert await _spent(tenant, run) == found.tokens + again.tokens


async def _completed(scores: Scores, run: UUID, number: int = 1) -> StoredScore:
    """The scoring of this number, once it is completed."""

    async def completed() -> list[StoredScore]:
        found = await scores.of_run(run)
        return [one for one in found if one.round == number and one.state is ScoreState.COMPLETED]

    await until(f"scoring {number} is completed", completed)
    return (await completed())[0]


async def _spent(tenant: Tenant, run: UUID) -> int:
    """Tokens used and reserved today by the suite that scores a run."""
    of_suite = (
        "SELECT DISTINCT d.tokens FROM scoring_day d JOIN score s ON s.suite = d.suite WHERE s.investigation = $1"
    )
    ((tokens,),) = await tenant.rows(of_suite, run)
    return int(tokens)
