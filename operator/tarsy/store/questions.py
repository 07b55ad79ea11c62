"""Enqueues questions about finished investigations, and reads the work that they are answered from.

An answer is a run in the same table as investigations: claim, lease, fence, deadline and resume are the same. Besides,
it has a place: the questions about one investigation are answered one after the other, in the order in which they were
enqueued.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.observe.metric_table import ACCEPTED
from tarsy.observe.metrics import Metrics
from tarsy.plan.model import Plan
from tarsy.plan.reach import read_plan
from tarsy.record.run import State
from tarsy.record.text import clean
from tarsy.record.timeline import TimelineEvent
from tarsy.record.work import AgentWork, Exchange, PastWork, StageWork
from tarsy.store import rows
from tarsy.store.database import call
from tarsy.store.migrate import plan_version
from tarsy.store.queries import load
from tarsy.store.runs.wakeups import CLAIMABLE, QUEUE_CHANNEL, RUN_CHANNEL, NotifyFunction, silent
from tarsy.store.sealing import seal

QUESTIONS_WITH_WORK = 20
"""Number of latest earlier questions that are read with the work behind their answers."""


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question to enqueue. `id` is the uid of its object, `text` is masked, `plan` is `Plan.to_answer()`."""

    id: UUID
    name: str
    text: str
    plan: Plan
    author: Mapping[str, Any] = field(default_factory=dict)


class Questions:
    """Enqueues questions, and reads the work that answers are based on."""

    def __init__(self, pool: asyncpg.Pool, notify: NotifyFunction = silent, metrics: Metrics | None = None) -> None:
        self._pool = pool
        self._metrics = metrics
        self._notify = notify
        self._version = plan_version()
        self._sql = load("questions")
        self._reads = load("reads")

    async def plan(self, run: UUID) -> Plan | None:
        """Returns the frozen plan of a run, None without a record."""

        async def fetch(connection: asyncpg.Connection) -> Plan | None:
            text = await connection.fetchval(*self._sql["plan"](id=run))
            return None if text is None else read_plan(text)

        return await call(self._pool, f"read the plan of {run}", fetch)

    async def ask(self, about: UUID, questions: Sequence[NewQuestion]) -> list[UUID]:
        """Enqueues questions behind all earlier ones, in this order, and returns the ids of new ones."""

        async def insert(connection: asyncpg.Connection) -> list[UUID]:
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](id=about))
                asked = [await connection.fetchval(*self._asking(about, one)) for one in questions]
                return [run for run in asked if run is not None]

        asked = await call(self._pool, f"enqueue questions about {about}", insert)
        for run in asked:
            self._notify(RUN_CHANNEL, str(run))
            if self._metrics is not None:
                self._metrics.add(ACCEPTED, kind="question")
        if asked:
            self._notify(QUEUE_CHANNEL, CLAIMABLE)
        return asked

    async def unfinished(self, about: UUID) -> list[UUID]:
        """Returns the open questions about an investigation, in the order of their places."""

        async def fetch(connection: asyncpg.Connection) -> list[UUID]:
            return [row["id"] for row in await connection.fetch(*self._sql["unfinished"](parent=about))]

        return await call(self._pool, f"read the open questions about {about}", fetch)

    async def past(self, about: UUID, run: UUID) -> PastWork:
        """Returns the work of an investigation, and the questions before `run` with the work behind each answer.

        Only the last QUESTIONS_WITH_WORK questions have that work; earlier ones have question and answer.
        """

        async def fetch(connection: asyncpg.Connection) -> PastWork:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                earlier = await connection.fetch(*self._sql["earlier"](parent=about, before=run))
                of = [about, *(row["id"] for row in earlier[-QUESTIONS_WITH_WORK:])]
                work = await connection.fetch(*self._sql["work"](ids=of))
                told = [
                    await connection.fetch(*self._reads["timeline"](investigation=one, after=0, limit=_ALL))
                    for one in of
                ]
            events: defaultdict[UUID, list[TimelineEvent]] = defaultdict(list)
            for event in map(rows.timeline_event, chain.from_iterable(told)):
                if event.execution is not None:
                    events[event.execution].append(event)
            agents: defaultdict[UUID, list[AgentWork]] = defaultdict(list)
            for row in work:
                agents[row["investigation"]].append(_agent(row))
            stages = tuple(
                StageWork(name, tuple(map(_agent, of_stage)))
                for (_, name), of_stage in groupby(
                    (row for row in work if row["investigation"] == about), lambda row: (row["stage"], row["name"])
                )
            )
            return PastWork(stages, events, tuple(_exchange(row, agents[row["id"]]) for row in earlier))

        return await call(self._pool, f"read the work of {about}", fetch)

    def _asking(self, about: UUID, question: NewQuestion) -> tuple[Any, ...]:
        plan, text = question.plan, clean(question.text)
        values = {
            "parent": about,
            "id": question.id,
            "name": question.name,
            "plan_hash": plan.digest,
            "limit_seconds": plan.limits.investigation_seconds,
            "author": dict(question.author),
            "question": text,
            "plan": plan.dump().decode(),
            "reader": self._version,
        }
        return self._sql["ask"](**values, **seal.of_acceptance({**values, "alert_data": text}).columns())


_ALL = 2**31 - 1


def _exchange(row: asyncpg.Record, agents: Sequence[AgentWork]) -> Exchange:
    return Exchange(row["question"], row["answer"] or "", row["author"] or "", State(row["state"]), tuple(agents))


def _agent(row: asyncpg.Record) -> AgentWork:
    return AgentWork(
        row["execution"],
        row["display_name"],
        row["strategy"],
        row["model"],
        State(row["state"]),
        rows.failure_of_row(row),
    )
