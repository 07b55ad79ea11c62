"""Tests the stored scores: a budget is exact, a crash is paid for once more at most, and nothing else is changed."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.store.build import begun_run, model_call, model_result, tool_call, tool_result
from integration.store.test_reviews import ended
from tarsy.observe.metric_table import SCORE_POINTS, SCORES, SCORING_TOKENS
from tarsy.observe.metrics import Metrics
from tarsy.record.judging.score import FailureTag, MissingTool, Score, ScoreState
from tarsy.store.judging.scores import EndedScore, ScoreItem, ScoreReservation, Scores

CHAIN, SPACE = "crashloop", "uid-of-team-a"
MOST = ScoreReservation(1_000, Decimal("0.10"))
BUDGET = ScoreReservation(2_500)
SCORE = Score(80, "Shown.", ("exit code 137",), (FailureTag.LOOP,), (MissingTool("metrics", "Memory over time."),))
DONE = EndedScore(SCORE, tokens=300, cost_usd=Decimal("0.03"))


async def enrolled(pool: asyncpg.Pool, judge: str = "j1", metrics: Metrics | None = None) -> tuple[Scores, UUID]:
    """A suite that scores since long ago."""
    scores, suite = Scores(pool, metrics), uuid4()
    await scores.enroll(suite, SPACE, "shop", judge)
    await pool.execute("UPDATE scoring SET since = '2020-01-01'")
    return scores, suite


async def recent(pool: asyncpg.Pool, name: str, minutes_ago: int = 1) -> UUID:
    run = await ended(pool, name)
    await pool.execute(
        "UPDATE investigation SET finished_at = now() - make_interval(mins => $2) WHERE id = $1", run, minutes_ago
    )
    return run


async def begun(
    scores: Scores, suite: UUID, lease: float = 60.0, budget: ScoreReservation = BUDGET
) -> tuple[ScoreItem, int]:
    item = await scores.next(suite)
    assert item is not None
    attempt = await scores.begin(suite, item, "j1", MOST, budget, lease)
    assert isinstance(attempt, int), attempt
    return item, attempt


async def used(pool: asyncpg.Pool) -> tuple[int, Decimal]:
    row = await pool.fetchrow("SELECT tokens, cost_usd FROM scoring_day")
    return (0, Decimal(0)) if row is None else (row["tokens"], row["cost_usd"])


async def scored(
    pool: asyncpg.Pool, scores: Scores, suite: UUID, done: EndedScore = DONE, judge: str = "j1"
) -> ScoreItem:
    item = await scores.next(suite)
    assert item is not None
    attempt = await scores.begin(suite, item, judge, MOST, ScoreReservation(1_000_000), 60)
    assert isinstance(attempt, int)
    await scores.end(suite, item, attempt, done, again_seconds=None, rates=True)
    return item


async def test_what_ended_since_the_suite_scores_is_chosen_once_the_newest_first(pool: asyncpg.Pool) -> None:
    scores, suite = await enrolled(pool)
    older, newer = await recent(pool, "older", 20), await recent(pool, "newer", 10)
    await recent(pool, "too-old", 60 * 24 * 8)
    open_run = (await begun_run(pool, name="runs")).run
    await ended_without_finding(pool)
    await scores.pick(suite, ["other"], 100)
    assert await scores.next(suite) is None
    for _ in range(2):
        await scores.pick(suite, ["other", CHAIN], 100)
    rows = await pool.fetch("SELECT investigation FROM score")
    assert {row["investigation"] for row in rows} == {older, newer} and open_run not in rows
    await pool.execute("UPDATE score SET created_at = created_at - interval '1 minute' WHERE investigation = $1", older)
    assert [(await scored(pool, scores, suite)).investigation for _ in range(2)] == [newer, older]
    await scores.withdraw(suite)
    await scores.enroll(suite, SPACE, "shop", "j1")
    await pool.execute("DELETE FROM score")
    await scores.pick(suite, [CHAIN], 100)
    assert await scores.next(suite) is None  # both ended before it scored again


async def ended_without_finding(pool: asyncpg.Pool) -> None:
    run = await ended(pool, "failed", finding=False)
    await pool.execute("UPDATE investigation SET finished_at = now() WHERE id = $1", run)


async def test_the_share_is_chosen_by_uid(pool: asyncpg.Pool) -> None:
    scores, suite = await enrolled(pool)
    for number in range(60):
        await recent(pool, f"run-{number}")
    await scores.pick(suite, [CHAIN], 50)
    half = await pool.fetchval("SELECT count(*) FROM score")
    await scores.pick(suite, [CHAIN], 50)
    assert await pool.fetchval("SELECT count(*) FROM score") == half and 10 < half < 50
    await scores.pick(suite, [CHAIN], 100)
    assert await pool.fetchval("SELECT count(*) FROM score") == 60


async def test_a_budget_is_exact_below_at_and_above(pool: asyncpg.Pool) -> None:
    scores, suite = await enrolled(pool)
    await recent(pool, "one")
    await scores.pick(suite, [CHAIN], 100)
    item = await scores.next(suite)
    assert item is not None
    assert await scores.begin(suite, item, "j1", MOST, ScoreReservation(999), 60) == "spent"
    assert await scores.begin(suite, item, "j1", MOST, ScoreReservation(9_999, Decimal("0.09")), 60) == "spent"
    assert await used(pool) == (0, 0)
    assert await scores.begin(suite, item, "j1", MOST, ScoreReservation(1_000, Decimal("0.10")), 60) == 1
    assert await used(pool) == (1_000, Decimal("0.10"))
    await scores.end(suite, item, 1, DONE, again_seconds=None, rates=True)
    assert await used(pool) == (300, Decimal("0.03"))
    await scores.request(suite, item.investigation, "t1")
    second = await scores.next(suite)
    assert second is not None
    assert await scores.begin(suite, second, "j1", MOST, ScoreReservation(1_299), 60) == "spent"
    assert await scores.begin(suite, second, "j1", MOST, ScoreReservation(9_999, Decimal("0.129")), 60) == "spent"
    assert await scores.begin(suite, second, "j1", MOST, ScoreReservation(1_300, Decimal("0.13")), 60) == 1


async def test_controllers_side_by_side_never_exceed_a_budget_and_call_once(pool: asyncpg.Pool) -> None:
    scores, suite = await enrolled(pool)
    for number in range(8):
        await recent(pool, f"run-{number}")
    await scores.pick(suite, [CHAIN], 100)
    rows = await pool.fetch("SELECT investigation FROM score")
    items = [ScoreItem(row["investigation"], 1, 0, 0) for row in rows] * 3
    found = await asyncio.gather(
        *(scores.begin(suite, item, "j1", MOST, ScoreReservation(4_500), 60) for item in items)
    )
    assert found.count(1) == 4 and set(found) <= {1, None, "spent"}
    assert await used(pool) == (4_000, Decimal("0.40"))
    assert await pool.fetchval("SELECT count(*) FROM score WHERE state = 'Started'") == 4


async def test_a_call_that_a_crash_interrupted_is_made_once_more_and_both_are_paid_for(pool: asyncpg.Pool) -> None:
    metrics = Metrics()
    scores, suite = await enrolled(pool, metrics=metrics)
    run = await recent(pool, "one")
    await scores.pick(suite, [CHAIN], 100)
    first = await begun(scores, suite, lease=3_600)
    assert await scores.next(suite) is None  # it is under way
    await pool.execute("UPDATE score SET expires_at = now() - interval '1 second'")
    second = await begun(scores, suite, lease=-1)
    assert (first[1], second[1]) == (1, 2)
    await scores.end(suite, first[0], 1, DONE, again_seconds=None, rates=True)  # the first was not dead after all
    (row,) = await scores.of_run(run)
    assert (row.state, row.attempts, row.tokens, row.cost_complete) == (ScoreState.STARTED, 2, 1_000, False)
    assert await used(pool) == (2_000, Decimal("0.20"))
    await scores.pick(suite, [CHAIN], 100)
    assert await scores.next(suite) is None  # two crashes: it is not paid for again
    (row,) = await scores.of_run(run)
    assert (row.state, row.problem) == (ScoreState.FAILED, "The call of the judge was interrupted twice.")
    assert (row.tokens, row.cost_usd) == (2_000, Decimal("0.20"))
    assert metrics.value(SCORES, result="failed") == 1


async def test_a_call_without_usage_counts_as_the_most(pool: asyncpg.Pool) -> None:
    metrics = Metrics()
    scores, suite = await enrolled(pool, metrics=metrics)
    run = await recent(pool, "one")
    await scores.pick(suite, [CHAIN], 100)
    item, attempt = await begun(scores, suite)
    await scores.end(suite, item, attempt, EndedScore(problem="cut"), again_seconds=0, rates=True)
    again = await scores.next(suite)
    assert again is not None and (again.attempts, again.failures) == (1, 1)
    assert await used(pool) == (1_000, Decimal("0.10"))
    item, attempt = await begun(scores, suite)
    refused = EndedScore(problem="no key", tokens=0, cost_usd=Decimal(0))
    await scores.end(suite, item, attempt, refused, again_seconds=0, rates=True)
    again = await scores.next(suite)
    assert again is not None and (again.attempts, again.failures) == (2, 1)  # no model read it
    assert await used(pool) == (1_000, Decimal("0.10"))
    item, attempt = await begun(scores, suite)
    await scores.end(suite, item, attempt, EndedScore(problem="cut again"), again_seconds=None, rates=True)
    (row,) = await scores.of_run(run)
    assert (row.state, row.problem, row.tokens, row.cost_complete) == (ScoreState.FAILED, "cut again", 2_000, False)
    assert metrics.value(SCORING_TOKENS) == 2_000


async def test_scores_of_the_present_judge_are_shown_and_older_ones_kept(pool: asyncpg.Pool) -> None:
    metrics = Metrics()
    scores, suite = await enrolled(pool, metrics=metrics)
    run = await recent(pool, "one")
    await scores.pick(suite, [CHAIN], 100)
    await scored(pool, scores, suite)
    await scores.request(suite, run, "t1")
    await scores.request(suite, run, "t2")  # one waits
    worse = EndedScore(Score(20, "Not shown."), tokens=200, cost_usd=Decimal("0.02"))
    await scored(pool, scores, suite, worse)
    await scores.request(suite, run, "t1")  # it was taken
    assert [(one.round, one.score.points, one.current) for one in await scores.of_run(run) if one.score] == [
        (2, 20, True),
        (1, 80, True),
    ]
    await scores.enroll(suite, SPACE, "shop", "j2")
    assert [one.current for one in await scores.of_run(run)] == [False, False]
    assert await scores.report(suite) == []
    await scores.request(suite, run, "t3")
    await scored(pool, scores, suite, judge="j2")
    newest, *others = await scores.of_run(run)
    assert (newest.round, newest.current, newest.request, newest.score) == (3, True, "t3", SCORE)
    assert [one.round for one in others] == [2, 1]
    (chain,) = await scores.report(suite)
    assert (chain.chain, chain.scores, chain.mean, chain.tags) == (CHAIN, 1, 80, {FailureTag.LOOP: 1})
    assert [(one.name, one.scores, one.why) for one in chain.missing_tools] == [("metrics", 1, "Memory over time.")]
    assert metrics.value(SCORES, result="completed") == 3
    assert SCORE_POINTS.name == "tarsy_score_points"


async def test_a_request_for_days_takes_what_ended_in_them_once(pool: asyncpg.Pool) -> None:
    scores, suite = await enrolled(pool)
    now = datetime.now(UTC)
    inside, newest = await recent(pool, "inside", 60 * 24), await recent(pool, "newest", 60)
    await recent(pool, "before", 60 * 24 * 3)
    for asked in (now, now):
        await scores.request_days(suite, [CHAIN], asked, 2, "t1")
        await recent(pool, "after", -5)  # it ends after the request
    await scores.request_days(suite, ["other"], now, 2, "t2")
    rows = await pool.fetch("SELECT investigation, round FROM score")
    assert {(row["investigation"], row["round"]) for row in rows} == {(inside, 1), (newest, 1)}
    await scored(pool, scores, suite)
    await scores.request_days(suite, [CHAIN], now, 2, "t1")
    assert await pool.fetchval("SELECT count(*) FROM score") == 2
    await scores.request_days(suite, [CHAIN], now, 2, "t2")
    assert await pool.fetchval("SELECT count(*) FROM score WHERE round = 2") == 1  # of the other one waits


async def test_the_report_counts_each_investigation_once_and_tools_by_name(pool: asyncpg.Pool) -> None:
    scores, suite = await enrolled(pool)
    for number in range(3):
        await recent(pool, f"run-{number}")
    await scores.pick(suite, [CHAIN], 100)
    for points, name in ((10, "Metrics"), (20, "metrics"), (60, "traces")):
        found = Score(points, "a", tags=(FailureTag.WRONG_TOOL,), missing_tools=(MissingTool(name, f"of {points}"),))
        await scored(pool, scores, suite, EndedScore(found, tokens=1, cost_usd=Decimal(0)))
    (chain,) = await scores.report(suite)
    assert (chain.scores, chain.mean, chain.lowest, chain.tags) == (3, 30, 10, {FailureTag.WRONG_TOOL: 3})
    assert [(one.name.casefold(), one.scores) for one in chain.missing_tools] == [("metrics", 2), ("traces", 1)]
    totals = await scores.totals(suite)
    assert (totals.scored, totals.waiting, totals.tokens, totals.judge) == (3, 0, 3, "j1")


async def test_what_waits_too_long_expires_and_a_purged_run_takes_its_scores(pool: asyncpg.Pool) -> None:
    scores, suite = await enrolled(pool)
    run, kept = await recent(pool, "one"), await recent(pool, "two")
    await scores.pick(suite, [CHAIN], 100)
    await pool.execute("UPDATE score SET created_at = now() - interval '8 days' WHERE investigation = $1", run)
    await scores.pick(suite, [CHAIN], 100)
    assert [one.state for one in await scores.of_run(run)] == [ScoreState.EXPIRED]
    await begun(scores, suite)
    await pool.execute("DELETE FROM investigation WHERE id = $1", kept)
    assert await scores.of_run(kept) == []
    assert (await used(pool))[0] == 1_000  # what was spent stays spent
    await pool.execute("UPDATE scoring_day SET day = day - 63")
    await scores.purge()
    assert await used(pool) == (0, 0)


async def test_a_judge_is_shown_the_last_calls_in_their_order(pool: asyncpg.Pool) -> None:
    work = await begun_run(pool)
    await work.write.model_call_started(model_call(work.agent.id, 0, 0))
    await work.write.model_call_finished(model_result(work.agent.id))
    for index in range(3):
        await work.write.tool_call_started(tool_call(work.agent.id, index=index))
        await work.write.tool_call_finished(tool_result(work.agent.id, index=index, result=f"{index}" * 3_000))
    scores = Scores(pool)
    assert await scores.subject(work.run, 2) is None  # it has no finding yet
    await pool.execute("""UPDATE investigation SET finding = '{"summary": "a"}' WHERE id = $1""", work.run)
    found = await scores.subject(work.run, 2)
    assert found is not None and found.calls_made == 3
    assert [(one.tool, one.result[:1], len(one.result)) for one in found.calls] == [
        ("kubernetes.get", "1", 2_500),
        ("kubernetes.get", "2", 2_500),
    ]


async def test_a_score_changes_no_other_row(pool: asyncpg.Pool) -> None:
    scores, suite = await enrolled(pool)
    run = await recent(pool, "one")
    tables = ("investigation", "review_summary", "review_activity", "stage", "execution", "timeline_event")
    before = {table: await pool.fetch(f"TABLE {table}") for table in tables}
    await scores.pick(suite, [CHAIN], 100)
    await scored(pool, scores, suite, EndedScore(Score(0, "Wrong.", tags=(FailureTag.WRONG_CONCLUSION,)), tokens=5))
    assert {table: await pool.fetch(f"TABLE {table}") for table in tables} == before
    assert [one.score.points for one in await scores.of_run(run) if one.score] == [0]


@pytest.mark.parametrize("state", ["running", "cancelled"])
async def test_only_what_has_ended_by_itself_is_scored(pool: asyncpg.Pool, state: str) -> None:
    scores, suite = await enrolled(pool)
    run = await recent(pool, "one")
    await pool.execute(
        "UPDATE investigation SET state = $2, finished_at = CASE WHEN $2 = 'running' THEN NULL ELSE now() END"
        " WHERE id = $1",
        run,
        state,
    )
    await scores.pick(suite, [CHAIN], 100)
    assert await scores.next(suite) is None
