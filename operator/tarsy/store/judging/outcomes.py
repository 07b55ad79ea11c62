"""Decides the outcomes of finished runs, and reads them.

A run waits in `outcome_look` from its end until its outcome is known or cannot be any more. Triggers put it there and
wake it when an incident of its alert is resolved or fires again, so that a look is due only when something can have
changed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import asyncpg

from tarsy.observe.metric_table import INCIDENT_OUTCOMES
from tarsy.observe.metrics import Metrics
from tarsy.record.judging.incident_outcome import (
    IncidentCourse,
    IncidentOutcome,
    OutcomeDecision,
    OutcomePeriods,
    decide_outcome,
)
from tarsy.store.database import call
from tarsy.store.queries import load

MOST_FOLDED: Final = 500
"""Incidents folded into that of a run whose outcomes count, of each way to be folded."""

CHANGE_TYPES: Final = ("Rollout", "Config", "Network", "Quota", "Storage", "GitOps", "Delete")
"""Types of recorded changes that may have settled an incident: no restarts, and nothing that an autoscaler does."""

WORKLOAD_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Rollout")

_RUN_PODS = frozenset({"Pod", "ReplicaSet", "Job"})


@dataclass(frozen=True, slots=True)
class KnownOutcome:
    """The outcome of one incident of a run.

    Attributes:
        incident: the incident.
        outcome: what became of it.
        settled_at: when it was resolved; None: it was not.
        fired_again_at: when it fired again; None: it did not.
        change: what was changed between finding and resolve, as KIND/NAME; None: nothing known.
        decided_at: when it was decided.
    """

    incident: UUID
    outcome: IncidentOutcome
    settled_at: datetime | None
    fired_again_at: datetime | None
    change: str | None
    decided_at: datetime


class Outcomes:
    """Decides and reads outcomes; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
        periods: how long incidents are followed.
        workload_of: returns the name of the workload behind KIND/NAME.
        metrics: counts outcomes; None: nothing does.
    """

    def __init__(
        self,
        pool: asyncpg.Pool,
        periods: OutcomePeriods | None = None,
        workload_of: Callable[[str], str] = lambda name: name.rpartition("/")[2],
        metrics: Metrics | None = None,
    ) -> None:
        self._pool = pool
        self._periods = periods or OutcomePeriods()
        self._workload_of = workload_of
        self._metrics = metrics
        self._sql = load("outcomes")

    async def look(self) -> tuple[UUID, IncidentOutcome | None] | None:
        """Looks at the run that is due for longest; returns it and its outcome (None: not known). None: none is due."""
        counted: list[tuple[str, IncidentOutcome]] = []

        async def decide(connection: asyncpg.Connection) -> tuple[UUID, IncidentOutcome | None] | None:
            async with connection.transaction():
                run = await connection.fetchrow(*self._sql["next"]())
                if run is None:
                    return None
                courses = await self._courses(connection, run)
                decision = decide_outcome(courses, run["finished_at"], run["now"], self._periods)
                outcome = await self._store(connection, run, courses, decision)
                if outcome is not None:
                    counted.append((run["confidence"] or "none", outcome))
                return run["investigation"], outcome

        looked = await call(self._pool, "decide the outcome of an incident", decide)
        if counted and self._metrics is not None:
            confidence, outcome = counted[-1]
            self._metrics.add(INCIDENT_OUTCOMES, confidence=confidence, outcome=outcome.value)
        return looked

    async def of_run(self, investigation: UUID, limit: int = 100) -> list[KnownOutcome]:
        """Returns the outcomes of the incidents of a run, as far as they are known.

        Args:
            investigation: the run.
            limit: maximum number.
        """

        async def read(connection: asyncpg.Connection) -> list[KnownOutcome]:
            rows = await connection.fetch(*self._sql["of_run"](investigation=investigation, limit=limit))
            return [KnownOutcome(**{**dict(row), "outcome": IncidentOutcome(row["outcome"])}) for row in rows]

        return await call(self._pool, "read the outcomes of incidents", read)

    async def _courses(self, connection: asyncpg.Connection, run: asyncpg.Record) -> list[IncidentCourse]:
        wanted = self._sql["courses"](alert_uid=run["alert_uid"], finished_at=run["finished_at"], limit=MOST_FOLDED)
        return [IncidentCourse(**row) for row in await connection.fetch(*wanted)]

    async def _store(
        self,
        connection: asyncpg.Connection,
        run: asyncpg.Record,
        courses: Sequence[IncidentCourse],
        decision: OutcomeDecision,
    ) -> IncidentOutcome | None:
        identity = run["investigation"]
        if decision.outcome is None:
            if decision.look_at is not None:
                await connection.execute(*self._sql["look_again"](investigation=identity, at=decision.look_at))
            else:
                await connection.execute(*self._sql["done"](investigation=identity))
            return None
        blamed = await self._blamed(connection, run)
        changed = False
        for course in courses:
            outcome, change = decision.incidents.get(course.id), None
            if outcome is None:
                continue
            if outcome is IncidentOutcome.SETTLED and course.settled_at is not None:
                change = await self._change(connection, run, blamed, course.settled_at)
                outcome = IncidentOutcome.CHANGED_AND_SETTLED if change is not None else outcome
            changed = changed or change is not None
            await connection.execute(
                *self._sql["put_incident"](
                    investigation=identity,
                    incident=course.id,
                    outcome=outcome.value,
                    settled_at=course.settled_at,
                    fired_again_at=course.fired_again_at if outcome is IncidentOutcome.RECURRED else None,
                    change=change,
                )
            )
        told = decision.outcome
        if told is IncidentOutcome.SETTLED and changed:
            told = IncidentOutcome.CHANGED_AND_SETTLED
        await connection.execute(*self._sql["decided"](investigation=identity, outcome=told.value))
        await connection.execute(*self._sql["done"](investigation=identity))
        return told

    async def _blamed(self, connection: asyncpg.Connection, run: asyncpg.Record) -> Mapping[str, list[str]]:
        """Returns what a finding blames: objects as KIND/NAME, and names of workloads."""
        rows = await connection.fetch(*self._sql["blamed"](investigation=run["investigation"]))
        objects, workloads = [], []
        for key in (row["key"] for row in rows):
            what, _, name = key.partition(":")
            if what == "object" and name.partition("/")[0] in _RUN_PODS:
                workloads.append(self._workload_of(name))
            elif what == "object":
                objects.append(name)
            elif what == "workload":
                workloads.append(name.removeprefix(f"{run['alert_type']}/"))
        return {"objects": objects, "workloads": workloads}

    async def _change(
        self, connection: asyncpg.Connection, run: asyncpg.Record, blamed: Mapping[str, list[str]], until: datetime
    ) -> str | None:
        if not any(blamed.values()):
            return None
        values: dict[str, Any] = {
            "investigation": run["investigation"],
            "namespace_uid": run["namespace_uid"],
            "since": run["finished_at"],
            "until": until,
        }
        wanted = self._sql["change"](**values, types=list(CHANGE_TYPES), kinds=list(WORKLOAD_KINDS), **blamed)
        found: str | None = await connection.fetchval(*wanted)
        return found
