"""Tests the reports by day: usage by group, the verdicts and outcomes of findings, and results of evaluations."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import asyncpg
import pytest

from integration.store.build import new_run
from integration.store.test_evals import new_run as new_eval_run
from integration.store.test_reviews import ended, verdict
from integration.store.test_usage import begun, called
from tarsy.record.judging.review import ReviewVerdict
from tarsy.record.reading.usage_report import DailyUsage, FindingCount, UsageDimension, calendar_days
from tarsy.store.judging.evals import Evals
from tarsy.store.judging.reviews import Reviews
from tarsy.store.reading.reports import OTHERS, Reports
from tarsy.store.runs.lifecycle import Runs

NOW = datetime(2026, 3, 30, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
FINDING = {"summary": "The image is gone.", "confidence": "High"}


async def at(pool: asyncpg.Pool, model: str, started: str) -> None:
    await pool.execute(
        "UPDATE llm_interaction SET started_at = $2 WHERE model = $1", model, datetime.fromisoformat(started)
    )


async def report(
    pool: asyncpg.Pool, by: UsageDimension = "model", *, days: int = 3, series: int = 8, limit: int = 100
) -> DailyUsage:
    return await Reports(pool).daily_usage(by, calendar_days(NOW, BERLIN, days), series=series, limit=limit)


async def test_a_call_counts_on_the_day_of_the_zone_and_a_day_that_is_too_early_not_at_all(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool, "team-a", "disk")
    for number, model in enumerate(("before", "first", "last", "today")):
        await called(write, agent, number, model, "1")
    await at(pool, "before", "2026-03-27T22:59:59Z")
    await at(pool, "first", "2026-03-27T23:00:00Z")  # 28 March, 00:00 in Berlin
    await at(pool, "last", "2026-03-29T21:59:59Z")  # 29 March has 23 hours there
    await at(pool, "today", "2026-03-29T22:00:00Z")
    found = await report(pool)
    days = {name: [day.cost_usd for day in of] for name, of in found.series.items()}
    assert days == {"first": [1, 0, 0], "last": [0, 1, 0], "today": [0, 0, 1]}
    assert (found.total.calls, found.total.investigations, found.total.cost_usd) == (3, 1, 3)
    assert [day.tokens for day in found.series["first"]] == [120, 0, 0]


@pytest.mark.parametrize(("by", "name"), [("chain", "team-a/disk"), ("namespace", "team-a"), ("author", "ada")])
async def test_groups_are_those_that_are_asked_for(pool: asyncpg.Pool, by: UsageDimension, name: str) -> None:
    write, agent = await begun(pool, "team-a", "disk")
    await called(write, agent, 0, "big", "1")
    await at(pool, "big", NOW.isoformat())
    found = await report(pool, by)
    assert ([one.name for one in found.groups], list(found.series)) == ([name], [name])


@pytest.mark.parametrize(("groups", "series", "limit", "omitted"), [(3, 3, 3, 0), (4, 3, 3, 1), (4, 2, 4, 0)])
async def test_groups_beyond_the_limits_are_in_the_others_and_in_the_total(
    pool: asyncpg.Pool, groups: int, series: int, limit: int, omitted: int
) -> None:
    write, agent = await begun(pool, "team-a", "disk")
    for number in range(groups):
        await called(write, agent, number, f"model-{number}", str(number + 1))
    await pool.execute("UPDATE llm_interaction SET started_at = $1", NOW)
    found = await report(pool, series=series, limit=limit)
    assert [one.name for one in found.groups] == [f"model-{groups - 1 - n}" for n in range(min(groups, limit))]
    assert (found.omitted, found.total.cost_usd, found.total.investigations) == (omitted, sum(range(groups + 1)), 1)
    assert (OTHERS in found.series) == (groups > series)
    of_series = [day.cost_usd or Decimal(0) for of in found.series.values() for day in of]
    assert sum(of_series) == found.total.cost_usd


async def test_a_day_whose_costs_are_unknown_is_no_day_without_cost(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool, "team-a", "disk")
    await called(write, agent, 0, "free", None)
    await at(pool, "free", NOW.isoformat())
    found = await report(pool)
    assert [day.cost_usd for day in found.series["free"]] == [0, 0, None]
    assert (found.total.cost_usd, found.total.calls_of_unknown_cost) == (None, 1)


async def test_an_investigation_with_a_finding_counts_once(pool: asyncpg.Pool) -> None:
    write, agent = await begun(pool, "team-a", "disk")
    await called(write, agent, 0, "big", "1")
    await called(write, agent, 1, "small", "1")
    other, of_other = await begun(pool, "team-a", "pods")
    await called(other, of_other, 0, "big", "1")
    await pool.execute("UPDATE llm_interaction SET started_at = $1", NOW)
    await pool.execute("UPDATE investigation SET finding = $1 WHERE chain = 'disk'", FINDING)
    found = await report(pool)
    assert {one.name: (one.investigations, one.findings) for one in found.groups} == {"big": (2, 1), "small": (1, 1)}
    assert (found.total.investigations, found.total.findings) == (2, 1)


async def test_nothing_used_is_a_report_of_zero(pool: asyncpg.Pool) -> None:
    found = await report(pool)
    assert (found.groups, found.series, found.omitted, found.total.calls, found.total.cost_usd) == ((), {}, 0, 0, None)


async def test_only_the_namespaces_that_are_asked_for_count(pool: asyncpg.Pool) -> None:
    for namespace in ("team-a", "team-b"):
        write, agent = await begun(pool, namespace, "disk")
        await called(write, agent, 0, "big", "1")
    await pool.execute("UPDATE llm_interaction SET started_at = $1", NOW)
    reports = Reports(pool, ["uid-of-team-b"])
    found = await reports.daily_usage("chain", calendar_days(NOW, BERLIN, 1), series=8, limit=8)
    assert [one.name for one in found.groups] == ["team-b/disk"] and found.total.calls == 1
    finished = await ended(pool, "done")
    await pool.execute("UPDATE investigation SET finished_at = $2 WHERE id = $1", finished, NOW)
    assert await reports.finding_counts(calendar_days(NOW, BERLIN, 1)) == []


async def finished_on(pool: asyncpg.Pool, name: str, day: int, outcome: str | None = None) -> UUID:
    run = await ended(pool, name)
    await pool.execute(
        "UPDATE investigation SET finished_at = $2, incident_outcome = $3 WHERE id = $1",
        run,
        NOW - timedelta(days=2 - day),
        outcome,
    )
    return run


async def test_findings_are_counted_by_day_outcome_and_verdict(pool: asyncpg.Pool) -> None:
    reviews = Reviews(pool)
    right, wrong = await finished_on(pool, "a", 0, "Settled"), await finished_on(pool, "b", 2, "Recurred")
    await finished_on(pool, "c", 2)
    await finished_on(pool, "too-early", -1)
    await Runs(pool).accept(new_run(name="not-ended"))
    await reviews.note(right, uuid4(), verdict("anna"))
    await reviews.note(wrong, uuid4(), verdict("anna", ReviewVerdict.WRONG))
    assert await Reports(pool).finding_counts(calendar_days(NOW, BERLIN, 3)) == [
        FindingCount(0, "Settled", "Right", "High", 1),
        FindingCount(2, "Recurred", "Wrong", "High", 1),
        FindingCount(2, None, None, None, 1),
    ]


async def test_results_of_evaluations_are_the_newest_with_their_samples(pool: asyncpg.Pool) -> None:
    evals, suite = Evals(pool), uuid4()
    for name in ("one", "two", "unfinished"):
        run = new_eval_run(suite, name)
        await evals.begin(run)
        await pool.executemany(
            "INSERT INTO eval_sample (run, case_name, sample, investigation, outcome) VALUES ($1, 'oom', $2, $3, $4)",
            [(run.id, 0, uuid4(), "Passed"), (run.id, 1, uuid4(), "Failed"), (run.id, 2, uuid4(), "Passed")],
        )
        if name != "unfinished":
            finished = NOW + timedelta(minutes=len(name) if name == "one" else 9)
            await pool.execute(
                "UPDATE eval_run SET finished_at = $2, verdict = 'Passed' WHERE id = $1", run.id, finished
            )
    reports = Reports(pool)
    found = await reports.measured_suites(NOW, 10)
    assert [(one.run, one.verdict, one.passed, one.samples) for one in found] == [
        ("two", "Passed", 2, 3),
        ("one", "Passed", 2, 3),
    ]
    assert [one.run for one in await reports.measured_suites(NOW, 1)] == ["two"]
    assert await reports.measured_suites(NOW + timedelta(hours=1), 10) == []
