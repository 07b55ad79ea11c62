"""Calls of judges in the ledger of quotas: they reserve, settle and crash as exactly as those of runs."""

import asyncio
from decimal import Decimal
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.store.build import begun_run
from integration.store.test_quotas import LIMIT, a_call, publish, reserved, usage
from integration.store.test_reviews import ended as ended_run
from tarsy.record.quota import QuotaRefused
from tarsy.record.usage import Usage
from tarsy.store.judging.eval_rows import NewEvalRun
from tarsy.store.judging.evals import Evals
from tarsy.store.judging.judge_calls import EndedJudgeCall, JudgeCalls, JudgeItem
from tarsy.store.judging.judge_spending import NOT_SENT, JudgeSpending
from tarsy.store.judging.scores import EndedScore, ScoreReservation, Scores
from tarsy.store.quotas import Quotas
from tarsy.store.reading.reads import Reads

SHARE = LIMIT // 2
"""Half of the limit is for replays and judges."""

ITEM = JudgeItem("oom", "sample", 0)
USED = Usage(input_tokens=100, output_tokens=20)
ANSWERED = EndedJudgeCall(answers=[], tokens=120, cost_usd=Decimal("0.2"), usage=USED)


def spending(tokens: int = 100, usd: str | None = None, lease_seconds: float = 60.0) -> JudgeSpending:
    dollars = None if usd is None else Decimal(usd)
    return JudgeSpending("team-a", "judge", "judge-1", tokens, dollars, lease_seconds)


async def judged(pool: asyncpg.Pool) -> tuple[JudgeCalls, UUID]:
    """An EvalRun whose judge may be called."""
    run = uuid4()
    await Evals(pool).begin(
        NewEvalRun(run, "team-a", "uid-of-team-a", "one", uuid4(), "s", "d", {}, "c", "team-a", "r")
    )
    return JudgeCalls(pool, uuid4()), run


async def ledger(pool: asyncpg.Pool, share: str = "replays") -> tuple[int, int]:
    """Spent and reserved tokens of a share; those of the whole are the same where only judges spend."""
    found = await usage(pool, share=share)
    return found.spent_tokens, found.reserved_tokens


@pytest.mark.parametrize("tokens", [SHARE - 1, SHARE, SHARE + 1])
async def test_a_judge_gets_the_share_of_replays_and_not_a_token_more(pool: asyncpg.Pool, tokens: int) -> None:
    await publish(pool, tokens=LIMIT)
    calls, run = await judged(pool)
    if tokens <= SHARE:
        assert await calls.begin(run, ITEM, spending(tokens)) == 1
        assert await ledger(pool) == await ledger(pool, "all") == (0, tokens)
        return
    with pytest.raises(QuotaRefused, match="allows replays 500 tokens a month"):
        await calls.begin(run, ITEM, spending(tokens))
    assert await calls.newest(run) == {}
    assert await ledger(pool) == (0, 0)


@pytest.mark.parametrize(
    ("end", "spent"),
    [
        (ANSWERED, 120),
        (EndedJudgeCall(problem="cut"), 300),
        (EndedJudgeCall(problem="cut", usage=Usage(input_tokens=9, complete=False)), 300),
        (EndedJudgeCall(problem="no key", usage=NOT_SENT), 0),
    ],
)
async def test_a_call_settles_to_what_it_used_or_may_have_used(
    pool: asyncpg.Pool, end: EndedJudgeCall, spent: int
) -> None:
    await publish(pool, tokens=LIMIT, cost_usd=Decimal(10))
    calls, run = await judged(pool)
    of = spending(300, "0.5")
    attempt = await calls.begin(run, ITEM, of)
    assert attempt == 1
    for _ in range(2):  # the first end stays
        await calls.end(run, ITEM, attempt, end, of.id)
    assert await ledger(pool) == await ledger(pool, "all") == (spent, 0)
    dollars = {120: "0.2", 300: "0.5", 0: "0"}[spent]
    assert (await usage(pool)).spent_usd == Decimal(dollars)


