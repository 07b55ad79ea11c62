"""The trace, read back: what an investigation asked of models and tools, and who answers questions about it.

An answer is a run of its own in the same tables, so what reads a run reads an answer; a single call is found only
through the investigation that it belongs to, or whose question it answered. Which is why nothing here takes a call's id
alone.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.messages import ToolCall, ToolDefinition
from tarsy.record.run import ModelCallKind
from tarsy.record.trace import (
    LiveWorker,
    ModelCallDetail,
    ModelCallTrace,
    QuestionTrace,
    RunInput,
    StageDetail,
    ToolCallDetail,
    ToolCallTrace,
)
from tarsy.store import trace_rows
from tarsy.store.database import call
from tarsy.store.queries import load


class Trace:
    """Reads it; every method raises StoreError when Postgres is away or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("trace")

    async def locate(self, namespace: str, name: str, namespace_uid: str, run: UUID | None = None) -> UUID | None:
        """The id of the latest investigation of that name in that very namespace, or of the one that is `run`."""
        found = await self._fetch(
            "locate", "the investigation", namespace=namespace, name=name, namespace_uid=namespace_uid, run=run
        )
        return found[0]["id"] if found else None

    async def given(self, run: UUID) -> RunInput | None:
        """What a run was given, None when its record is gone."""
        found = await self._fetch("given", f"what {run} was given", run=run)
        return RunInput(**found[0]) if found else None

    async def answers(self, about: UUID, limit: int, after: int = 0) -> list[QuestionTrace]:
        """The questions about an investigation behind place `after`, in their order."""
        found = await self._fetch("answers", f"the questions about {about}", parent=about, after=after, limit=limit)
        return [trace_rows.question_trace(row) for row in found]

    async def answer_named(self, about: UUID, name: str) -> UUID | None:
        """The id of the latest answer to a question of that name."""
        found = await self._fetch("answer_named", f"the answer {name}", parent=about, name=name)
        return found[0]["id"] if found else None

    async def unanswered(self, about: UUID) -> bool:
        """Whether a question about an investigation is waiting for its answer."""
        found = await self._fetch("unanswered", f"the questions about {about}", parent=about)
        return bool(found[0]["found"])

    async def stages(self, run: UUID) -> list[StageDetail]:
        """The stages of a run with their agents, in order."""
        found = await self._fetch("agents", f"the agents of {run}", investigation=run)
        return [trace_rows.stage_trace(list(of_one)) for _, of_one in groupby(found, lambda row: row["stage"])]

    async def calls(
        self, run: UUID, limit: int, after: tuple[datetime, UUID] | None = None
    ) -> list[ModelCallTrace | ToolCallTrace]:
        """Calls of models and tools by all agents of a run, in the order in which they were begun.

        Args:
            run: an investigation or an answer.
            limit: calls at most.
            after: when the last one before was begun, and its id.
        """
        begun, last = after or (None, None)
        found = await self._fetch(
            "calls", f"the calls of {run}", investigation=run, begun=begun, last=last, limit=limit
        )
        return [
            trace_rows.model_call_trace(row) if row["what"] == "model" else trace_rows.tool_call_trace(row)
            for row in found
        ]

    async def model_call(self, investigation: UUID, call_id: UUID) -> ModelCallDetail | None:
        """A model call of an investigation or of its answers, None when there is none of that id."""
        found = await self._fetch("model_call", f"model call {call_id}", investigation=investigation, id=call_id)
        if not found:
            return None
        (row,) = found
        answer = row["answer"]
        if answer is None and row["kind"] == ModelCallKind.SUMMARIZATION:
            told = await self._fetch("told", f"model call {call_id}", investigation=row["run"], model_call=call_id)
            answer = told[0]["content"] if told else None
        return ModelCallDetail(
            of=trace_rows.call_owner(row),
            call=trace_rows.model_call_trace(row),
            answer=answer,
            tool_calls=[ToolCall(**one) for one in row["answer_calls"] or ()],
            thinking=row["thinking"],
            tools=[
                ToolDefinition(one["name"], one["description"], one["parameters"]) for one in row["definitions"] or ()
            ],
            metadata=row["response_metadata"] or {},
            estimated_tokens=row["estimated_tokens"],
            estimated_cost_usd=row["estimated_cost_usd"],
        )

    async def tool_call(self, investigation: UUID, call_id: UUID) -> ToolCallDetail | None:
        """A tool call of an investigation or of its answers, None when there is none of that id."""
        found = await self._fetch("tool_call", f"tool call {call_id}", investigation=investigation, id=call_id)
        if not found:
            return None
        (row,) = found
        return ToolCallDetail(
            of=trace_rows.call_owner(row),
            call=trace_rows.tool_call_trace(row),
            call_id=row["call_id"],
            arguments=row["arguments"],
            result=row["result"],
            idempotency_key=row["idempotency_key"],
            repeatable=row["repeatable"],
            tries=row["tries"],
        )

    async def workers(self, limit: int) -> list[LiveWorker]:
        """Those that are alive, by host."""
        return [LiveWorker(**row) for row in await self._fetch("workers", "the workers", limit=limit)]

    async def _fetch(self, query: str, what: str, /, **values: Any) -> Sequence[asyncpg.Record]:
        async def fetch(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            found: Sequence[asyncpg.Record] = await connection.fetch(*self._sql[query](**values))
            return found

        return await call(self._pool, f"read {what}", fetch)
