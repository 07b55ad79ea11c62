"""Checks the record of a run against its seals (`seal.py`).

Found are rows that were changed after they were sealed, rows that are missing, rows that were added, steps that do not
fit the chain, and a chain that ends before the head that the status of the object publishes. Not covered are counters,
places and revisions, which change with each step, and rows that were never complete because an attempt or the run
ended: their number is told.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.messages import ToolDefinition
from tarsy.record.reading.seal import ErasedRun, Flaw, FlawKind, PublishedSeal, SealReport
from tarsy.store import columns
from tarsy.store.database import call
from tarsy.store.queries import load
from tarsy.store.sealing import seal

_OPEN = frozenset(("pending", "running", "started", "streaming"))
_LEFT_OPEN = frozenset(("interrupted", "cancelled", "failed", "timed_out"))
"""States in which the end of an attempt or of a run closes what is open."""


@dataclass(frozen=True, slots=True)
class _Entry:
    digest: bytes
    at: datetime


@dataclass(slots=True)
class _Sealed:
    """The entries that count of a run, by key, and what is wrong with the chain."""

    entries: dict[str, _Entry] = field(default_factory=dict)
    flaws: list[Flaw] = field(default_factory=list)
    heads: list[tuple[int, bytes]] = field(default_factory=list)
    begun: set[tuple[str, datetime]] = field(default_factory=set)
    """Keys of executions and the times at which an attempt began or ended them."""


class SealedRecord:
    """Checks records; every method raises StoreError when Postgres is unavailable or refuses."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("sealed_record")

    async def check(self, run: UUID, published: Mapping[UUID, PublishedSeal] | None = None) -> list[SealReport]:
        """Returns the reports of a run and of the answers to questions about it; empty: there is no record.

        Args:
            run: the investigation.
            published: what the status of each object says, by run; None or missing: unknown.
        """

        async def read(connection: asyncpg.Connection) -> list[SealReport]:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                found = await connection.fetch(*self._sql["runs"](run=run))
                return [await self._report(connection, row, (published or {}).get(row["id"])) for row in found]

        return await call(self._pool, f"check the record of {run}", read)

    async def erased(self, namespace: str, name: str, namespace_uid: str) -> ErasedRun | None:
        """Returns what the latest deletion of a record of that name left, None when none was deleted.

        Args:
            namespace: its namespace.
            name: of the Investigation.
            namespace_uid: uid of the namespace.
        """

        async def read(connection: asyncpg.Connection) -> ErasedRun | None:
            row = await connection.fetchrow(
                *self._sql["erased"](namespace=namespace, name=name, namespace_uid=namespace_uid)
            )
            return None if row is None else ErasedRun(**row)

        return await call(self._pool, f"look for a deleted record of {namespace}/{name}", read)

    async def _report(
        self, connection: asyncpg.Connection, run: asyncpg.Record, published: PublishedSeal | None
    ) -> SealReport:
        identity = run["id"]
        sealed = _chain(await connection.fetch(*self._sql["steps"](run=identity)), run["seal"])
        rows = _Rows(sealed)
        rows.run(run)
        for query, check in (
            ("stages", rows.stage),
            ("executions", rows.execution),
            ("messages", rows.message),
            ("superseded", rows.superseded),
            ("model_calls", rows.model_call),
            ("tool_calls", rows.tool_call),
            ("pins", rows.pin),
            ("events", rows.event),
        ):
            for row in await connection.fetch(*self._sql[query](run=identity)):
                check(row)
        rows.missing()
        revision, head = sealed.heads[-1] if sealed.heads else (0, b"")
        flaws = [*sealed.flaws, *rows.flaws, *_published(sealed.heads, published)]
        return SealReport(
            run=identity,
            namespace=run["namespace"],
            name=run["name"],
            question=run["parent"] is not None,
            steps=len(sealed.heads),
            rows=len(sealed.entries),
            revision=revision,
            head=head.hex(),
            left_open=rows.left_open,
            unpublished=0 if published is None else sum(at > published.revision for at, _ in sealed.heads),
            published=published,
            flaws=flaws,
        )


