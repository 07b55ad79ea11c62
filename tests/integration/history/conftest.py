"""Runs the history recorder in this process, on a Kubernetes API and a Postgres."""

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from apis import LocalApi
from embedded_kubeapi.lifecycle import ROOT_CA
from integration.controllers.desk import Chosen, eventually
from tarsy.controllers.history.kind_watch import WatchPauses
from tarsy.controllers.history.recorder import HistoryLimits, HistoryRecorder, HistoryWatches
from tarsy.evidence.history.digests import Digests
from tarsy.evidence.history.kinds import HISTORY_LABEL, RECORDED_KINDS
from tarsy.kube.client import KubeClient
from tarsy.observe.metrics import Metrics
from tarsy.record.reading.object_history import ObjectVersion, Unwatched, WatchState
from tarsy.store.history.object_history import ObjectHistory
from tarsy.store.history.retention import HistoryRetention

KEY = b"a key of the installation, 32 bytes long"
KINDS = tuple(kind.kind for kind in RECORDED_KINDS)
PAUSES = WatchPauses(first=0.05, longest=0.5, refused=0.2)


@dataclass
class Shop:
    """A namespace with a history."""

    kube: KubeClient
    pool: asyncpg.Pool
    kubeconfig: Path
    name: str
    uid: str
    metrics: Metrics = field(default_factory=Metrics)

    @property
    def history(self) -> ObjectHistory:
        return ObjectHistory(self.pool)

    @contextlib.asynccontextmanager
    async def recorder(
        self,
        *,
        kubeconfig: Path | None = None,
        key: bytes | None = KEY,
        limits: HistoryLimits | None = None,
        kinds: tuple[str, ...] = KINDS,
        watched: bool = True,
    ) -> AsyncIterator[HistoryRecorder]:
        """Records; when it begins, all kinds that the cluster serves are watched."""
        wanted = tuple(kind for kind in RECORDED_KINDS if kind.kind in kinds)
        async with await KubeClient.load(kubeconfig or self.kubeconfig) as client:
            recorder = HistoryRecorder(
                client,
                self.history,
                HistoryRetention(self.pool),
                None if key is None else Digests(key),
                self.metrics,
                HistoryWatches((self.name,), wanted, PAUSES, discovery_seconds=0.1),
                limits,
            )
            election = Chosen(client, self.name, "any", "any")
            election.passive.clear()
            election.active.set()
            began = datetime.now(UTC)
            task = asyncio.create_task(recorder.run(election))
            try:
                if watched:
                    await self.watching(kinds, began)
                yield recorder
                assert not task.done(), task.exception()
            finally:
                task.cancel()
                await asyncio.wait([task], timeout=20)

    async def watching(self, kinds: tuple[str, ...], since: datetime) -> None:
        """Waits until the kinds are watched, or known not to be served."""

        async def all_are() -> bool:
            rows = await self.pool.fetch(
                "SELECT kind FROM object_watch WHERE namespace_uid = $1 AND (state = 'NotServed' OR "
                "(state = 'Watching' AND until >= $2))",
                self.uid,
                since,
            )
            return {row["kind"] for row in rows} >= set(kinds)

        await eventually(all_are)

    async def versions(self, kinds: tuple[str, ...] = KINDS) -> list[ObjectVersion]:
        """All versions, the oldest first, but that of the ConfigMap which the cluster makes when it gets to it."""
        now = datetime.now(UTC)
        found = await self.history.changes(self.uid, kinds, now - timedelta(hours=1), now + timedelta(hours=1))
        return [one for one in found[::-1] if one.object.name != ROOT_CA]

    async def unwatched(self, kinds: tuple[str, ...] = KINDS) -> list[Unwatched]:
        """All windows without a watch that have ended."""
        now = datetime.now(UTC)
        found = await self.history.unwatched(self.uid, kinds, now - timedelta(hours=1), now)
        return [window for window in found if window.since is not None]

    async def state(self, kind: str) -> WatchState | None:
        found = await self.history.watched(self.uid, kind)
        return None if found is None else found.state

    async def until(self, look: Callable[[list[ObjectVersion]], bool]) -> list[ObjectVersion]:
        """Waits until the versions are so."""

        async def found() -> list[ObjectVersion]:
            versions = await self.versions()
            assert look(versions), [(one.action, one.object.name, one.fields, one.patch) for one in versions]
            return versions

        return await eventually(found)

    async def make(self, kind: str, name: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": self.name, **fields.pop("metadata", {})}
        return await self.kube.create({"apiVersion": version, "kind": kind, "metadata": metadata, **fields})

    async def everything_stored(self) -> bytes:
        """All columns of all tables of the history, compressed forms as text."""
        stored = bytearray()
        for table in ("object_head", "object_version", "object_watch", "object_unwatched", "object_history_size"):
            for row in await self.pool.fetch("SELECT * FROM " + table):  # noqa: S608
                for value in row.values():
                    stored += _as_text(value)
        return bytes(stored)


def _as_text(value: object) -> bytes:
    """A value as text; a digest may begin as a compressed form does."""
    if isinstance(value, bytes) and value[:1] == b"\x78":
        with contextlib.suppress(zlib.error):
            return zlib.decompress(value)
    return repr(value).encode()


@pytest.fixture
async def shop(tarsy_api: LocalApi, kube: KubeClient, namespace: str, records: asyncpg.Pool) -> Shop:
    found = await kube.patch("Namespace", None, namespace, {"metadata": {"labels": {HISTORY_LABEL: "keys"}}})
    return Shop(kube, records, tarsy_api.kubeconfig, namespace, found["metadata"]["uid"])
