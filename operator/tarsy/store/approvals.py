"""Stores approvals of tool calls, with the decisions that the controller took.

Decision: the row is the truth, and the object ToolApproval is made from it. Only the statement that begins a call
(`writer.sql`) consumes an approval, under the lease of its run, and only while its checks are fresh: so a call is sent
at most once, whoever wrote what into the object.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from tarsy.record.approvals.approval import CHECKS_COUNT_FOR, ApprovalState, SignedDecision
from tarsy.record.finding import Evidence
from tarsy.record.run import LeaseLost
from tarsy.store import rows
from tarsy.store.database import call, fetch_rows
from tarsy.store.queries import load


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that people are to decide about.

    Args:
        id: of the approval.
        investigation: the run.
        interaction: id of the tool call.
        digest: what people sign.
        request: what they are shown, masked.
        targets: objects that the call changes.
        before: masked objects as they are now; None: unknown.
        seconds: time to decide.
        required: number of people who must approve.
    """

    id: UUID
    investigation: UUID
    interaction: UUID
    digest: str
    request: Mapping[str, Any]
    targets: Sequence[Mapping[str, Any]]
    before: Sequence[Mapping[str, Any] | None] | None
    seconds: float
    required: int


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """A stored approval, with the run that waits for it."""

    id: UUID
    investigation: UUID
    interaction: UUID
    digest: str
    request: Mapping[str, Any]
    targets: Sequence[Mapping[str, Any]]
    state: ApprovalState
    requested_at: datetime
    expires_at: datetime
    required: int
    object_uid: str | None
    outcome: str | None
    decided_at: datetime | None
    revision: int
    published: int
    run_name: str
    namespace: str
    question: bool
    run_open: bool
    requesters: tuple[str, ...]
    decided_by: tuple[str, ...]

    @property
    def object_name(self) -> str:
        """Name of the object that people see."""
        return object_name(self.run_name, self.id)


def object_name(run_name: str, approval: UUID) -> str:
    """Returns the name of the object of an approval.

    Args:
        run_name: name of the run.
        approval: id of the approval.
    """
    return f"{run_name[:200]}-{approval.hex[:10]}"