def _chain(steps: Sequence[asyncpg.Record], head_of_run: bytes | None) -> _Sealed:
    sealed = _Sealed()
    head: bytes | None = None
    for step in steps:
        expected = seal.next_head(head, seal.step_digest(step["keys"], step["digests"]), step["at"])
        head = step["head"]
        if expected != head:
            where = f"step {step['revision']}"
            sentence = "does not fit the steps before it: it was changed, or one before it was changed or deleted"
            sealed.flaws.append(Flaw(FlawKind.BROKEN, where, sentence))
        sealed.heads.append((step["revision"], head))
        for key, digest in zip(step["keys"], step["digests"], strict=False):
            if key.startswith("execution/"):
                sealed.begun.add((key.removesuffix("/end"), step["at"]))
            if key not in sealed.entries or key.startswith(seal.REPLACED):
                sealed.entries[key] = _Entry(digest, step["at"])
    if head != head_of_run:
        sentence = "the head of the run is not that of its last step: steps at the end are missing, or were added"
        sealed.flaws.append(Flaw(FlawKind.CUT, "chain", sentence))
    return sealed


def _published(heads: Sequence[tuple[int, bytes]], published: PublishedSeal | None) -> Iterator[Flaw]:
    if published is None:
        return
    until = [head for revision, head in heads if revision <= published.revision]
    if not until:
        yield Flaw(FlawKind.CUT, "chain", f"all steps up to revision {published.revision} are missing")
    elif until[-1].hex() != published.head:
        sentence = (
            f"its head at revision {published.revision} is {until[-1].hex()[:12]}, but the status of the object "
            f"contains {published.head[:12]}: steps were changed or deleted after they were published"
        )
        yield Flaw(FlawKind.CUT, "chain", sentence)


