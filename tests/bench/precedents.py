"""Precedents in a record of 100,000 investigations: time of a search, and whether repeated incidents are found.

Every incident of `tests/incidents` was investigated once before, among others of the same namespace, alert type or
workload. It comes again with an alert about a Pod of its workload. Recall is the share of repetitions whose earlier
investigation is among the three that a run is told about. The text is also searched alone, without workload keys.

Each search is measured twice: by the clock, and by the CPU of the server process that answers it, which work of others
on the same machine disturbs less. `SELECT 1` in a transaction of its own says what the machine makes of nothing.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from tests.bench.figures import Figure, Result, spread
from tests.bench.lists import fill_record
from tests.bench.processes import thread_cpu_seconds

from integration.store.build import new_run, plan, worker
from tarsy.evidence.alert_words import alert_words
from tarsy.record.finding import Claim, Confidence, Finding
from tarsy.record.judging.precedent import MOST_PRECEDENTS
from tarsy.record.run import RunOutcome, State
from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate
from tarsy.store.reading.precedents import PrecedentQuery, PrecedentSearch, precedent_keys
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy_dev.incidents.cases import ALERT_TYPE
from tarsy_dev.incidents.corpus import Incident, load_incidents
from tarsy_dev.postgres import LocalPostgres

NAMESPACE, NAMESPACE_UID = "team-3", "uid-3"
_OTHERS = {f"team-{number}": f"uid-{number}" for number in range(20) if number != 3}
_AIM = "< 50 ms"


async def run(quick: bool) -> Result:
    """Fills the record, then searches for the precedents of each incident many times."""
    runs, asked = (2_000, 1) if quick else (100_000, 5)
    server = LocalPostgres(fsync=False, environ={})
    await asyncio.to_thread(server.start)
    try:
        pool = await open_pool(server.dsn, max_size=2)
        try:
            await migrate(pool)
            await fill_record(pool, runs)
            await pool.execute(
                "INSERT INTO precedent_key SELECT id, namespace_uid, 'workload:' || alert_type || '/checkout',"
                " accepted_at FROM investigation"
            )
            incidents = load_incidents()
            owner = await worker(pool, 3600)
            before = {one.name: await _investigated(pool, owner, one) for one in incidents}
            await pool.execute("VACUUM (ANALYZE)", timeout=3600)
            async with await open_pool(server.dsn, max_size=1) as one:
                figures = await _figures(one, incidents, before, asked)
            figures.append(Figure("statements that scan a table", await _scans(pool, incidents[0]), "", "0"))
        finally:
            await pool.close()
    finally:
        await asyncio.to_thread(server.stop)
    how = f"{runs:,} investigations in 20 namespaces, and {len(incidents)} incidents with two others beside each."
    return Result(f"{how} {asked} searches for each.", figures)


async def _figures(
    pool: asyncpg.Pool, incidents: Sequence[Incident], before: dict[str, UUID], asked: int
) -> list[Figure]:
    search = PrecedentSearch(pool)
    backend = await pool.fetchval("SELECT pg_backend_pid()")
    nothing = await _measured(lambda: _trivial(pool), 20 * asked, backend)
    figures = _spreads("a transaction with SELECT 1", *nothing, aim="")
    for name, make in (("by keys and words", _again), ("by words alone", _by_words)):
        times: list[float] = []
        cpu: list[float] = []
        found = 0
        for one in incidents:
            query = make(one)
            walls, used = await _measured(lambda of=query: search.find(of), asked, backend)  # type: ignore[misc]
            times, cpu = times + walls, cpu + used
            told = [precedent.id for precedent in (await search.find(query))[:MOST_PRECEDENTS]]
            found += before[one.name] in told
        figures += _spreads(f"search {name}", times, cpu)
        figures.append(Figure(f"recall@3 {name}", found / len(incidents), ""))
    for name, alert, alert_type in (
        ("a name of all runs", "deployment=checkout is down, word7919 word15838", "Type3"),
        ("a name that one run has", "deployment=checkout-83 is down, word7919 word15838", "Type3"),
        ("a type of 1 in 50 runs, without a name", "word7919 word15838 word3757 of the release", "Type3"),
        ("a type that only other namespaces have", "word7919 word15838 word3757 of the release", "Type4"),
    ):
        for where, granted in (("", {}), (", in 20 namespaces", _OTHERS)):
            of = replace(_query(alert, alert_type), granted=granted)
            took = await _measured(lambda q=of: search.find(q), 20 * asked, backend)  # type: ignore[misc]
            figures += _spreads(f"search for {name}{where}", *took)
    return figures


def _spreads(name: str, times: Sequence[float], cpu: Sequence[float], aim: str = _AIM) -> list[Figure]:
    return [*spread(name, times, "ms", aim), *spread(f"{name}: CPU", cpu, "ms")]


async def _measured(ask: Callable[[], Awaitable[object]], count: int, backend: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each question by the clock, and of the server process's CPU, after one that is not counted."""
    await ask()
    times, cpu = [], []
    for _ in range(count):
        used, began = thread_cpu_seconds(backend), time.perf_counter()
        await ask()
        times.append((time.perf_counter() - began) * 1000)
        cpu.append((thread_cpu_seconds(backend) - used) * 1000)
    return times, cpu


