"""Reads the verdicts of people on the findings of Chains, for calibration."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.finding import Confidence
from tarsy.record.judging.review import JudgedFinding, ReviewVerdict
from tarsy.record.judging.shown_confidence import HighVerdicts
from tarsy.store.database import fetch_rows
from tarsy.store.queries import load

MAX_JUDGED = 1000
"""Newest verdicts on the findings of a Chain that are counted."""

ChainKey = tuple[str, str]
"""Namespace and name of a Chain."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run that has ended with a finding."""

    id: UUID
    namespace: str
    name: str


class Verdicts:
    """Reads verdicts by Chain; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("calibration")

    async def judged(self, chains: Iterable[ChainKey], limit: int = MAX_JUDGED) -> dict[ChainKey, list[JudgedFinding]]:
        """Returns the newest findings with a verdict of each Chain that has one, of each confidence the newest first.

        Args:
            chains: the Chains.
            limit: maximum number of findings of each Chain.
        """
        wanted = list(dict.fromkeys(chains))
        if not wanted:
            return {}
        namespaces, names = zip(*wanted, strict=True)
        rows = await self._fetch("verdicts", namespaces=list(namespaces), names=list(names), judged=limit)
        found: dict[ChainKey, list[JudgedFinding]] = {}
        for row in rows:
            findings = found.setdefault((row["namespace"], row["name"]), [])
            confidence = Confidence(row["confidence"])
            findings += [JudgedFinding(confidence, ReviewVerdict(one)) for one in row["verdicts"]]
        return found

    async def high(self, chains: Iterable[ChainKey], floor: float) -> dict[ChainKey, HighVerdicts]:
        """Returns the verdicts on findings with confidence High, of each Chain that has one.

        Args:
            chains: the Chains.
            floor: smallest lower end of the interval of High.
        """
        judged = await self.judged(chains)
        found = {chain: HighVerdicts.of(findings, floor) for chain, findings in judged.items()}
        return {chain: high for chain, high in found.items() if high.total}

    async def chains(
        self, namespace_uids: Sequence[str] | None, limit: int, after: ChainKey | None = None
    ) -> list[ChainKey]:
        """Returns a page of the Chains that have a verdict, by namespace and name.

        Args:
            namespace_uids: of the investigations with a verdict; None: all.
            limit: maximum number.
            after: the last one of the page before; None: the first page.
        """
        rows = await self._fetch(
            "chains",
            namespace_uids=None if namespace_uids is None else list(namespace_uids),
            after_namespace=after[0] if after else None,
            after_chain=after[1] if after else None,
            limit=limit,
        )
        return [(row["chain_namespace"], row["chain"]) for row in rows]

    async def high_findings(self, chain: ChainKey, limit: int) -> list[FoundRun]:
        """Returns the newest runs of a Chain with confidence High whose Investigation is still there.

        Args:
            chain: the Chain.
            limit: maximum number.
        """
        rows = await self._fetch("high_findings", namespace=chain[0], chain=chain[1], limit=limit)
        return [FoundRun(**row) for row in rows]

    async def _fetch(self, statement: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, "count verdicts", self._sql[statement](**values))