class _Rows:
    """Compares the rows of a run with the entries of its seals."""

    def __init__(self, sealed: _Sealed) -> None:
        self._entries, self._begun = sealed.entries, sealed.begun
        self._seen: set[str] = set()
        self.flaws: list[Flaw] = []
        self.left_open = 0

    def run(self, row: asyncpg.Record) -> None:
        """Checks the row of a run, its input and its outcome."""
        self._check("run", row["accepted_at"], [row[name] for name in _run_columns(row)])
        self._check("input", None, [row[name] for name in seal.INPUT])
        if row["precedents"] is not None or "precedents" in self._entries:
            self._check("precedents", None, [row["precedents"]])
        self._end("outcome", row["state"], None, [row[name] for name in seal.END])
        for server, reason in row["evidence_missing"].items():
            self._check(f"missing/{server}", None, [reason])
        if row["budget_limit"] is not None:
            self._check("budget", None, [row["budget_limit"], row["budget_message"]])

    def stage(self, row: asyncpg.Record) -> None:
        """Checks a stage."""
        self._check(f"stage/{row['id']}", row["started_at"], [row[name] for name in seal.STAGE])
        self._end(f"stage/{row['id']}/end", row["state"], row["finished_at"], seal.stage_end_values(row))

    def execution(self, row: asyncpg.Record) -> None:
        """Checks an agent execution, and what the agent was offered."""
        key = f"execution/{row['id']}"
        self._check(key, row["started_at"], seal.execution_values(row))
        self._end(f"{key}/end", row["state"], row["finished_at"], seal.execution_end_values(row))
        offered = f"offered/{row['id']}"
        if row["offered"] is not None or row["instructions"] is not None or offered in self._entries:
            self._check(offered, None, [row["offered"], row["instructions"]])

    def message(self, row: asyncpg.Record) -> None:
        """Checks a message."""
        key = f"message/{row['execution']}/{row['seq']}"
        self._check(key, row["created_at"], [row[name] for name in seal.MESSAGE])

    def superseded(self, row: asyncpg.Record) -> None:
        """Checks a compacted content."""
        self._check(f"superseded/{row['execution']}/{row['seq']}/{row['call']}", None, [row["content"]])

    def model_call(self, row: asyncpg.Record) -> None:
        """Checks a model call, and the definitions of the tools that it offered."""
        key = f"model-call/{row['id']}"
        self._check(key, row["started_at"], [row[name] for name in seal.MODEL_CALL])
        if not self._interrupted(f"{key}/end", row):
            self._end(f"{key}/end", row["state"], row["finished_at"], [row[name] for name in seal.MODEL_CALL_END])
        if row["tool_set"] is not None and _tool_set(row["definitions"]) != row["tool_set"]:
            self._flaw(FlawKind.CHANGED, f"tool-set/{row['tool_set']}", "does not match its hash")

    def tool_call(self, row: asyncpg.Record) -> None:
        """Checks a tool call."""
        key = f"tool-call/{row['id']}"
        self._check(key, row["started_at"], [row[name] for name in seal.TOOL_CALL])
        if row["result"] is not None:
            self._check(f"{key}/answer", None, seal.answer_values(row))
        if not self._interrupted(f"{key}/end", row):
            self._end(f"{key}/end", row["state"], row["finished_at"], [row["state"]])

    def pin(self, row: asyncpg.Record) -> None:
        """Checks the digests of the tools of a server."""
        self._check(f"tools/{row['server']}", None, [row["tools"]])

    def event(self, row: asyncpg.Record) -> None:
        """Checks a timeline event."""
        values = [
            row[name]
            for name in ("type", "status", "content", "metadata", "stage", "execution", "model_call", "tool_call")
        ]
        self._end(f"event/{row['id']}", row["status"], row["updated_at"], values)

    def missing(self) -> None:
        """Notes the entries whose rows were not found."""
        for key in self._entries.keys() - self._seen:
            self._flaw(FlawKind.MISSING, key, "is sealed, but not in the record")

    def _interrupted(self, key: str, row: asyncpg.Record) -> bool:
        """Returns whether an attempt interrupted a call, by beginning its execution, before the end of it came."""
        end, at = self._entries.get(key), row["finished_at"]
        if end is None or row["state"] != "interrupted" or (f"execution/{row['execution']}", at) not in self._begun:
            return False
        if end.at <= at:
            return False
        self._seen.add(key)
        self.left_open += 1
        return True

    def _end(self, key: str, state: str, at: datetime | None, values: Sequence[Any]) -> None:
        """Checks what is written when something ends; what was left open then has no entry."""
        if key not in self._entries and (state in _OPEN or state in _LEFT_OPEN):
            self.left_open += state in _LEFT_OPEN
            return
        self._check(key, at, values)

    def _check(self, key: str, at: datetime | None, values: Sequence[Any]) -> None:
        self._seen.add(key)
        found = self._entries.get(key)
        if found is None:
            self._flaw(
                FlawKind.NOT_SEALED,
                key,
                "is in the record, but not sealed: it was added, or was written by an older version",
            )
        elif found.digest != seal.entry(*values):
            self._flaw(FlawKind.CHANGED, key, "differs from its sealed form")
        elif at is not None and at != found.at:
            self._flaw(
                FlawKind.CHANGED, key, f"has the time {at.isoformat()}, but was sealed at {found.at.isoformat()}"
            )

    def _flaw(self, kind: FlawKind, where: str, sentence: str) -> None:
        self.flaws.append(Flaw(kind, where, sentence))


def _run_columns(row: asyncpg.Record) -> Sequence[str]:
    return seal.RUN if row["parent"] is None else seal.ANSWER_RUN


def _tool_set(definitions: Sequence[dict[str, Any]]) -> str:
    tools = [ToolDefinition(one["name"], one["description"], one["parameters"]) for one in definitions]
    return columns.tool_set(tools)[1]
