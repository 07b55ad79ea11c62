"""Where Postgres' time goes: its statements by their cost an investigation, and its CPU by kind of process.

It stands on a stack of its own, whose Postgres has `pg_stat_statements`: times are those of the server's executor and
planner, of foreign-key checks and triggers inside a statement too (`nested` shows them once more, by themselves).
What lies between the statements (the protocol, parsing, sending rows) is in the CPU of the backends only.
"""

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import asyncpg
from tests.bench.bed import AGENT, Bed, loop_script, running_bed
from tests.bench.figures import Figure, Result
from tests.bench.floor import postmaster
from tests.bench.processes import cpu_seconds, tree_cpu_seconds

from tarsy.store.queries import load

CALLS, TOKENS = 10, 200
SHOWN = 28
SERVER = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "all",
    "pg_stat_statements.track_planning": "on",
    "pg_stat_statements.max": "2000",
}
RESET = "SELECT public.pg_stat_statements_reset()"
STATEMENTS = """
    SELECT query, toplevel, calls, plans, total_exec_time AS executed, total_plan_time AS planned,
        wal_bytes::float8 AS wal
    FROM public.pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'
"""
_CONSTANT = re.compile(r"\$\d+|'(?:[^']|'')*'|\b(?:\d+(?:\.\d+)?|true|false|null)\b", re.IGNORECASE)
PROCESSES = "SELECT pid, backend_type, application_name FROM pg_stat_activity"


@dataclass(frozen=True, slots=True)
class _Statement:
    """Calls and milliseconds of one statement."""

    name: str
    nested: bool
    calls: int
    plans: int
    executed: float
    planned: float
    wal: float


async def run(quick: bool) -> Result:
    """Counts the statements of a number of tool loops that run at once."""
    count = 4 if quick else 50
    async with running_bed(SERVER) as bed:
        await bed.pool.execute("CREATE EXTENSION pg_stat_statements SCHEMA public")
        limits = ("--places", str(count), "--global-limit", str(count))
        async with bed.tenant("statements", loop_script(CALLS, tokens=TOKENS), *limits) as tenant:
            await tenant.chain([AGENT])
            await tenant.create_many("heat", count)
            await tenant.settled("heat", count)
            await bed.pool.execute(RESET)
            postgres, kinds = postmaster(tenant), await _kinds(bed)
            cpu = tree_cpu_seconds(postgres)
            await tenant.create_many("run", count)
            await tenant.settled("run", count)
            used = tree_cpu_seconds(postgres) - cpu
            later = await _kinds(bed)
            rows = await bed.pool.fetch(STATEMENTS)
    names = _names()
    statements = [_statement(row, names) for row in rows]
    return Result(_how(count), [*_totals(statements, used, kinds, later, count), *_each(statements, count)])


async def _kinds(bed: Bed) -> dict[str, float]:
    """CPU seconds of the live server processes by kind; clients by the name of their application."""
    found: dict[str, float] = {}
    for row in await bed.pool.fetch(PROCESSES):
        client = row["backend_type"] == "client backend"
        kind = " ".join(row["application_name"].split()[:2]) if client else row["backend_type"]
        found[kind] = found.get(kind, 0.0) + cpu_seconds(row["pid"])
    return found


def _names() -> dict[str, str]:
    """The names of the store's statements by their text without constants."""
    kept = sorted(Path(str(path)).stem for path in files("tarsy.store").joinpath("sql").iterdir())
    return {
        _shape(statement.sql): f"{file}.{name}"
        for file in kept
        if file != "search"  # blocks, not statements
        for name, statement in load(file).items()
    }


def _shape(sql: str) -> str:
    """A statement without constants and parameters, which `pg_stat_statements` does not tell apart."""
    return " ".join(_CONSTANT.sub("?", sql).split())


def _statement(row: asyncpg.Record, names: dict[str, str]) -> _Statement:
    name = names.get(_shape(row["query"]), " ".join(row["query"].split())[:120])
    times = (row["executed"], row["planned"], row["wal"])
    return _Statement(name, not row["toplevel"], row["calls"], row["plans"], *times)


def _totals(
    statements: list[_Statement], used: float, kinds: dict[str, float], later: dict[str, float], count: int
) -> list[Figure]:
    top = [one for one in statements if not one.nested]
    asked = {one.name: one.calls / count for one in sorted(top, key=lambda one: -one.calls)}
    figures = [
        Figure("CPU of all processes of Postgres, an investigation", used * 1000 / count, "ms"),
        Figure("executing statements, an investigation", sum(one.executed for one in top) / count, "ms"),
        Figure("planning them, an investigation", sum(one.planned for one in top) / count, "ms"),
        Figure("statements, an investigation", sum(one.calls for one in top) / count, "calls", detail=asked),
        Figure("plans made, an investigation", sum(one.plans for one in top) / count, "plans"),
    ]
    for kind, seconds in sorted(later.items(), key=lambda item: -item[1]):
        if (spent := seconds - kinds.get(kind, 0.0)) > 0:
            figures.append(Figure(f"  CPU of {kind}, an investigation", spent * 1000 / count, "ms"))
    return figures


def _each(statements: list[_Statement], count: int) -> list[Figure]:
    """The costliest statements; a nested one is part of its statement's time."""
    costly = sorted(statements, key=lambda one: -(one.executed + one.planned))[:SHOWN]
    return [
        Figure(
            f"{'  nested: ' if one.nested else ''}{one.calls / count:.2f} times, {one.plans / count:.2f} plans, "
            f"{one.wal / count:,.0f} B of WAL: {one.name}",
            (one.executed + one.planned) / count,
            "ms",
            detail={"planned": one.planned / count, "executed": one.executed / count},
        )
        for one in costly
    ]


def _how(count: int) -> str:
    return (
        f"{count} investigations at once, of one agent with {CALLS} model calls of {TOKENS} streamed tokens and "
        f"{CALLS - 1} tool calls of a model that answers at once, after as many that are not counted. All figures are "
        "divided by the investigations."
    )