class ApprovalStore:
    """Reads and writes approvals; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("approvals")
        self._reads = load("run_reads")

    async def ask(self, new: ApprovalRequest, attempt: int) -> ApprovalRecord:
        """Asks for a call once, and returns what became of the question.

        Args:
            new: the call.
            attempt: of the run; the fencing token.

        Raises:
            LeaseLost: another attempt owns the run.
        """
        values = {
            "id": new.id,
            "investigation": new.investigation,
            "attempt": attempt,
            "interaction": new.interaction,
            "digest": new.digest,
            "request": dict(new.request),
            "targets": [dict(target) for target in new.targets],
            "before": None if new.before is None else [None if one is None else dict(one) for one in new.before],
            "seconds": new.seconds,
            "required": new.required,
        }
        if not await self._fetch("ask for an approval", "ask", **values):
            raise LeaseLost(f"Attempt {attempt} of investigation {new.investigation} does not hold the lease.")
        found = await self.of_call(new.interaction)
        if found is None:
            raise LeaseLost(f"The record of investigation {new.investigation} is gone.")
        return found

    async def of_call(self, interaction: UUID) -> ApprovalRecord | None:
        """Returns the approval of a tool call; one whose checks are too old is pending again."""
        seconds = CHECKS_COUNT_FOR.total_seconds() / 2
        await self._fetch("check an approval again", "check_again", interaction=interaction, seconds=seconds)
        rows = await self._fetch("read an approval", "of_interaction", interaction=interaction)
        return _record(rows[0]) if rows else None

    async def of_object(self, uid: str) -> ApprovalRecord | None:
        """Returns the approval that an object was made from; None: the operator made no such object."""
        rows = await self._fetch("read an approval", "of_object", object_uid=uid)
        return _record(rows[0]) if rows else None

    async def asked(self, investigation: UUID) -> int:
        """Returns how often a run has asked."""
        (row,) = await self._fetch("count approvals", "count", investigation=investigation)
        return int(row["asked"])

    async def cited(self, investigation: UUID, refs: Sequence[str]) -> list[str]:
        """Returns those ids that are closed tool calls of a run."""
        found = await self.cited_results(investigation, refs)
        return [ref for ref in refs if ref in found]

    async def cited_results(self, investigation: UUID, refs: Sequence[str]) -> Mapping[str, Evidence]:
        """Returns the stored results of those ids that are closed tool calls of a run."""

        async def run(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            reading = self._reads["evidence"](investigation=investigation, call_ids=sorted(set(refs)))
            return list(await connection.fetch(*reading))

        return {row["cited"]: rows.evidence(row) for row in await call(self._pool, "read the cited tool calls", run)}

    async def undone(
        self, investigation: UUID, parent: UUID | None, server_uid: str, tool: str, arguments: str
    ) -> str | None:
        """Names the object of the approved call that a call undoes, as its approval says; None: there is none.

        Args:
            investigation: the run.
            parent: the investigation that a question is about.
            server_uid: uid of the MCPServer.
            tool: name of the tool.
            arguments: of the call, in their one form.
        """
        values = {"server_uid": server_uid, "tool": tool, "arguments": arguments}
        found = await self._fetch(
            "find the call that is undone", "undone", investigations=[investigation, parent or investigation], **values
        )
        return object_name(found[0]["run_name"], found[0]["id"]) if found else None

    async def unsettled(self, limit: int = 500) -> list[ApprovalRecord]:
        """Lists approvals that wait, or whose object is not up to date, the oldest first."""
        await self._fetch("withdraw approvals of ended runs", "withdraw_ended")
        return [_record(row) for row in await self._fetch("list approvals", "unsettled", limit=limit)]

    async def made(self, id: UUID, object_uid: str) -> None:
        """Notes the object of an approval; the first one stays."""
        await self._fetch("note the object of an approval", "made", id=id, object_uid=object_uid)

    async def settle(
        self, id: UUID, state: ApprovalState, decisions: Sequence[SignedDecision] = (), outcome: str | None = None
    ) -> bool:
        """Writes what people decided; False: it was settled before.

        Args:
            id: of the approval.
            state: what the decisions amount to.
            decisions: those that count, in order.
            outcome: a sentence.
        """

        async def write(connection: asyncpg.Connection) -> bool:
            async with connection.transaction():
                settling = self._sql["settle"](id=id, state=state.value, outcome=outcome)
                if await connection.fetchrow(*settling) is None:
                    return False
                await connection.execute(*self._sql["forget_decisions"](id=id))
                taken = self._sql["decisions"](
                    id=id,
                    usernames=[one.username for one in decisions],
                    decided=["Approve" if one.approve else "Reject" for one in decisions],
                    digests=[one.digest for one in decisions],
                    reasons=[one.reason for one in decisions],
                )
                await connection.execute(*taken)
                return True

        return await call(self._pool, "settle an approval", write)

    async def end(self, investigation: UUID, attempt: int, interaction: UUID, state: ApprovalState, why: str) -> None:
        """Ends an open approval because its run goes on without the call; under the lease of the attempt.

        Args:
            investigation: the run.
            attempt: of the run; the fencing token.
            interaction: id of the tool call.
            state: withdrawn or stale.
            why: a sentence for people.
        """
        values = {"investigation": investigation, "attempt": attempt, "interaction": interaction}
        await self._fetch("end an approval", "end", **values, state=state.value, outcome=why)

    async def published(self, id: UUID, revision: int) -> None:
        """Notes the revision that the object tells."""
        await self._fetch("note a published approval", "published", id=id, revision=revision)

    async def _fetch(self, what: str, statement: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, what, self._sql[statement](**values))


def _record(row: asyncpg.Record) -> ApprovalRecord:
    values = dict(row)
    values["state"] = ApprovalState(row["state"])
    values["requesters"] = tuple(row["requesters"])
    values["decided_by"] = tuple(row["decided_by"])
    return ApprovalRecord(**values)
