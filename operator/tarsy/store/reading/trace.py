"""Reads the trace: model calls and tool calls of an investigation, and the questions about it.

An answer is a run in the same tables, so the same methods read answers. A single call is read only together with the
investigation that it belongs to, directly or through an answer, so that access to it can be checked.
"""

from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.judging.precedent import read_precedents
from tarsy.record.messages import ToolCall, ToolDefinition
from tarsy.record.reading.trace import (
    ModelCallDetail,
    ModelCallTrace,
    PlacedCall,
    QuestionTrace,
    RunInput,
    StageDetail,
    ToolCallDetail,
    ToolCallTrace,
)
from tarsy.record.run import ModelCallKind
from tarsy.store.database import fetch_rows
from tarsy.store.queries import load
from tarsy.store.reading import trace_rows


class Trace:
    """Reads the trace; every method raises StoreError when Postgres is unavailable or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("trace")

    async def locate(self, namespace: str, name: str, namespace_uid: str, run: UUID | None = None) -> UUID | None:
        """Returns the id of the latest investigation of a name.

        Args:
            namespace: its namespace.
            name: of the Investigation.
            namespace_uid: uid of the namespace.
            run: only this run.
        """
        found = await self._fetch(
            "locate", "the investigation", namespace=namespace, name=name, namespace_uid=namespace_uid, run=run
        )
        return found[0]["id"] if found else None

    async def given(self, run: UUID) -> RunInput | None:
        """Returns the input of a run, None without a record."""
        found = await self._fetch("given", f"the input of {run}", run=run)
        return RunInput(**{**found[0], "precedents": read_precedents(found[0]["precedents"])}) if found else None

    async def answers(self, about: UUID, limit: int, after: int = 0) -> list[QuestionTrace]:
        """Returns up to `limit` questions about an investigation after place `after`, in order."""
        found = await self._fetch("answers", f"the questions about {about}", parent=about, after=after, limit=limit)
        return [trace_rows.question_trace(row) for row in found]

    async def answer_named(self, about: UUID, name: str) -> UUID | None:
        """Returns the id of the latest answer to a question of that name."""
        found = await self._fetch("answer_named", f"the answer {name}", parent=about, name=name)
        return found[0]["id"] if found else None

    async def unanswered(self, about: UUID) -> bool:
        """Returns whether a question about an investigation has no answer yet."""
        found = await self._fetch("unanswered", f"the questions about {about}", parent=about)
        return bool(found[0]["found"])

    async def stages(self, run: UUID) -> list[StageDetail]:
        """Returns the stages of a run with their agents, in order."""
        found = await self._fetch("agents", f"the agents of {run}", investigation=run)
        return [trace_rows.stage_trace(list(of_one)) for _, of_one in groupby(found, lambda row: row["stage"])]

    async def calls(
        self, run: UUID, limit: int, after: tuple[datetime, UUID] | None = None
    ) -> list[ModelCallTrace | ToolCallTrace]:
        """Returns model calls and tool calls of all agents of a run, in the order in which they began.

        Args:
            run: an investigation or an answer.
            limit: maximum calls.
            after: start time and id of the last call of the page before.
        """
        begun, last = after or (None, None)
        found = await self._fetch(
            "calls", f"the calls of {run}", investigation=run, begun=begun, last=last, limit=limit
        )
        return [
            trace_rows.model_call_trace(row) if row["what"] == "model" else trace_rows.tool_call_trace(row)
            for row in found
        ]

    async def placed_calls(self, run: UUID, limit: int) -> list[PlacedCall]:
        """Returns up to `limit` tool calls of a run, in the order in which its agents asked for them."""
        found = await self._fetch("placed_calls", f"the tool calls of {run}", investigation=run, limit=limit)
        return [PlacedCall(**row) for row in found]

    async def model_call(self, investigation: UUID, call_id: UUID) -> ModelCallDetail | None:
        """Returns a model call of an investigation or of its answers, None when it does not exist."""
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
        """Returns a tool call of an investigation or of its answers, None when it does not exist."""
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

    async def _fetch(self, query: str, what: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, f"read {what}", self._sql[query](**values))
