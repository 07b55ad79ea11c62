"""Runs in a namespace with a quota: they wait, are ended, conclude early or are triaged, as the quota says."""

from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from integration.store.build import worker
from integration.store.parking import Fleet, accept, let_pass
from tarsy.plan.model import AgentLimits, ChangesPlan, Plan, StagePlan
from tarsy.record.quota import OnExceeded, QuotaLimits
from tarsy.record.run import InvestigationRecord, State
from tarsy.record.waiting import WaitingLimits
from tarsy.store.quotas import Quotas
from tarsy.store.reading.reads import Reads
from unit.engine.build import agent, by_turn, call, plan, stage
from wire.scripted_client import Answer

OUTPUT = 2_000
CHANGES = StagePlan(name="changes", changes=ChangesPlan(account="reader"))
BRAIN = by_turn({"reader": [Answer("I look.", tool_calls=(call("k8s.get"),)), Answer("One replica.")]})


def reading(*, output: int | None = OUTPUT, before: tuple[StagePlan, ...] = ()) -> Plan:
    """A plan of one agent with two model calls, whose answers have a longest size."""
    reader = agent("reader", servers=["k8s"])
    provider = reader.provider.model_copy(update={"max_output_tokens": output, "context_window": 100_000})
    return plan(
        *before,
        stage("read", reader.model_copy(update={"provider": provider})),
        limits=AgentLimits(finding_repairs=0),
    )


async def publish(pool: asyncpg.Pool, tokens: int, on_exceeded: OnExceeded, generation: int = 1) -> None:
    limits = QuotaLimits("hour", tokens=tokens, on_exceeded=on_exceeded)
    await Quotas(pool).publish("uid-hour", "team-a", "hour", generation, limits)


async def work(pool: asyncpg.Pool, of: Plan, fleet: Fleet) -> tuple[UUID, InvestigationRecord]:
    run = await accept(pool, of)
    await fleet.all_that_can(await worker(pool))
    return run, await fleet.record(run)


async def worst_case(pool: asyncpg.Pool) -> list[int]:
    rows = await pool.fetch("SELECT worst_tokens FROM llm_interaction ORDER BY started_at")
    return [row["worst_tokens"] for row in rows]


async def one_call(pool: asyncpg.Pool) -> int:
    """Measures a limit that has room for each call of a run alone, and not for the second after the first."""
    fleet = Fleet(pool, brain=BRAIN)
    await work(pool, reading(), fleet)
    worst = await worst_case(pool)
    assert len(worst) == 2 and OUTPUT < worst[0] < worst[1] + 1_000
    await pool.execute("DELETE FROM investigation")
    return max(worst)


async def test_worst_case_is_the_request_and_the_longest_answer(pool: asyncpg.Pool) -> None:
    fleet = Fleet(pool, brain=BRAIN)
    await work(pool, reading(output=None), fleet)
    assert (await worst_case(pool))[0] == 100_000, "without a limit the answer may fill the context window"


async def test_queue_parks_a_run_until_the_next_period(pool: asyncpg.Pool) -> None:
    await publish(pool, await one_call(pool), "Queue")
    fleet = Fleet(pool, brain=BRAIN)
    run, record = await work(pool, reading(), fleet)
    assert record.parked is not None
    assert record.parked.reason == "Quota"
    assert record.parked.until - record.parked.since <= timedelta(hours=1)
    assert record.parked.sentence.startswith("InvestigationQuota hour allows ")
    assert (record.model_calls, await pool.fetchval("SELECT count(*) FROM quota_reservation")) == (1, 0)
    await let_pass(pool, run, 3600)
    await pool.execute("UPDATE quota_usage SET starts_at = starts_at - interval '1 hour'")
    await fleet.all_that_can(await worker(pool))
    ended = await fleet.record(run)
    assert (ended.state, ended.model_calls, ended.budget_exceeded) == (State.COMPLETED, 2, None)


@pytest.mark.parametrize("on_exceeded", ["Queue", "Reject", "TriageOnly"])
async def test_run_that_cannot_wait_concludes_with_what_it_has(pool: asyncpg.Pool, on_exceeded: OnExceeded) -> None:
    await publish(pool, await one_call(pool), on_exceeded)
    fleet = Fleet(pool, brain=BRAIN, waiting=WaitingLimits(seconds=0.0))
    _, record = await work(pool, reading(), fleet)
    assert record.outcome is not None
    assert record.state is State.COMPLETED
    assert "This agent was cut off before it concluded; its last output:\n\nI look." in (
        record.outcome.final_analysis or ""
    )
    assert record.budget_exceeded is not None
    assert record.budget_exceeded.limit == "Quota"
    assert record.budget_exceeded.message.startswith("InvestigationQuota hour allows ")


async def test_call_that_never_fits_does_not_wait(pool: asyncpg.Pool) -> None:
    await publish(pool, 100, "Queue")
    _, record = await work(pool, reading(), Fleet(pool, brain=BRAIN))
    assert record.parked is None
    assert record.budget_exceeded is not None
    assert record.budget_exceeded.message.endswith(
        "Raise hard.tokens of the quota, or lower maxOutputTokens of the LLMProvider."
    )


async def test_triage_answers_with_evidence_and_asks_no_model(pool: asyncpg.Pool) -> None:
    await publish(pool, 0, "TriageOnly")
    fleet = Fleet(pool, brain=BRAIN)
    run, record = await work(pool, reading(before=(CHANGES,)), fleet)
    assert record.outcome is not None
    assert record.outcome.finding is not None
    assert record.state is State.COMPLETED
    told = "No model was asked. InvestigationQuota hour allows 0 tokens an hour"
    assert told in (record.outcome.final_analysis or "")
    assert any(note.startswith(told) for note in record.outcome.finding.notes)
    assert (record.model_calls, record.usage.total_tokens) == (0, 0)
    assert [stage.name for stage in record.stages] == ["changes"]
    assert await pool.fetchval("SELECT count(*) FROM llm_interaction") == 0
    assert [event.type for event in await Reads(pool).timeline(run)][-1] == "final_analysis"


async def test_triage_of_a_chain_without_evidence_says_what_is_missing(pool: asyncpg.Pool) -> None:
    await publish(pool, 0, "TriageOnly")
    _, record = await work(pool, reading(), Fleet(pool, brain=BRAIN))
    assert record.outcome is not None
    assert record.outcome.failure is not None
    assert (record.state, record.outcome.failure.reason) == (State.FAILED, "QuotaExceeded")
    assert "has no stage of kind Changes, which would answer without a model" in record.outcome.failure.message
