"""Stores the revisions of Chains with `spec.promotion`: which one serves, and which ones were tried.

Decision: a Chain is identified by its uid, so that one which is deleted and created again begins anew. All writes about
a Chain take one lock, and a unique index allows one serving revision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import asyncpg

from tarsy.store.database import call, fetch_rows
from tarsy.store.queries import load

REVISION_LOCK = 726_197_907
"""First key of the advisory lock of a Chain's revisions."""

KEPT = 10
"""Maximum revisions of a Chain that are kept beside the serving one."""


class RevisionState(StrEnum):
    """State of a revision. RETIRED: it served before."""

    CANDIDATE = "candidate"
    SERVING = "serving"
    REJECTED = "rejected"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class ChainIdentity:
    """The Chain that revisions belong to."""

    uid: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class KnownRevision:
    """A stored revision without its objects."""

    digest: str
    generation: int
    """Generation of the Chain when this revision was last current."""
    state: RevisionState
    reason: str
    eval_run: str | None = None
    """Name of the EvalRun that decided."""
    author: Mapping[str, Any] | None = None
    """The user who let it serve without a passed evaluation."""


class Revisions:
    """Reads and writes revisions; every method raises StoreError when Postgres is unavailable.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("revisions")

    async def known(self, chain_uid: str) -> list[KnownRevision]:
        """Returns the revisions of a Chain, the newest first."""
        rows = await self._fetch("read the revisions of a Chain", "known", chain_uid=chain_uid)
        return [KnownRevision(**{**row, "state": RevisionState(row["state"])}) for row in rows]

    async def serving(self, chain_uid: str) -> tuple[str, str] | None:
        """Returns digest and stored objects of the revision that serves; None when no revision was stored."""
        rows = await self._fetch("read the serving revision of a Chain", "objects", chain_uid=chain_uid)
        return (rows[0]["digest"], rows[0]["objects"]) if rows else None

    async def put(self, chain: ChainIdentity, revision: KnownRevision, objects: str) -> None:
        """Stores a revision, and deletes the oldest ones; if it serves, the one that served before is retired.

        Args:
            chain: the Chain.
            revision: the revision.
            objects: its objects as JSON.
        """

        async def write(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                await connection.execute(*self._sql["lock"](key=REVISION_LOCK, chain_uid=chain.uid))
                if revision.state is RevisionState.SERVING:
                    await connection.execute(*self._sql["retire"](chain_uid=chain.uid, digest=revision.digest))
                values = {
                    "chain_uid": chain.uid,
                    "digest": revision.digest,
                    "namespace": chain.namespace,
                    "name": chain.name,
                    "generation": revision.generation,
                    "objects": objects,
                    "state": revision.state.value,
                    "reason": revision.reason,
                    "eval_run": revision.eval_run,
                    "author": revision.author,
                }
                await connection.execute(*self._sql["put"](**values))
                await connection.execute(*self._sql["trim"](chain_uid=chain.uid, kept=KEPT))

        await call(self._pool, f"store a revision of Chain {chain.namespace}/{chain.name}", write)

    async def rename_serving(self, chain_uid: str, digest: str) -> None:
        """Changes the digest of the serving revision: a release that plans differently computes another one."""
        await self._execute("rename the serving revision of a Chain", "rename", chain_uid=chain_uid, digest=digest)

    async def forget(self, chain_uid: str) -> None:
        """Deletes all revisions of a Chain."""
        await self._execute("delete the revisions of a Chain", "forget", chain_uid=chain_uid)

    async def chains(self, namespaces: Sequence[str] = ()) -> list[ChainIdentity]:
        """Lists the Chains with stored revisions in some namespaces; empty: in all."""
        rows = await self._fetch("list the Chains with revisions", "chains", namespaces=list(namespaces))
        return [ChainIdentity(row["chain_uid"], row["namespace"], row["name"]) for row in rows]

    async def _fetch(self, what: str, statement: str, /, **values: Any) -> list[asyncpg.Record]:
        return await fetch_rows(self._pool, what, self._sql[statement](**values))

    async def _execute(self, what: str, statement: str, /, **values: Any) -> None:
        async def run(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql[statement](**values))

        await call(self._pool, what, run)
