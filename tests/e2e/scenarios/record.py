"""A run as it was left behind, read from the objects and from Postgres, and set beside what the models were sent.

Decision: what the record says was sent is compared here with what a client really got, once for all scenarios; the
goldens then show the record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.http.views.seal import published_seals
from tarsy.llm.protocol import GenerateRequest
from tarsy.record.ids import call_ref
from tarsy.record.messages import Message
from tarsy.record.run import InvestigationRecord
from tarsy.record.timeline import TimelineEvent
from tarsy.store.reading.reads import Reads
from tarsy.store.sealing.sealed_record import SealedRecord

_STAGES = "SELECT * FROM stage WHERE investigation = $1 ORDER BY index"
_EXECUTIONS = """
SELECT e.*, s.index AS stage_index, s.name AS stage_name FROM execution e JOIN stage s ON s.id = e.stage
WHERE s.investigation = $1 ORDER BY s.index, e.index
"""
_MODEL_CALLS = """
SELECT c.*, t.definitions, m.content AS answer, m.tool_calls, m.provider_state, m.role AS answer_role
FROM llm_interaction c
LEFT JOIN tool_set t ON t.hash = c.tool_set
LEFT JOIN message m ON m.execution = c.execution AND m.seq = c.message_seq
WHERE c.execution = $1 ORDER BY c.number
"""
_TOOL_CALLS = "SELECT * FROM mcp_interaction WHERE execution = $1 ORDER BY message_seq, index, attempt"


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One model call: its row with the answer, what was sent, and the request that the client got."""

    row: asyncpg.Record
    sent: tuple[Message, ...]
    request: GenerateRequest


@dataclass(frozen=True, slots=True)
class Execution:
    """One agent execution with its calls."""

    row: asyncpg.Record
    model_calls: tuple[ModelCall, ...]
    tool_calls: tuple[asyncpg.Record, ...]

    @property
    def title(self) -> str:
        """Its stage and its agent."""
        return f"{self.row['stage_index']}-{self.row['display_name']}"

    def ref(self, tool_call: asyncpg.Record) -> str:
        """What a model cites the call with."""
        return call_ref(tool_call["idempotency_key"])


@dataclass(frozen=True, slots=True)
class Run:
    """One run in all its layers; `objects` are those that show it, the run's own first.

    An answer is a run as well; `about` is the one that is asked about, `earlier` are the answers before it.
    """

    objects: tuple[Mapping[str, Any], ...]
    record: InvestigationRecord
    plan_hash: str
    stages: tuple[asyncpg.Record, ...]
    executions: tuple[Execution, ...]
    events: tuple[TimelineEvent, ...]
    about: "Run | None" = None
    earlier: "tuple[Run, ...]" = ()

    @property
    def id(self) -> UUID:
        """The run's id."""
        return self.record.id

    @property
    def seconds(self) -> tuple[float, float]:
        """When it was started and when it ended."""
        assert self.record.started_at and self.record.finished_at
        return self.record.started_at.timestamp(), self.record.finished_at.timestamp()

    def execution(self, title: str) -> Execution:
        """The execution with this title."""
        return next(execution for execution in self.executions if execution.title == title)


async def read_run(
    pool: asyncpg.Pool,
    objects: Sequence[Mapping[str, Any]],
    requests: Mapping[str, Sequence[GenerateRequest]],
    about: Run | None = None,
    earlier: tuple[Run, ...] = (),
) -> Run:
    """Reads a run, and asserts that every model was sent exactly what the record says."""
    identity, reads = UUID(objects[0]["metadata"]["uid"]), Reads(pool)
    record = await reads.record(identity)
    assert record is not None
    for report in await SealedRecord(pool).check(identity, published_seals(objects)):
        assert report.flaws == [], f"{report.name} differs from its sealed form"
        print(
            "VERIFY",
            report.name,
            report.steps,
            report.rows,
            report.head[:16],
            report.published,
            report.unpublished,
            report.left_open,
        )
    executions = []
    for row in await pool.fetch(_EXECUTIONS, identity):
        seen, calls = requests.get(str(row["id"]), ()), await pool.fetch(_MODEL_CALLS, row["id"])
        assert len(seen) == len(calls), f"{row['display_name']}: {len(calls)} calls on record, {len(seen)} requests"
        model_calls = tuple(
            [
                ModelCall(call, tuple(await reads.sent(call["id"])), request)
                for call, request in zip(calls, seen, strict=True)
            ]
        )
        for call in model_calls:
            _same(row["display_name"], call)
        executions.append(Execution(row, model_calls, tuple(await pool.fetch(_TOOL_CALLS, row["id"]))))
    return Run(
        tuple(objects),
        record,
        record.plan_hash,
        tuple(await pool.fetch(_STAGES, identity)),
        tuple(executions),
        tuple(await reads.timeline(identity, limit=100_000)),
        about,
        earlier,
    )


def _same(agent: str, call: ModelCall) -> None:
    """What the client got is what is on record."""
    assert tuple(call.request.messages) == call.sent, f"{agent}: call {call.row['number']} was sent something else"
    offered = [(tool.name, tool.description, tool.parameters_schema) for tool in call.request.tools]
    on_record = [(t["name"], t["description"], t["parameters"]) for t in call.row["definitions"] or ()]
    assert offered == on_record, f"{agent}: call {call.row['number']} was offered other tools"
