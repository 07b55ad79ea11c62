"""Reads runs for replays, and the calls of replays."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.plan.model import Plan
from tarsy.plan.reach import read_plan
from tarsy.record.integrity import read_marks
from tarsy.record.judging.precedent import read_precedents
from tarsy.record.judging.recorded_run import AskedCall, AskedCalls, RecordedAgent, RecordedRun, RecordedToolCall
from tarsy.record.messages import Access, ToolDefinition
from tarsy.record.run import ALERT_DATA, State
from tarsy.record.timeline import NOTICE_TOOLS
from tarsy.store.database import call
from tarsy.store.queries import load

MAX_CALLS = 20_000
"""Calls of a run that are read, as many as a cassette holds."""


@dataclass(frozen=True, slots=True)
class ReplaySource:
    """A run that is to be replayed, with its state and plan; `replay`: it is itself one."""

    run: RecordedRun
    plan: Plan
    state: State
    replay: bool


class Replays:
    """Reads for replays; every method raises StoreError when Postgres is unavailable or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("replays")

    async def source(self, run: UUID) -> ReplaySource | None:
        """Reads a run with its tool calls; None: it is not on record, or is an answer to a question.

        Raises:
            ValueError: this version cannot read its plan.
        """

        async def read(connection: asyncpg.Connection) -> ReplaySource | None:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                row = await connection.fetchrow(*self._sql["run"](run=run))
                if row is None:
                    return None
                found = {
                    name: await connection.fetch(*self._sql[name](run=run))
                    for name in ("agents", "access", "pins", "changed")
                }
                calls = await connection.fetch(*self._sql["calls"](run=run, limit=MAX_CALLS))
            return ReplaySource(
                _recorded(row, found, calls),
                read_plan(row["plan"]),
                State(row["state"]),
                row["replay"],
            )

        return await call(self._pool, f"read investigation {run} for a replay", read)

    async def cassette(self, run: UUID) -> bytes | None:
        """Returns the record that a replay answers from; None: the run is no replay."""

        async def read(connection: asyncpg.Connection) -> bytes | None:
            found: bytes | None = await connection.fetchval(*self._sql["cassette"](run=run))
            return found

        return await call(self._pool, f"read the cassette of replay {run}", read)

    async def asked(self, run: UUID) -> AskedCalls:
        """Returns the tool calls that a replay has made so far."""

        async def read(connection: asyncpg.Connection) -> AskedCalls:
            rows = await connection.fetch(*self._sql["asked"](run=run))
            uses = await connection.fetchval(*self._sql["native"](run=run))
            return AskedCalls([_asked(row) for row in rows], uses)

        return await call(self._pool, f"read the calls of replay {run}", read)


def _recorded(
    row: asyncpg.Record, found: Mapping[str, Sequence[asyncpg.Record]], calls: Sequence[asyncpg.Record]
) -> RecordedRun:
    access, pins = found["access"], {pin["server"]: pin["tools"] for pin in found["pins"]}
    missing = {name: why for name, why in row["evidence_missing"].items() if name != ALERT_DATA}
    return RecordedRun(
        id=row["id"],
        namespace=row["namespace"],
        name=row["name"],
        alert_type=row["alert_type"],
        chain=row["chain"],
        chain_namespace=row["chain_namespace"],
        plan_hash=row["plan_hash"],
        alert_data=row["alert_data"],
        runbook=row["runbook"],
        began=row["began"],
        agents=[_agent(agent, found["changed"], pins) for agent in found["agents"]],
        calls=[_call(one) for one in calls],
        access={(one["server"], one["tool"]): Access(one["access"]) for one in access},
        repeatable=frozenset((one["server"], one["tool"]) for one in access if one["repeatable"]),
        pins=pins,
        missing=missing,
        precedents=read_precedents(row["precedents"]),
    )


def _agent(
    row: asyncpg.Record, notices: Sequence[asyncpg.Record], pins: Mapping[str, Mapping[str, str]]
) -> RecordedAgent:
    sets = [row["definitions"]] if row["definitions"] is not None else row["sent"]
    tools = {tool["name"]: tool for definitions in sets for tool in definitions}
    return RecordedAgent(
        id=row["id"],
        stage=row["stage"],
        index=row["index"],
        strategy=row["strategy"],
        began=row["began"],
        result=row["result"],
        tools=[_definition(tool) for tool in tools.values()],
        instructions=row["instructions"] or {},
        changed=_changed([one["metadata"] for one in notices if one["execution"] == row["id"]], tools, pins),
    )


def _changed(
    notices: Sequence[Mapping[str, Any]], offered: Collection[str], pins: Mapping[str, Mapping[str, str]]
) -> dict[str, Sequence[str]]:
    """Returns the tools that were not those of the beginning; of many, a notice lists the first."""
    found: dict[str, Sequence[str]] = {}
    for notice in notices:
        server, lists = notice["server"], [notice.get(what, ()) for what in ("changed", "removed")]
        names = {tool for tools in lists for tool in tools}
        if max(map(len, lists)) >= NOTICE_TOOLS:
            names |= {tool for tool in pins.get(server, ()) if f"{server}.{tool}" not in offered}
        found[server] = sorted(names)
    return found


def _definition(tool: dict[str, Any]) -> ToolDefinition:
    return ToolDefinition(tool["name"], tool["description"], tool["parameters"])


def _call(row: asyncpg.Record) -> RecordedToolCall:
    values = dict(row)
    stored = values.pop("integrity")
    marks = None if stored is None else read_marks(stored)
    return RecordedToolCall(**{**values, "access": Access(row["access"]), "marks": marks})


def _asked(row: asyncpg.Record) -> AskedCall:
    place = (row["stage"], row["agent"], row["message_seq"], row["index"])
    return AskedCall(place, row["tool"], row["arguments"], row["rung"], row["cassette_line"])
