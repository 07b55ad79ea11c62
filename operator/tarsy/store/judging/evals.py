"""Stores the cases of EvalSuites, and the EvalRuns and samples that were measured with them.

A case is stored once for each content, so that an EvalRun replays exactly the recording that it began with, even when
the suite has another one since. The terms of an EvalRun are frozen when it begins, as a plan is.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.observe.metric_table import EVAL_RUNS, EVAL_SAMPLES
from tarsy.observe.metrics import Metrics
from tarsy.store.database import call, fetch_rows
from tarsy.store.judging.eval_rows import (
    BegunSample,
    CaseTotals,
    EndedSample,
    EvalRunRecord,
    EvalUsage,
    NewCase,
    NewEvalRun,
    RecordedToolCall,
    SampleDetail,
    SampleRow,
    StoredCase,
    StoredCell,
    StoredRecording,
)
from tarsy.store.queries import load

MAX_SAMPLES_READ = 10_000
"""Maximum samples of one run that are read at once: more than a suite can have."""


class Evals:
    """Stores cases, runs and samples; every method raises StoreError when Postgres is unavailable or refuses.

    Args:
        pool: a migrated database.
        metrics: counts samples and runs that end; None: nothing does.
    """

    def __init__(self, pool: asyncpg.Pool, metrics: Metrics | None = None) -> None:
        self._pool = pool
        self._metrics = metrics
        self._sql = load("evals")

    async def cases(self, suite: UUID) -> dict[str, StoredCase]:
        """Returns the stored cases that a suite has now, by name."""
        found = await self._fetch("cases", f"the cases of EvalSuite {suite}", suite=suite)
        return {row["name"]: StoredCase(**row) for row in found}

    async def put_case(self, case: NewCase) -> None:
        """Stores a recording as the current one of its case; another recording of the case is retired."""

        async def write(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                await connection.execute(
                    *self._sql["retire_case"](suite=case.suite, name=case.name, digest=case.digest)
                )
                await connection.execute(
                    *self._sql["put_case"](
                        suite=case.suite,
                        name=case.name,
                        digest=case.digest,
                        namespace=case.namespace,
                        namespace_uid=case.namespace_uid,
                        source=dict(case.source),
                        plan=case.plan,
                        cassette=case.cassette,
                    )
                )

        await call(self._pool, f"store case {case.name}", write)

    async def keep_cases(self, suite: UUID, names: Collection[str]) -> None:
        """Retires the cases of a suite that are not in `names`."""
        await self._execute("keep_cases", f"retire cases of EvalSuite {suite}", suite=suite, names=list(names))

    async def case_plans(self, suite: UUID) -> dict[str, str]:
        """Returns the plans of the recorded runs that a suite has cases of, by name of the case."""
        found = await self._fetch("case_plans", f"the cases of EvalSuite {suite}", suite=suite)
        return {row["name"]: row["plan"] for row in found}

    async def case(self, suite: UUID, name: str, digest: str) -> StoredRecording | None:
        """Returns the recording of a case; None: it is not stored.

        Args:
            suite: uid of the EvalSuite.
            name: name of the case.
            digest: digest of the recording.
        """
        found = await self._fetch("case", f"case {name}", suite=suite, name=name, digest=digest)
        return StoredRecording(**found[0]) if found else None

    async def begin(self, run: NewEvalRun) -> None:
        """Begins an EvalRun; one that has begun stays as it is."""
        values = {name: getattr(run, name) for name in NewEvalRun.__slots__}
        await self._execute("begin", f"begin EvalRun {run.name}", **{**values, "terms": dict(run.terms)})

    async def run(self, identity: UUID) -> EvalRunRecord | None:
        """Returns an EvalRun; None: it has not begun."""
        found = await self._fetch("run", f"EvalRun {identity}", id=identity)
        if not found:
            return None
        return EvalRunRecord(**{name: found[0][name] for name in EvalRunRecord.__slots__})

    async def suite_runs(self, suite: UUID, limit: int) -> list[tuple[EvalRunRecord, str | None]]:
        """Returns the newest runs of a suite, each with the name of its baseline (None: there is none on record)."""
        found = await self._fetch("suite_runs", f"the runs of EvalSuite {suite}", suite=suite, limit=limit)
        return [
            (EvalRunRecord(**{name: row[name] for name in EvalRunRecord.__slots__}), row["baseline_name"])
            for row in found
        ]

    async def cells(self, runs: Sequence[UUID]) -> list[StoredCell]:
        """Returns the samples of runs, summed up by run and case."""
        found = await self._fetch("cells", "the outcomes of EvalRuns", runs=list(runs))
        rungs: dict[tuple[UUID, str], dict[str, int]] = {}
        for row in await self._fetch("cell_rungs", "the coverage of EvalRuns", runs=list(runs)):
            rungs.setdefault((row["run"], row["name"]), {})[row["rung"]] = row["calls"]
        return [
            StoredCell(
                run=row["run"],
                totals=CaseTotals(**{name: row[name] for name in CaseTotals.__slots__}),
                coverage=row["coverage"],
                tokens=row["tokens"],
                cost_usd=row["cost_usd"],
                cost_complete=row["cost_complete"],
                rungs=rungs.get((row["run"], row["name"]), {}),
            )
            for row in found
        ]

    async def sample_page(
        self, run: UUID, limit: int, after: tuple[str, int] = ("", 0), only: str | None = None
    ) -> list[SampleDetail]:
        """Returns samples of a run with the names of their investigations.

        Args:
            run: the EvalRun.
            limit: maximum samples.
            after: case and number of the last sample of the page before.
            only: a case; None: all cases.
        """
        found = await self._fetch(
            "sample_page", f"the samples of {run}", run=run, limit=limit, case_name=after[0], sample=after[1], only=only
        )
        return [SampleDetail(**{**dict(row), "checks": row["checks"] or ()}) for row in found]

    async def last_finished(self, suite: UUID) -> tuple[str, str] | None:
        """Returns name and verdict of the run of a suite that finished last; None: none has."""
        found = await self._fetch("last_finished", f"the runs of EvalSuite {suite}", suite=suite)
        return (found[0]["name"], found[0]["verdict"]) if found else None

    async def finish(self, identity: UUID, verdict: str, summary: str) -> None:
        """Finishes an EvalRun; a verdict that was reached stays."""
        what = f"finish EvalRun {identity}"
        done = await self._execute("finish", what, id=identity, verdict=verdict, summary=summary)
        if done and self._metrics is not None:
            self._metrics.add(EVAL_RUNS, verdict=verdict)

    async def add_sample(self, run: UUID, case_name: str, sample: int, investigation: UUID) -> None:
        """Notes the Investigation of a sample; one that was noted stays.

        Args:
            run: the EvalRun.
            case_name: name of the case.
            sample: number of the sample, from 0.
            investigation: uid of its Investigation.
        """
        await self._execute(
            "add_sample",
            f"note sample {sample} of case {case_name}",
            run=run,
            case_name=case_name,
            sample=sample,
            investigation=investigation,
        )

    async def end_sample(self, run: UUID, ended: EndedSample) -> None:
        """Notes the outcome of a sample; the first outcome stays."""
        values = {name: getattr(ended, name) for name in EndedSample.__slots__}
        checks = [dict(check) for check in ended.checks]
        done = await self._execute(
            "end_sample", f"note the outcome of case {ended.case_name}", **{**values, "run": run, "checks": checks}
        )
        if done and self._metrics is not None:
            self._metrics.add(EVAL_SAMPLES, outcome=ended.outcome)

    async def begun(self, run: UUID) -> list[BegunSample]:
        """Returns the samples whose Investigations were created, by case and number."""
        return [BegunSample(**row) for row in await self._fetch("begun", f"the samples of {run}", run=run)]

    async def usage(self, run: UUID) -> EvalUsage:
        """Returns the usage of the samples that have ended."""
        (row,) = await self._fetch("totals", f"the usage of {run}", run=run)
        return EvalUsage(**row)

    async def by_case(self, run: UUID) -> list[CaseTotals]:
        """Returns the number of samples by outcome of each case that has one."""
        return [CaseTotals(**row) for row in await self._fetch("by_case", f"the outcomes of {run}", run=run)]

    async def samples(self, run: UUID, limit: int = MAX_SAMPLES_READ) -> list[SampleRow]:
        """Returns up to `limit` samples of a run, by case and number."""
        found = await self._fetch("samples", f"the samples of {run}", run=run, limit=limit)
        return [SampleRow(**row) for row in found]

    async def made_calls(self, investigation: UUID) -> list[RecordedToolCall]:
        """Returns the tool calls of a run, in order."""
        found = await self._fetch("made_calls", f"the tool calls of {investigation}", investigation=investigation)
        return [RecordedToolCall(**row) for row in found]

    async def deleted(self, identity: UUID) -> None:
        """Ends what belongs to a deleted EvalRun or EvalSuite, so that its retention begins."""

        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql["end_deleted"](id=identity))
            await connection.execute(*self._sql["retire_suite"](suite=identity))

        await call(self._pool, f"end what belongs to {identity}", write)

    async def end_missing(self, living: Collection[UUID], namespaces: Sequence[str] = ()) -> None:
        """Ends runs and retires cases whose objects are gone.

        Args:
            living: uids of all EvalRuns and EvalSuites.
            namespaces: only these; empty: all.
        """

        async def write(connection: asyncpg.Connection) -> None:
            for name in ("end_missing", "retire_missing"):
                await connection.execute(*self._sql[name](living=list(living), namespaces=list(namespaces)))

        await call(self._pool, "end evaluations whose objects are gone", write)

    async def purge(self, seconds: float, namespaces: Sequence[str] = ()) -> None:
        """Deletes runs that finished, and cases that were retired, longer ago than the retention.

        Args:
            seconds: retention.
            namespaces: only these; empty: all.
        """

        async def delete(connection: asyncpg.Connection) -> None:
            for name in ("purge_runs", "purge_cases"):
                await connection.execute(*self._sql[name](seconds=seconds, namespaces=list(namespaces)))

        await call(self._pool, "delete old evaluations", delete)

    async def _execute(self, query: str, what: str, /, **values: Any) -> bool:
        """Executes a statement; returns whether it changed a row."""

        async def execute(connection: asyncpg.Connection) -> str:
            return str(await connection.execute(*self._sql[query](**values)))

        return not (await call(self._pool, what, execute)).endswith(" 0")

    async def _fetch(self, query: str, what: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, f"read {what}", self._sql[query](**values))
