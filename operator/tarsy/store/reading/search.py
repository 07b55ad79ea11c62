"""Lists and searches investigations page by page.

A statement contains only the filters that are given, so that Postgres can use a matching index, and is planned for its
values each time. Text is searched in two ways. Words of name, alert, finding and summary are in an indexed table of
their own (migration 10), so that a search for words is fast for any number of investigations. Literal text is also
searched in the timeline, without an index: then a page examines a fixed number of investigations, and the next page
continues there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import asyncpg

from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.incident_outcome import IncidentOutcome
from tarsy.record.reading.flaws import Flaw
from tarsy.record.reading.listing import (
    MOST_COUNTED,
    InvestigationCount,
    InvestigationListItem,
    InvestigationPage,
    PagePosition,
)
from tarsy.record.run import DesiredState, State
from tarsy.store import rows
from tarsy.store.database import call
from tarsy.store.judging.calibration import Verdicts
from tarsy.store.queries import assembled, load_blocks
from tarsy.store.reading.excerpts import excerpt, searched_words

Sort = Literal["newest", "oldest", "finished", "duration", "severity", "confidence", "cost", "tokens"]
LOOKED_AT = 200
"""Investigations whose timelines a page examines."""

_SECONDS = 10
_RANK = 10**11  # more than the seconds since 1970 of any run, as in search.sql
_SEVERITIES = {"Critical": 3, "Warning": 2, "Info": 1}
_CONFIDENCES = {Confidence.HIGH: 4, Confidence.MEDIUM: 3, Confidence.LOW: 2, Confidence.INCONCLUSIVE: 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FLAWS = frozenset(Flaw)  # a newer version may have written others
_PARTING = str.maketrans(dict.fromkeys("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", " "))


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a list; None or empty: no filter.

    `namespaces` are uids by name. `since` is inclusive, `until` exclusive. `words` must all occur in name, alert,
    finding or summary, each as a word or the beginning of one. `text` is searched literally, in the timeline too,
    ignoring the case of ASCII letters. Replays are left out unless `replays` is set.
    """

    namespaces: Mapping[str, str] | None = None
    states: Sequence[State] = ()
    alert_type: str | None = None
    chain: str | None = None
    chain_namespace: str | None = None
    author: str | None = None
    flaws: Sequence[Flaw] = ()
    severities: Sequence[str] = ()
    outcomes: Sequence[IncidentOutcome] = ()
    since: datetime | None = None
    until: datetime | None = None
    words: str | None = None
    text: str | None = None
    ids: Sequence[UUID] | None = None
    replays: bool = False


