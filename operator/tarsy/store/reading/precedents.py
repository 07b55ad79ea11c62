"""Finds precedents: finished investigations of the same incident, workload or changed object, or with the same words.

Each search reads a bounded number of rows by an index. How a finding ended is what its Reviews say: the least
favourable verdict that counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.observe.metric_table import PRECEDENT_SEARCHES
from tarsy.observe.metrics import Metrics
from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.precedent import Precedent, PrecedentEnding, PrecedentMatch, rank_precedents
from tarsy.record.judging.review import ReviewVerdict
from tarsy.store.database import call
from tarsy.store.errors import StoreError
from tarsy.store.queries import Statement, load

MOST_CANDIDATES = 20
"""Maximum candidates of one kind of match."""

_LOOKED_AT, _READ = 300, 100
_WALKED, _ENOUGH = 600, 60
"""Among the latest runs, this number of all namespaces together, words are looked for first. If fewer than enough have
them, the index of words is asked: it reads all runs that have them, which would be slow for words that most have."""

_CHANGED = 50
_SETTINGS = """SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL statement_timeout = '2s';
    SET LOCAL enable_seqscan = off"""
"""A word that many runs have may still be rare where it is looked for: the planner does not know, and would scan."""

_LONGEST_KEY = 512


_ENDINGS = {
    ReviewVerdict.RIGHT.value: PrecedentEnding.CONFIRMED,
    ReviewVerdict.PARTLY.value: PrecedentEnding.PARTLY,
    ReviewVerdict.WRONG.value: PrecedentEnding.REFUTED,
}


@dataclass(frozen=True, slots=True)
class PrecedentQuery:
    """Holds the search terms for precedents of a run.

    Attributes:
        run: the run, which is no precedent of itself.
        namespace: of the run.
        namespace_uid: its uid.
        alert_type: of the alert.
        incident_key: of the alert; None: it has none.
        workload: that the alert is about; None: it names none.
        entities: names of objects in the alert.
        words: of its texts.
        changed_kinds: kinds of which the recorded changes of `changed_seconds` may be used.
        changed_seconds: how far back changes count.
        granted: further namespaces whose investigations may be used, uid by name.
    """

    run: UUID
    namespace: str
    namespace_uid: str
    alert_type: str
    incident_key: str | None = None
    workload: str | None = None
    entities: Sequence[str] = ()
    words: Sequence[str] = ()
    changed_kinds: Sequence[str] = ()
    changed_seconds: float = 0.0
    granted: Mapping[str, str] = field(default_factory=dict)


class PrecedentSearch:
    """Finds precedents; every method raises StoreError when Postgres is unavailable or refuses.

    Args:
        pool: from `open_pool`.
        metrics: counts searches.
    """

    def __init__(self, pool: asyncpg.Pool, metrics: Metrics | None = None) -> None:
        self._pool = pool
        self._metrics = metrics
        self._sql = load("precedents")

    async def find(self, query: PrecedentQuery) -> list[Precedent]:
        """Returns candidates, ranked; the caller decides which of them the run may be told about."""

        async def fetch(connection: asyncpg.Connection) -> list[Precedent]:
            async with connection.transaction(readonly=True):
                await connection.execute(_SETTINGS)
                found = [*await self._by_keys(connection, query), *await self._by_words(connection, query)]
            return rank_precedents(found)

        try:
            ranked = await call(self._pool, f"look for precedents of {query.run}", fetch)
        except StoreError:
            self._count("failed")
            raise
        self._count("found" if ranked else "none")
        return ranked

    def _count(self, outcome: str) -> None:
        if self._metrics is not None:
            self._metrics.add(PRECEDENT_SEARCHES, outcome=outcome)

    async def _by_keys(self, connection: asyncpg.Connection, query: PrecedentQuery) -> list[Precedent]:
        keys: dict[str, PrecedentMatch] = {}
        for key in precedent_keys(query.alert_type, query.incident_key, query.workload):
            keys[key] = PrecedentMatch.INCIDENT if key.startswith("incident:") else PrecedentMatch.WORKLOAD
        if query.changed_kinds:
            changed = self._sql["changed"](
                namespace_uid=query.namespace_uid,
                kinds=list(query.changed_kinds),
                seconds=query.changed_seconds,
                limit=_CHANGED,
            )
            keys |= {row["key"]: PrecedentMatch.CHANGED_OBJECT for row in await connection.fetch(*changed)}
        if not keys:
            return []
        rows = await connection.fetch(
            *self._sql["by_key"](
                keys=list(keys),
                namespace_uid=query.namespace_uid,
                run=query.run,
                looked=_LOOKED_AT,
                read=_READ,
                limit=MOST_CANDIDATES,
            )
        )
        return [_precedent(row, keys[row["key"]], row["key"].partition(":")[2]) for row in rows]

    async def _by_words(self, connection: asyncpg.Connection, query: PrecedentQuery) -> list[Precedent]:
        statement = words_statement(self._sql["by_words"], query)
        if statement is None:
            return []
        return [_precedent(row, PrecedentMatch.WORDS, "", row["score"]) for row in await connection.fetch(*statement)]


def words_statement(statement: Statement, query: PrecedentQuery) -> tuple[Any, ...] | None:
    """Returns the search for words with its values; None: the alert has no words to look for.

    An alert that names objects has precedents that name one of them; any other has those of its own type.

    Args:
        statement: the statement `by_words`.
        query: what is looked for.
    """
    entities, about = _phrases(query.entities), _phrases([query.alert_type])
    required = entities or about
    if not required:
        return None
    uids = [query.namespace_uid, *query.granted.values()]
    return statement(
        words=" | ".join(filter(None, [about, entities, _phrases(query.words)])),
        entities=entities or "'-'",
        required=required,
        run=query.run,
        namespace_uids=uids,
        looked=_LOOKED_AT,
        walked=max(_WALKED // len(uids), 1),
        enough=_ENOUGH,
        limit=MOST_CANDIDATES,
    )


def precedent_keys(alert_type: str, incident_key: str | None, workload: str | None) -> list[str]:
    """Returns the keys of a run by which later runs find it.

    Args:
        alert_type: of the alert.
        incident_key: of the alert; None: it has none.
        workload: that the alert is about; None: it names none.
    """
    keys = [] if not incident_key else [f"incident:{incident_key}"]
    if workload:
        keys.append(f"workload:{alert_type}/{workload}")
    return [key[:_LONGEST_KEY] for key in keys]


def _phrases(texts: Sequence[str]) -> str:
    """Returns texts in the syntax of `to_tsquery`, each as adjacent words, one of which must occur."""
    found = []
    for text in texts:
        words = ["".join(ch if ch.isalnum() else " " for ch in text).split()]
        found += [" <-> ".join(f"'{word}'" for word in one) for one in words if one]
    return " | ".join(f"({one})" for one in dict.fromkeys(found))


def _precedent(row: asyncpg.Record, match: PrecedentMatch, matched: str, score: float = 0.0) -> Precedent:
    finding = Finding.model_validate(row["finding"])
    return Precedent(
        id=row["id"],
        namespace=row["namespace"],
        name=row["name"],
        finished_at=row["finished_at"],
        match=match,
        matched=matched,
        summary=finding.summary or row["executive_summary"] or "",
        confidence=Confidence(finding.confidence),
        ending=_ENDINGS.get(row["verdict"], PrecedentEnding.UNKNOWN),
        reviewer=", ".join(row["reviewed_by"]) if row["verdict"] and row["reviewed_by"] else None,
        outcome=row["incident_outcome"],
        score=score,
    )
