"""Records the statements that a worker of the previous version sends to Postgres, and replays them beside this version.

The recording is `previous.json`: each statement of the store with its arguments, of a run that a worker of the schema
version it names worked on, in two halves. It stands for the old code where there is no old code: a checkout without
history. When a version was released, it is made anew, with the code of that version, before the next migration is
added: `PYTHONPATH=operator:tests python -m integration.store.previous`.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from integration.store.build import (
    PROMPT,
    event,
    execution,
    model_call,
    model_result,
    new_run,
    plan,
    stage,
    tool_call,
    tool_result,
    writer,
)
from tarsy.plan.model import CallLimits, ObjectRef, ProviderPlan
from tarsy.record import ids
from tarsy.record.boundaries import OfferedTools
from tarsy.record.history import BudgetExceeded, BudgetLimit
from tarsy.record.messages import ToolOutcome
from tarsy.record.run import DesiredState, ExecutionOutcome, RunOutcome, StageOutcome, State
from tarsy.record.timeline import EventStatus
from tarsy.store.questions import NewQuestion, Questions
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.rate_limit_slots import ProviderSlots

FILE = Path(__file__).with_name("previous.json")
WORKER, SECOND = UUID(int=1), UUID(int=2)
FIRST_RUN, HANDED_BACK, WAITING = UUID(int=11), UUID(int=12), UUID(int=13)
QUESTION = UUID(int=21)
TICKETS = UUID(int=31), UUID(int=32)
RUNS = {"first": FIRST_RUN, "handed-back": HANDED_BACK, "waiting": WAITING}
SECONDS = 3600.0
PROVIDER = ProviderPlan(
    ref=ObjectRef(kind="LLMProvider", namespace="team-a", name="local", uid="provider-1", generation=1),
    type="openai",
    model="scripted",
    limits=CallLimits(max_concurrent=1),
)


async def first_half(pool: Any) -> None:
    """Runs are accepted and claimed; one comes to the middle of a tool call."""
    claims, runs = Claims(pool), Runs(pool)
    for name, run in RUNS.items():
        await runs.accept(replace(new_run(name=name, priority=len(RUNS) - list(RUNS).index(name)), id=run))
    await claims.register(WORKER, "node-1", SECONDS)
    claimed = await claims.claim(WORKER, 2, 100)
    assert [found.id for found in claimed] == [FIRST_RUN, HANDED_BACK]
    write, of = writer(pool, FIRST_RUN), execution(FIRST_RUN)
    await write.begin_stage(stage(FIRST_RUN))
    await write.begin_execution(of)
    await write.pin_tools({"kubernetes": {"get": "digest"}}, OfferedTools(of.id))
    turns = [await ProviderSlots(pool).take(ticket, PROVIDER, 10, FIRST_RUN, 1) for ticket in TICKETS]
    assert [turn.held is None for turn in turns] == [True, False]
    call = model_call(of.id, new=PROMPT)
    place = {"stage": of.stage, "execution": of.id, "model_call": call.id}
    await write.model_call_started(call, [event(of.id, "thinking", EventStatus.STREAMING, **place)])
    await write.model_call_finished(model_result(of.id, cost_usd=Decimal("0.25")), [event(of.id, "thinking", **place)])
    await write.tool_call_started(tool_call(of.id))
    await write.tool_call_answered(tool_call(of.id).id, ToolOutcome("a pod"), 3)


async def second_half(pool: Any) -> None:
    """The run goes on, and all of them end."""
    claims, runs, reads = Claims(pool), Runs(pool), Reads(pool)
    write, of = writer(pool, FIRST_RUN), execution(FIRST_RUN)
    assert set(await claims.heartbeat(WORKER, SECONDS)) == {FIRST_RUN, HANDED_BACK}
    left = await write.begin_execution(of)
    assert left is not None and [(found.message_seq, found.result) for found in left.unanswered] == [(2, "a pod")]
    slots = ProviderSlots(pool)
    await slots.release({TICKETS[0]: 7})
    assert (await slots.take(TICKETS[1], PROVIDER, 10, FIRST_RUN, 1)).held is None
    await slots.release(dict.fromkeys(TICKETS))
    await slots.publish(PROVIDER.ref.model_copy(update={"generation": 2}), None)
    await write.tool_call_finished(tool_result(of.id))
    again = replace(model_call(of.id, 1, 4), superseded={3: "a pod …"})
    await write.model_call_started(again)
    await write.degrade_evidence({"prometheus": "it is away"})
    await write.budget_exceeded(BudgetExceeded(BudgetLimit.TOKENS, "too many"), [event(of.id, "budget")])
    await write.write_events([event(of.id, "note")])
    assert len((await write.stage_timeline(of.stage))[of.id]) == 1
    assert len(await write.evidence(["c1", str(tool_call(of.id).id)])) == 1
    assert (await write.history()).tool_calls == 1
    await write.finish_execution(ExecutionOutcome(of.id, State.COMPLETED, "the probe"))
    await write.finish_stage(StageOutcome(ids.stage_id(FIRST_RUN, 0), State.COMPLETED))
    assert await reads.unfinished() == set(RUNS.values())
    for _ in range(2):  # the answer to the first was lost
        await runs.finish(FIRST_RUN, 1, RunOutcome(State.COMPLETED, final_analysis="the probe"))
    questions = Questions(pool)
    assert await questions.plan(FIRST_RUN) is not None
    assert await questions.ask(FIRST_RUN, [NewQuestion(QUESTION, "why", "Why?", plan())]) == [QUESTION]
    assert [found.id for found in await claims.claim(WORKER, 0, 100, questions=1)] == [QUESTION]
    assert len((await questions.past(FIRST_RUN, QUESTION)).stages) == 1
    await runs.finish(QUESTION, 1, RunOutcome(State.COMPLETED, final_analysis="because of the probe"))
    assert [found.id for found in await reads.answers(FIRST_RUN)] == [QUESTION]
    assert await claims.release(WORKER, HANDED_BACK, 1)
    await claims.register(SECOND, "node-2", SECONDS)
    assert [found.attempt for found in await claims.claim(SECOND, 1, 100)] == [2]
    await claims.deregister(SECOND)
    await runs.set_desired_state(HANDED_BACK, DesiredState.CANCELLED)
    assert await runs.expire_overdue(0) == [HANDED_BACK]
    await runs.object_deleted(WAITING)
    await claims.deregister(WORKER)
    record = await reads.record(FIRST_RUN)
    assert record is not None and record.state is State.COMPLETED
    assert len(await reads.unpublished(10)) == 3
    await reads.mark_published(FIRST_RUN, record.revision)
    assert (await reads.find("team-a", "handed-back")) is not None
    assert len(await reads.timeline(FIRST_RUN)) >= 3
    assert len(await reads.sent(again.id)) == 4
    assert (await reads.queue_depth()).pending == 0
    assert len(await reads.usage(3600, "model")) == 1
    assert await reads.known([WAITING]) == {WAITING}


HALVES: tuple[Callable[[Any], Awaitable[None]], ...] = (first_half, second_half)


@dataclass(frozen=True, slots=True)
class Sent:
    """One statement, what came with it, and how many rows it gave; `begin` and `commit` are of a transaction."""

    how: str
    statement: str = ""
    arguments: tuple[Any, ...] = ()
    rows: int = 0
    columns: tuple[str, ...] = ()


class _Connection:
    def __init__(self, connection: Any, sent: list[Sent]) -> None:
        self._connection = connection
        self._sent = sent

    @contextlib.asynccontextmanager
    async def transaction(self, **options: Any) -> AsyncIterator[None]:
        async with self._connection.transaction(**options):
            self._sent.append(Sent("begin"))
            yield
            self._sent.append(Sent("commit"))

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        return (await self._send(statement, arguments))[0]

    async def fetchrow(self, statement: str, *arguments: Any) -> asyncpg.Record | None:
        rows = await self.fetch(statement, *arguments)
        return rows[0] if rows else None

    async def fetchval(self, statement: str, *arguments: Any) -> Any:
        row = await self.fetchrow(statement, *arguments)
        return None if row is None else row[0]

    async def execute(self, statement: str, *arguments: Any) -> str:
        return (await self._send(statement, arguments))[1]

    async def _send(self, statement: str, arguments: tuple[Any, ...]) -> tuple[list[asyncpg.Record], str]:
        prepared = await self._connection.prepare(statement)
        rows: list[asyncpg.Record] = await prepared.fetch(*arguments)
        columns = tuple(rows[0].keys()) if rows else ()
        self._sent.append(Sent("fetch", statement, arguments, len(rows), columns))
        return rows, prepared.get_statusmsg()


class Recording:
    """A pool that notes what is sent through it."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._real: dict[int, Any] = {}
        self.sent: list[Sent] = []

    def acquire(self, **options: Any) -> "_Acquiring":
        return _Acquiring(self)

    async def take(self) -> _Connection:
        real = await self._pool.acquire()
        connection = _Connection(real, self.sent)
        self._real[id(connection)] = real
        return connection

    async def release(self, connection: _Connection, **options: Any) -> None:
        await self._pool.release(self._real.pop(id(connection)))

    def is_closing(self) -> bool:
        return bool(self._pool.is_closing())