class Search:
    """Finds investigations; every method raises StoreError when Postgres is unavailable or refuses.

    Args:
        pool: from `open_pool`.
        calibration_floor: of `Reads`.
    """

    def __init__(self, pool: asyncpg.Pool, calibration_floor: float | None = None) -> None:
        self._pool = pool
        self._floor = calibration_floor
        self._verdicts = Verdicts(pool)
        self._blocks = load_blocks("search")

    async def page(
        self, filters: Filters, sort: Sort, limit: int, after: PagePosition | None = None
    ) -> InvestigationPage:
        """Returns a page of a list. A page with fewer than `limit` investigations, or none, may have a next page.

        Args:
            filters: which investigations.
            sort: `newest` and `oldest` by acceptance; `finished` and `duration` list only finished ones, the last to
                end and the longest first; `severity` and `confidence` list the highest first, the newest of equal
                ones before the others; `cost` and `tokens` list the highest first.
            limit: maximum investigations.
            after: position of the end of the page before; None for the first page.
        """
        if filters.text is None:
            found = await self._listed(filters, sort, limit + 1, after)
            items = found[:limit]
            if filters.words is not None:
                items = await self._with_excerpts(items, filters.words)
            return InvestigationPage(items, position(items[-1], sort) if len(found) > limit else None)
        looked = await self._listed(filters, sort, LOOKED_AT, after)
        holding = await self._holding([one.id for one in looked], filters.text)
        found = [replace(one, excerpt=holding[one.id]) for one in looked if one.id in holding]
        if len(found) > limit:
            return InvestigationPage(found[:limit], position(found[limit - 1], sort))
        return InvestigationPage(found, position(looked[-1], sort) if len(looked) == LOOKED_AT else None)

    async def count(self, filters: Filters, sort: Sort) -> InvestigationCount:
        """Counts the investigations of all pages of a list, at most MOST_COUNTED; `text` is no filter here."""
        blocks, source = self._filters(filters, sort)
        text = self._blocks["count"].replace("{from}", source)
        text = text.replace("{filters}", "\n".join(self._blocks[block] for block in blocks))
        values = {name: value for given in blocks.values() for name, value in given.items()}
        (row,) = await self._fetch(assembled(text)(limit=MOST_COUNTED, **values))
        flaws = {Flaw(flaw): count for flaw, count in (row["flaws"] or {}).items() if flaw in _FLAWS}
        return InvestigationCount(row["count"], flaws)

    async def one(self, run: UUID) -> InvestigationListItem | None:
        """Returns one investigation as in a list, None without a record."""
        found = await self._fetch(self._assembled("newest", 1, {"with_id": {"id": run}}))
        return (await self._with_verdicts([_listed(found[0])]))[0] if found else None

    async def _listed(
        self, filters: Filters, sort: Sort, limit: int, after: PagePosition | None
    ) -> list[InvestigationListItem]:
        found = [_listed(row) for row in await self._fetch(self._page(filters, sort, limit, after))]
        return await self._with_verdicts(found)

    async def _with_verdicts(self, items: list[InvestigationListItem]) -> list[InvestigationListItem]:
        """Adds what people found of findings with confidence High of the same Chains."""
        if self._floor is None:
            return items
        high = {one.id: (one.chain_namespace, one.chain) for one in items if one.claims_high}
        verdicts = await self._verdicts.high(high.values(), self._floor)
        return [replace(one, high_verdicts=verdicts.get(high[one.id])) if one.id in high else one for one in items]

    async def _holding(self, ids: Sequence[UUID], text: str) -> dict[UUID, str | None]:
        """Returns the runs that contain a text, each with what surrounds it."""
        if not ids:
            return {}
        holding = assembled(self._blocks["holding"])
        found = await self._fetch(holding(ids=ids, pattern=pattern(text), text=text))
        return {row["id"]: excerpt(row["texts"], [text]) for row in found}

    async def _with_excerpts(self, items: Sequence[InvestigationListItem], words: str) -> list[InvestigationListItem]:
        if not items:
            return []
        found = await self._fetch(assembled(self._blocks["texts_of"])(ids=[one.id for one in items]))
        pieces = {row["id"]: excerpt(row["texts"], searched_words(words)) for row in found}
        return [replace(one, excerpt=pieces.get(one.id)) for one in items]

    def _filters(self, filters: Filters, sort: Sort) -> tuple[dict[str, dict[str, Any]], str]:
        """Returns the blocks of the filters, each with its values by name, and the block of a further table."""
        blocks: dict[str, dict[str, Any]] = {} if filters.replays else {"no_replays": {}}
        if filters.ids is not None:
            blocks["of_ids"] = {"ids": list(filters.ids)}
        if filters.namespaces is not None and len(filters.namespaces) == 1:
            ((namespace, uid),) = filters.namespaces.items()
            blocks["in_namespace"] = {"namespace": namespace, "namespace_uid": uid}
        elif filters.namespaces is not None:
            uids = list(filters.namespaces.values())
            blocks["in_namespaces"] = {"namespaces": list(filters.namespaces), "namespace_uids": uids}
        if filters.states:
            blocks["in_states"] = {"states": [state.value for state in filters.states]}
            if not any(state.finished for state in filters.states):
                blocks["only_unfinished"] = {}
        if filters.flaws:
            blocks["with_flaws"] = {"flaws": [flaw.value for flaw in filters.flaws]}
        if filters.severities:
            blocks["of_severities"] = {"severities": list(filters.severities)}
        if filters.outcomes:
            blocks["with_outcomes"] = {"outcomes": [one.value for one in filters.outcomes]}
        one_value: tuple[tuple[str, str, Any], ...] = (
            ("of_alert_type", "alert_type", filters.alert_type),
            ("of_chain", "chain", filters.chain),
            ("of_chain_namespace", "chain_namespace", filters.chain_namespace),
            ("by_author", "author", filters.author),
            ("since", "since", filters.since),
            ("until", "until", filters.until),
        )
        blocks |= {block: {name: value} for block, name, value in one_value if value is not None}
        if sort in ("finished", "duration"):
            blocks["only_finished"] = {}
        if filters.words is not None:
            blocks["with_words"] = {"words": tsquery(filters.words)}
        return blocks, "" if filters.words is None else self._blocks["from_words"]

    def _page(self, filters: Filters, sort: Sort, limit: int, after: PagePosition | None) -> tuple[Any, ...]:
        blocks, source = self._filters(filters, sort)
        by_words = filters.words is not None and sort in ("newest", "oldest")
        place = f"{sort}_words" if by_words else sort
        if sort == "severity":
            source += self._blocks["from_severity"]
        if after is not None:
            blocks[f"after_{place}"] = {"after_key": after.key, "after_id": after.id}
        return self._assembled(sort, limit, blocks, source, place)

    def _assembled(
        self,
        sort: Sort,
        limit: int,
        filters: Mapping[str, Mapping[str, Any]],
        source: str = "",
        place: str = "newest",
    ) -> tuple[Any, ...]:
        """Returns a statement and its values; `filters` are blocks, each with its values by name."""
        parts = {
            "{from}": source,
            "{filters}": "\n".join(self._blocks[block] for block in filters),
            "{order}": self._blocks[f"order_{place}"],
            "{shown}": self._blocks[f"order_{sort}"],
        }
        text = self._blocks["page"]
        for part, block in parts.items():
            text = text.replace(part, block)
        values = {name: value for given in filters.values() for name, value in given.items()}
        return assembled(text)(limit=limit, **values)

    async def _fetch(self, statement: tuple[Any, ...]) -> Sequence[asyncpg.Record]:
        async def fetch(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            async with connection.transaction(readonly=True):
                await connection.execute(
                    f"SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL statement_timeout = '{_SECONDS}s'"
                )
                found: Sequence[asyncpg.Record] = await connection.fetch(*statement)
                return found

        return await call(self._pool, "list investigations", fetch)


def position(item: InvestigationListItem, sort: Sort) -> PagePosition:
    """Returns the position of an investigation in a list."""
    match sort:
        case "newest" | "oldest":
            return PagePosition(item.accepted_at, item.id)
        case "finished":
            return PagePosition(item.finished_at or item.accepted_at, item.id)
        case "duration":
            return PagePosition(_duration(item), item.id)
        case "severity":
            return PagePosition(_ranked(_SEVERITIES.get(item.severity or "", 0), item), item.id)
        case "confidence":
            rank = 0 if item.finding is None else _CONFIDENCES[item.finding.confidence]
            return PagePosition(_ranked(rank, item), item.id)
        case "cost":
            return PagePosition(Decimal(-1) if item.cost_usd is None else item.cost_usd, item.id)
        case "tokens":
            return PagePosition(item.usage.total_tokens, item.id)


def _duration(item: InvestigationListItem) -> Decimal:
    if item.started_at is None or item.finished_at is None:
        return Decimal(-1)
    return _seconds(item.finished_at - item.started_at)


def _ranked(rank: int, item: InvestigationListItem) -> Decimal:
    return rank * _RANK + _seconds(item.accepted_at - _EPOCH)


def _seconds(span: timedelta) -> Decimal:
    """Returns seconds without the rounding of a float, as Postgres does."""
    return Decimal(span // timedelta(microseconds=1)).scaleb(-6)


def tsquery(text: str) -> str:
    """Returns the words of a text in the syntax of `to_tsquery`; words without a space in between must be adjacent."""
    terms = []
    for term in text.split():
        parts = [f"'{part}'" for part in term.translate(_PARTING).split()]
        if parts:
            terms.append("(" + " <-> ".join([*parts[:-1], f"{parts[-1]}:*"]) + ")")
    return " & ".join(terms)


def pattern(text: str) -> str:
    """Returns the pattern with which ILIKE finds a text anywhere."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _listed(row: asyncpg.Record) -> InvestigationListItem:
    finding = row["finding"]
    return InvestigationListItem(
        id=row["id"],
        namespace=row["namespace"],
        namespace_uid=row["namespace_uid"],
        name=row["name"],
        alert_type=row["alert_type"],
        chain=row["chain"],
        chain_namespace=row["chain_namespace"],
        state=State(row["state"]),
        desired_state=DesiredState(row["desired_state"]),
        attempt=row["attempt"],
        revision=row["revision"],
        accepted_at=row["accepted_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        stages_planned=row["stages_planned"],
        stages_finished=row["stages_finished"],
        current_stage=row["current_stage"],
        usage=rows.usage_of_row(row),
        model_calls=row["model_calls"],
        tool_calls=row["tool_calls"],
        cost_usd=row["cost_usd"],
        cost_complete=row["cost_complete"],
        budget_exceeded=rows.budget_exceeded(row),
        evidence_degraded=row["evidence_degraded"],
        finding=None if finding is None else Finding.model_validate(finding),
        executive_summary=row["executive_summary"],
        failure=rows.failure_of_row(row),
        author=row["author"],
        object_deleted_at=row["object_deleted_at"],
        replay=row["replay"],
        flaws=tuple(Flaw(one) for one in row["flaws"] if one in _FLAWS),
        severity=row["severity"],
        alert_key=None if row["alert_key"] is None else row["alert_key"].hex(),
        outcome=rows.incident_outcome(row["incident_outcome"]),
    )