async def _trivial(pool: asyncpg.Pool) -> None:
    async with pool.acquire() as connection, connection.transaction(readonly=True):
        await connection.fetchval("SELECT 1")


async def _investigated(pool: asyncpg.Pool, owner: UUID, incident: Incident) -> UUID:
    """The earlier investigation of an incident, beside one of another workload and one of another type."""
    cause = incident.change or incident.target
    told = incident.faults[0].text if incident.faults else "nothing is wrong"
    name = incident.target.name
    others = (
        ("OtherAlert", name, "The certificate had expired."),
        (ALERT_TYPE, f"{name}-canary", "A node was drained."),
    )
    first = await _ended(pool, owner, ALERT_TYPE, _alert(incident, name), told, f"{cause.kind}/{cause.name}")
    for alert_type, workload, summary in others:
        await _ended(pool, owner, alert_type, _alert(incident, workload), summary, "")
    return first


async def _ended(pool: asyncpg.Pool, owner: UUID, alert_type: str, alert: str, summary: str, blames: str) -> UUID:
    of = plan(namespace=NAMESPACE).model_copy(update={"alert_type": alert_type})
    keys = precedent_keys(alert_type, None, alert_words(alert).workload)
    made = new_run(namespace=NAMESPACE, name=f"earlier-{uuid4().hex[:8]}", priority=100)
    made = replace(made, plan=of, namespace_uid=NAMESPACE_UID, alert_data=alert, keys=keys)
    await Runs(pool).accept(made)
    (claimed,) = await Claims(pool).claim(owner, 1, 100_000)
    claims = (Claim(text=f"{blames} was changed", supported=True),) if blames else ()
    finding = Finding(summary=summary, confidence=Confidence.HIGH, claims=claims)
    outcome = RunOutcome(State.COMPLETED, finding=finding, final_analysis=summary)
    await Runs(pool).finish(claimed.id, claimed.attempt, outcome)
    return made.id


def _alert(incident: Incident, workload: str) -> str:
    return f"alertname: {ALERT_TYPE}\nnamespace: {incident.namespace}\n{incident.target.kind.lower()}: {workload}\n"


def _again(incident: Incident) -> PrecedentQuery:
    """The incident comes again, with an alert about a Pod of its workload."""
    target = incident.target
    if target.kind in ("Deployment", "ReplicaSet"):
        return _query(f"alertname: {ALERT_TYPE}\npod: {target.name}-7c9f8d6b54-x2k4q\n", ALERT_TYPE)
    return _query(_alert(incident, target.name), ALERT_TYPE)


def _by_words(incident: Incident) -> PrecedentQuery:
    return replace(_again(incident), workload=None)


def _query(alert: str, alert_type: str) -> PrecedentQuery:
    words = alert_words(alert)
    return PrecedentQuery(
        uuid4(), NAMESPACE, NAMESPACE_UID, alert_type, None, words.workload, words.entities, words.words
    )


async def _scans(pool: asyncpg.Pool, incident: Incident) -> int:
    """The number of sequential scans of large tables in the plans of a search."""
    said: list[str] = []
    async with pool.acquire() as connection:
        await connection.execute("LOAD 'auto_explain'")
        await connection.execute("SET auto_explain.log_min_duration = 0; SET client_min_messages = 'log'")

        def listen(_: object, message: object) -> None:
            said.append(str(message))

        connection.add_log_listener(listen)
        search = PrecedentSearch(_Lent(connection))  # type: ignore[arg-type]
        for query in (_again(incident), _by_words(incident), _query("deployment=checkout", "Type3")):
            await search.find(query)
        connection.remove_log_listener(listen)
    plans = "\n".join(said)
    if "plan:" not in plans:
        raise RuntimeError("Postgres told no plan")
    return len(re.findall(r"Seq Scan on (?:tarsy\.)?(?:investigation|investigation_words|precedent_key)\b", plans))


class _Lent:
    """A pool of one connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def acquire(self, **_: object) -> Any:
        return self._connection

    async def release(self, *_: object, **__: object) -> None:
        """Keeps it."""

    def is_closing(self) -> bool:
        return False
