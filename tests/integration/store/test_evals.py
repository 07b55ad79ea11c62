"""Tests that cases stay as they were stored, and that samples and verdicts are written once."""

from dataclasses import replace
from decimal import Decimal
from uuid import UUID, uuid4

import asyncpg
import pytest

from tarsy.store.errors import StoreError
from tarsy.store.judging.eval_rows import CaseTotals, EndedSample, EvalUsage, NewCase, NewEvalRun, StoredRecording
from tarsy.store.judging.evals import Evals
from tarsy.store.runs.revisions import ChainIdentity, KnownRevision, Revisions, RevisionState

SOURCE = {"configMapKeyRef": {"name": "cases", "key": "oom"}}


@pytest.fixture
def evals(pool: asyncpg.Pool) -> Evals:
    return Evals(pool)


def new_case(suite: UUID, name: str = "oom", digest: str = "d1", content: bytes = b"one") -> NewCase:
    return NewCase(suite, name, digest, "shop", "ns-uid", SOURCE, content)


def new_run(suite: UUID, name: str = "one") -> NewEvalRun:
    return NewEvalRun(uuid4(), "shop", "ns-uid", name, suite, "checkout", "s1", {"samples": 2}, "triage", "shop", "r1")


async def test_case_is_read_as_it_was_stored(evals: Evals) -> None:
    suite = uuid4()
    await evals.put_case(new_case(suite))
    await evals.put_case(new_case(suite, "dns"))
    assert await evals.case(suite, "oom", "d1") == StoredRecording("shop", b"one", SOURCE, None)
    assert await evals.case(suite, "oom", "d2") is None
    assert sorted(await evals.cases(suite)) == ["dns", "oom"]
    assert (await evals.cases(suite))["oom"].source == SOURCE


async def test_newer_recording_replaces_the_current_one_and_the_older_stays_readable(evals: Evals) -> None:
    suite = uuid4()
    await evals.put_case(new_case(suite))
    await evals.put_case(new_case(suite, digest="d2", content=b"two"))
    assert (await evals.cases(suite))["oom"].digest == "d2"
    assert await evals.case(suite, "oom", "d1") == StoredRecording("shop", b"one", SOURCE, None)
    await evals.put_case(new_case(suite))
    assert (await evals.cases(suite))["oom"].digest == "d1"


async def test_removed_cases_are_retired(evals: Evals) -> None:
    suite = uuid4()
    await evals.put_case(new_case(suite))
    await evals.put_case(new_case(suite, "dns"))
    await evals.keep_cases(suite, ["dns"])
    assert list(await evals.cases(suite)) == ["dns"]


async def test_recording_above_its_limit_is_refused(evals: Evals) -> None:
    suite, limit = uuid4(), 16 * 1024 * 1024
    await evals.put_case(new_case(suite, content=b"0" * limit))
    with pytest.raises(StoreError):
        await evals.put_case(new_case(suite, "large", content=b"0" * (limit + 1)))


async def test_run_begins_once_and_its_verdict_stays(evals: Evals) -> None:
    suite = uuid4()
    run = new_run(suite)
    await evals.begin(run)
    await evals.begin(NewEvalRun(run.id, "shop", "ns-uid", "one", suite, "checkout", "s2", {}, "other", "shop", "r2"))
    found = await evals.run(run.id)
    assert found is not None
    assert (found.suite_digest, found.terms, found.revision, found.verdict) == ("s1", {"samples": 2}, "r1", None)
    assert await evals.last_finished(suite) is None
    await evals.finish(run.id, "Passed", "2 of 2 cases passed.")
    await evals.finish(run.id, "Regressed", "late")
    assert await evals.last_finished(suite) == ("one", "Passed")


async def test_outcome_of_a_sample_stays(evals: Evals) -> None:
    run = new_run(uuid4())
    await evals.begin(run)
    first, second = uuid4(), uuid4()
    await evals.add_sample(run.id, "oom", 0, first)
    await evals.add_sample(run.id, "oom", 0, second)
    check = {"name": "rootCause", "outcome": "Failed", "sentence": "No supported claim blames checkout."}
    ended = EndedSample("oom", 0, "Failed", [check], True, 0.9, 120, Decimal("0.012"))
    await evals.end_sample(run.id, ended)
    await evals.end_sample(run.id, EndedSample("oom", 0, "Passed", []))
    (sample,) = await evals.samples(run.id)
    assert (sample.investigation, sample.outcome, sample.checks) == (first, "Failed", [check])
    assert (await evals.begun(run.id))[0].ended
    assert await evals.by_case(run.id) == [CaseTotals("oom", 0, 1, 0, 1)]
    assert await evals.usage(run.id) == EvalUsage(120, Decimal("0.012"), True)