class _Acquiring:
    """To be awaited or entered, as asyncpg's own."""

    def __init__(self, pool: Recording) -> None:
        self._pool = pool
        self._held: _Connection | None = None

    def __await__(self) -> Generator[Any, None, _Connection]:
        return self._pool.take().__await__()

    async def __aenter__(self) -> _Connection:
        self._held = await self._pool.take()
        return self._held

    async def __aexit__(self, *_: object) -> None:
        if self._held is not None:
            await self._pool.release(self._held)


async def replay(connection: asyncpg.Connection, sent: Sequence[Sent]) -> None:
    """Sends it again; each statement gives as many rows, of the same columns, as it gave then."""
    transaction = None
    for number, one in enumerate(sent):
        if one.how == "begin":
            transaction = connection.transaction()
            await transaction.start()
        elif one.how == "commit" and transaction is not None:
            await transaction.commit()
        else:
            rows = await connection.fetch(one.statement, *one.arguments)
            columns = tuple(rows[0].keys()) if rows else ()
            assert (len(rows), columns) == (one.rows, one.columns), (number, one.statement)


def load_previous() -> tuple[int, tuple[list[Sent], ...]]:
    """The schema version of the recording, and its halves."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    texts = ["\n".join(lines) for lines in found["statements"]]
    halves = tuple(
        [
            Sent(
                how,
                texts[rest[0]] if rest else "",
                tuple(_decoded(value) for value in rest[1]) if rest else (),
                rest[2] if rest else 0,
                tuple(rest[3]) if rest else (),
            )
            for how, *rest in half
        ]
        for half in found["halves"]
    )
    return found["schema"], halves


def dump(schema: int, halves: Sequence[Sequence[Sent]]) -> str:
    """The recording as the file has it."""
    texts = list(dict.fromkeys(one.statement for half in halves for one in half if one.statement))
    made = [
        [
            [one.how]
            if not one.statement
            else [one.how, texts.index(one.statement), [_encoded(v) for v in one.arguments], one.rows, one.columns]
            for one in half
        ]
        for half in halves
    ]
    whole = {"schema": schema, "statements": [text.split("\n") for text in texts], "halves": made}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _encoded(value: Any) -> Any:
    match value:
        case UUID():
            return {"uuid": str(value)}
        case Decimal():
            return {"decimal": str(value)}
        case Mapping():
            return {"json": value}
        case list() | tuple():
            return [_encoded(part) for part in value]
        case _:
            return value


def _decoded(value: Any) -> Any:
    match value:
        case {"uuid": text}:
            return UUID(text)
        case {"decimal": text}:
            return Decimal(text)
        case {"json": inner}:
            return inner
        case list():
            return [_decoded(part) for part in value]
        case _:
            return value


async def _record() -> None:
    from tarsy.store.database import open_pool
    from tarsy.store.migrate import migrate, migrations
    from tarsy.store.queries import load
    from tarsy_dev.postgres import LocalPostgres

    server = LocalPostgres(fsync=False, environ={})
    await asyncio.to_thread(server.start)
    try:
        pool = await open_pool(server.dsn)
        await migrate(pool)
        halves = []
        for half in HALVES:
            recording = Recording(pool)
            await half(recording)
            halves.append(recording.sent)
        sent = {one.statement for half in halves for one in half}
        files = ("claims", "questions", "reads", "runs", "slots", "writer")
        statements = [(file, *of) for file in files for of in load(file).items()]
        never = [f"{file}.{name}" for file, name, statement in statements if statement.sql not in sent]
        assert not never, f"the halves never send {', '.join(never)}"
        FILE.write_text(dump(max(step.version for step in migrations()), halves), encoding="utf-8")
        await pool.close()
    finally:
        await asyncio.to_thread(server.stop)


if __name__ == "__main__":
    sys.exit(asyncio.run(_record()))
