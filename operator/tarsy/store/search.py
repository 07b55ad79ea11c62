"""Lists of investigations, a page at a time.

A statement holds only the filters that are asked for, so that Postgres can use the index that fits them; it is planned
for its very values each time. Text is looked for in one of two ways. By words, in name, alert, finding and summary,
which stand in a table of their own (migration 10): however many investigations there are, Postgres looks the rare ones
up and meets the common ones. Or as it stands, in the timeline as well, which no index could hold: then a page looks at
so many investigations and no more, and the next page goes on from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import asyncpg

from tarsy.record.finding import Finding
from tarsy.record.listing import InvestigationListItem, InvestigationPage, PagePosition
from tarsy.record.run import DesiredState, State
from tarsy.store import rows
from tarsy.store.database import call
from tarsy.store.queries import load

Sort = Literal["newest", "oldest", "finished", "cost", "tokens"]
LOOKED_AT = 200
"""How many investigations a page reads the timelines of."""

_SECONDS = 10
_PARTING = str.maketrans(dict.fromkeys("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", " "))


@dataclass(frozen=True, slots=True)
class Filters:
    """Which investigations; None is all.

    `namespaces` are uids by name. `since` is part of the time, `until` is not. `words` are looked for in name, alert,
    finding and summary, each as a word or the beginning of one, and all of them must be there; `text` is looked for as
    it stands, upper and lower case of ASCII alike, in the timeline too.
    """

    namespaces: Mapping[str, str] | None = None
    states: Sequence[State] = ()
    alert_type: str | None = None
    chain: str | None = None
    chain_namespace: str | None = None
    author: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    words: str | None = None
    text: str | None = None
    ids: Sequence[UUID] | None = None


class Search:
    """Finds investigations; every method raises StoreError when Postgres is away or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("search")

    async def page(
        self, filters: Filters, sort: Sort, limit: int, after: PagePosition | None = None
    ) -> InvestigationPage:
        """A page of a list. It may hold fewer than `limit`, or none, and have a next one all the same.

        Args:
            filters: which.
            sort: `newest` and `oldest` by acceptance; `finished` lists only those that have ended, the last to end
                first; `cost` and `tokens` the most first.
            limit: investigations at most.
            after: the end of the page before; None for the first.
        """
        if filters.text is None:
            found = await self._listed(filters, sort, limit + 1, after)
            items = found[:limit]
            return InvestigationPage(items, position(items[-1], sort) if len(found) > limit else None)
        looked = await self._listed(filters, sort, LOOKED_AT, after)
        holding = await self._holding([one.id for one in looked], filters.text)
        found = [one for one in looked if one.id in holding]
        if len(found) > limit:
            return InvestigationPage(found[:limit], position(found[limit - 1], sort))
        return InvestigationPage(found, position(looked[-1], sort) if len(looked) == LOOKED_AT else None)

    async def one(self, run: UUID) -> InvestigationListItem | None:
        """An investigation as a list shows it, None when its record is not here."""
        statement, values = self._assembled("newest", 1, [("with_id", (run,))])
        found = await self._fetch(statement, *values)
        return _listed(found[0]) if found else None

    async def _listed(
        self, filters: Filters, sort: Sort, limit: int, after: PagePosition | None
    ) -> list[InvestigationListItem]:
        statement, values = self._statement(filters, sort, limit, after)
        return [_listed(row) for row in await self._fetch(statement, *values)]

    async def _holding(self, ids: Sequence[UUID], text: str) -> set[UUID]:
        if not ids:
            return set()
        return {row["id"] for row in await self._fetch(self._sql["holding"], ids, pattern(text))}

    def _statement(self, filters: Filters, sort: Sort, limit: int, after: PagePosition | None) -> tuple[str, list[Any]]:
        blocks: list[tuple[str, tuple[Any, ...]]] = []
        if filters.ids is not None:
            blocks.append(("of_ids", (list(filters.ids),)))
        if filters.namespaces is not None and len(filters.namespaces) == 1:
            blocks.append(("in_namespace", next(iter(filters.namespaces.items()))))
        elif filters.namespaces is not None:
            blocks.append(("in_namespaces", (list(filters.namespaces), list(filters.namespaces.values()))))
        if filters.states:
            blocks.append(("in_states", ([state.value for state in filters.states],)))
        one_value: tuple[tuple[str, Any], ...] = (
            ("of_alert_type", filters.alert_type),
            ("of_chain", filters.chain),
            ("of_chain_namespace", filters.chain_namespace),
            ("by_author", filters.author),
            ("since", filters.since),
            ("until", filters.until),
        )
        blocks += [(name, (value,)) for name, value in one_value if value is not None]
        if sort == "finished":
            blocks.append(("only_finished", ()))
        if filters.words is not None:
            blocks.append(("with_words", (tsquery(filters.words),)))
        by_words = filters.words is not None and sort in ("newest", "oldest")
        place = f"{sort}_words" if by_words else sort
        if after is not None:
            blocks.append((f"after_{place}", (after.key, after.id)))
        source = "" if filters.words is None else self._sql["from_words"]
        return self._assembled(sort, limit, blocks, source, place)

    def _assembled(
        self,
        sort: Sort,
        limit: int,
        blocks: Sequence[tuple[str, tuple[Any, ...]]],
        source: str = "",
        place: str = "newest",
    ) -> tuple[str, list[Any]]:
        values: list[Any] = [limit]
        written = []
        for name, more in blocks:
            text = self._sql[name]
            for value in more:
                values.append(value)
                text = text.replace("$?", f"${len(values)}", 1)
            written.append(text)
        parts = {
            "{from}": source,
            "{filters}": "\n".join(written),
            "{order}": self._sql[f"order_{place}"],
            "{shown}": self._sql[f"order_{sort}"],
        }
        statement = self._sql["page"]
        for part, text in parts.items():
            statement = statement.replace(part, text)
        return statement, values

    async def _fetch(self, statement: str, *values: Any) -> Sequence[asyncpg.Record]:
        async def fetch(connection: asyncpg.Connection) -> Sequence[asyncpg.Record]:
            async with connection.transaction(readonly=True):
                await connection.execute(
                    f"SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL statement_timeout = '{_SECONDS}s'"
                )
                found: Sequence[asyncpg.Record] = await connection.fetch(statement, *values)
                return found

        return await call(self._pool, "list investigations", fetch)


def position(item: InvestigationListItem, sort: Sort) -> PagePosition:
    """Where an investigation stands in a list."""
    match sort:
        case "newest" | "oldest":
            return PagePosition(item.accepted_at, item.id)
        case "finished":
            return PagePosition(item.finished_at or item.accepted_at, item.id)
        case "cost":
            return PagePosition(Decimal(-1) if item.cost_usd is None else item.cost_usd, item.id)
        case "tokens":
            return PagePosition(item.usage.total_tokens, item.id)


def tsquery(text: str) -> str:
    """The words of a text as `to_tsquery` reads them: what was written without a space between stands side by side."""
    terms = []
    for term in text.split():
        parts = [f"'{part}'" for part in term.translate(_PARTING).split()]
        if parts:
            terms.append("(" + " <-> ".join([*parts[:-1], f"{parts[-1]}:*"]) + ")")
    return " & ".join(terms)


def pattern(text: str) -> str:
    """What ILIKE finds a text by, wherever it stands."""
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
    )