async def test_a_call_whose_controller_died_counts_in_full_after_its_lease(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT)
    calls, run = await judged(pool)
    lost, alive = spending(300, lease_seconds=-1.0), spending(50)
    await calls.begin(run, ITEM, lost)
    await calls.begin(run, JudgeItem("oom", "sample", 1), alive)
    await Quotas(pool).interrupt_judges()
    assert await ledger(pool) == (300, 50)
    await calls.end(run, ITEM, 1, ANSWERED, lost.id)  # it was only slow
    assert await ledger(pool) == (300, 50)


async def test_what_is_deleted_meanwhile_is_spent(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT)
    calls, run = await judged(pool)
    of = spending(300)
    await calls.begin(run, ITEM, of)
    await pool.execute("DELETE FROM eval_run")
    assert await ledger(pool) == (300, 0)
    await calls.end(run, ITEM, 1, ANSWERED, of.id)
    assert await ledger(pool) == (300, 0)


async def test_judges_side_by_side_and_an_alert_share_a_limit(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT)
    calls, run = await judged(pool)
    begun = await begun_run(pool)

    async def begin(number: int) -> bool:
        try:
            return await calls.begin(run, JudgeItem("oom", "sample", number), spending(100)) is not None
        except QuotaRefused:
            return False

    assert sum(await asyncio.gather(*map(begin, range(12)))) == SHARE // 100
    assert await reserved(pool) == SHARE
    await begun.write.model_call_started(a_call(begun.agent.id, tokens=LIMIT - SHARE))
    with pytest.raises(QuotaRefused):
        await begun.write.model_call_started(a_call(begun.agent.id, 1, tokens=1))


async def test_a_score_that_has_no_room_leaves_no_trace(pool: asyncpg.Pool) -> None:
    await publish(pool, tokens=LIMIT)
    scores, suite, run = Scores(pool), uuid4(), await ended_run(pool, "scored")
    await scores.enroll(suite, "uid-of-team-a", "shop", "j1")
    await scores.request(suite, run, "t1")
    item = await scores.next(suite)
    assert item is not None
    most, day = ScoreReservation(SHARE + 1), ScoreReservation(10_000)
    with pytest.raises(QuotaRefused):
        await scores.begin(suite, item, "j1", most, day, 60, spending(SHARE + 1))
    assert await scores.next(suite) == item
    assert await pool.fetchval("SELECT count(*) FROM scoring_day") == 0
    of = spending(SHARE)
    assert await scores.begin(suite, item, "j1", most, day, 60, of) == 1
    assert await ledger(pool) == (0, SHARE)
    done = EndedScore(problem="unreadable", tokens=120, cost_usd=Decimal(0), usage=USED)
    await scores.end(suite, item, 1, done, again_seconds=None, rates=True, spending=of.id)
    assert await ledger(pool) == (120, 0)


async def test_a_new_quota_counts_what_judges_have_used(pool: asyncpg.Pool) -> None:
    calls, run = await judged(pool)
    of, still_open = spending(300), spending(50)
    await calls.begin(run, ITEM, of)
    await calls.end(run, ITEM, 1, ANSWERED, of.id)
    await calls.begin(run, JudgeItem("oom", "sample", 1), still_open)
    await publish(pool, tokens=LIMIT)
    assert await ledger(pool) == await ledger(pool, "all") == (120, 50)
    await calls.end(run, JudgeItem("oom", "sample", 1), 1, ANSWERED, still_open.id)
    assert await ledger(pool) == (240, 0)


async def test_reports_of_usage_have_judges(pool: asyncpg.Pool) -> None:
    calls, run = await judged(pool)
    of = spending(300)
    await calls.begin(run, ITEM, of)
    assert await Reads(pool).usage(3600, "model", replays=True) == []
    await calls.end(run, ITEM, 1, ANSWERED, of.id)
    assert await Reads(pool).usage(3600, "model") == [], "an EvalRun counts as its samples do"
    for by, name in (("model", "judge-1"), ("provider", "judge"), ("chain", "team-a/c"), ("alertType", "(EvalRun)")):
        (found,) = await Reads(pool).usage(3600, by, ["uid-of-team-a"], replays=True)  # type: ignore[arg-type]
        assert (found.name, found.calls, found.input_tokens, found.output_tokens) == (name, 1, 100, 20)
        assert (found.cost_usd, found.calls_of_unknown_usage, found.investigations) == (Decimal("0.2"), 0, 0)
    assert await Reads(pool).usage(3600, "model", ["uid-of-team-b"], replays=True) == []