async def test_usage_without_any_known_cost(evals: Evals) -> None:
    run = new_run(uuid4())
    await evals.begin(run)
    assert await evals.usage(run.id) == EvalUsage(0, None, True)
    await evals.add_sample(run.id, "oom", 0, uuid4())
    await evals.end_sample(run.id, EndedSample("oom", 0, "Passed", [], tokens=7, cost_complete=False))
    assert await evals.usage(run.id) == EvalUsage(7, None, False)


async def test_purge_deletes_finished_runs_and_retired_cases_only(evals: Evals, pool: asyncpg.Pool) -> None:
    suite = uuid4()
    done, running = new_run(suite, "done"), new_run(suite, "running")
    for run in (done, running):
        await evals.begin(run)
    await evals.add_sample(done.id, "oom", 0, uuid4())
    await evals.finish(done.id, "Passed", "")
    await evals.put_case(new_case(suite))
    await evals.put_case(new_case(suite, digest="d2"))
    await evals.purge(3600)
    assert await evals.run(done.id) is not None
    await evals.purge(-1)
    assert await evals.run(done.id) is None
    assert await evals.samples(done.id) == []
    assert await evals.run(running.id) is not None
    assert await evals.case(suite, "oom", "d1") is not None, "a run that goes on may need it"
    await evals.deleted(running.id)
    await evals.purge(-1, ["elsewhere"])
    assert await evals.run(running.id) is not None
    await evals.purge(-1)
    assert await evals.run(running.id) is None
    assert await evals.case(suite, "oom", "d1") is None
    assert await evals.case(suite, "oom", "d2") is not None


async def test_results_that_a_serving_revision_is_compared_with_outlive_their_retention(
    evals: Evals, pool: asyncpg.Pool
) -> None:
    suite, digest = uuid4(), "a" * 64
    runs = {
        name: replace(new_run(suite, name), revision=digest[:16]) for name in ("let-serve", "older", "newest", "bad")
    }
    runs["other"] = replace(new_run(suite, "other"), revision="b" * 16)
    chain = ChainIdentity("uid", runs["bad"].chain_namespace, runs["bad"].chain)
    for name, run in runs.items():
        await evals.begin(run)
        await evals.finish(run.id, "Regressed" if name == "bad" else "Passed", "")
    revisions = Revisions(pool)

    async def left() -> set[str]:
        await evals.purge(-1)
        return {name for name, run in runs.items() if await evals.run(run.id) is not None}

    await revisions.put(chain, KnownRevision(digest, 1, RevisionState.SERVING, "Passed", "let-serve"), "{}")
    assert await left() == {"let-serve", "newest"}
    await revisions.put(chain, KnownRevision("c" * 64, 2, RevisionState.SERVING, "Immediate"), "{}")
    assert await left() == set()


async def test_what_belongs_to_missing_objects_ends(evals: Evals, pool: asyncpg.Pool) -> None:
    gone, living = uuid4(), uuid4()
    run = new_run(living)
    await evals.begin(run)
    for suite in (gone, living):
        await evals.put_case(new_case(suite))
    await evals.end_missing([living])
    assert list(await evals.cases(gone)) == ["oom"], "it may be newer than the list"
    await pool.execute("UPDATE eval_case SET stored_at = now() - interval '1 hour'")
    await pool.execute("UPDATE eval_run SET started_at = now() - interval '1 hour'")
    await evals.end_missing([living, run.id], ["elsewhere"])
    assert list(await evals.cases(gone)) == ["oom"]
    await evals.end_missing([living])
    assert list(await evals.cases(gone)) == []
    assert list(await evals.cases(living)) == ["oom"]
    found = await evals.run(run.id)
    assert found is not None
    assert found.verdict == "Cancelled"
