"""Watches namespaces with a history, in the active replica only.

Watches: Namespaces with the label `tarsy.dev/history`, and in each of them the kinds of `RECORDED_KINDS`, by the rights
that the RoleBinding of the component `tenant-history` gives. Decides: which namespaces are watched. Writes: Postgres.

Decision: a label on the Namespace and a RoleBinding in it are both needed. The label costs one small list request every
few seconds, where a review of rights would cost one for each namespace; and whoever may label a Namespace decides for
its owner about what is stored, so the rights are its owner's to give.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tarsy.controllers.history.buffer import MOST_CHANGES
from tarsy.controllers.history.kind_watch import KindWatch, WatchPauses
from tarsy.controllers.history.places import Place
from tarsy.controllers.history.recording import NOTE_SECONDS, Recording
from tarsy.controllers.machinery.while_active import run_while_active
from tarsy.evidence.history.digests import Digests
from tarsy.evidence.history.form import FormRules
from tarsy.evidence.history.kinds import HISTORY_LABEL, RECORDED_KINDS
from tarsy.evidence.reading import ReadKind
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.lease import LeaderElection
from tarsy.masking import default_masker
from tarsy.observe.metric_table import HISTORY_EVICTED, HISTORY_WATCHES, WATCH_STATE
from tarsy.observe.metrics import Metrics
from tarsy.record.reading.object_history import WatchState
from tarsy.store.errors import StoreError
from tarsy.store.history.object_history import ObjectHistory
from tarsy.store.history.retention import HistoryRetention

_log = logging.getLogger(__name__)

"""Label of a Namespace with a history; its value is `keys` or `masked-values`."""

KEYS = "keys"
MASKED_VALUES = "masked-values"

MAX_NAMESPACES = 50
"""Maximum namespaces with a history; each needs a connection for every kind."""

DISCOVERY_SECONDS = 15.0
MAINTAIN_SECONDS = 600.0
RETRY_SECONDS = 30.0
_LISTINGS_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """Limits of the history.

    Attributes:
        retention: how long versions are kept.
        namespace_bytes: maximum size of the history of a namespace.
        buffer_size: maximum changes that wait to be recorded.
    """

    retention: timedelta = timedelta(days=14)
    namespace_bytes: int = 1024 * 1024 * 1024
    buffer_size: int = MOST_CHANGES


@dataclass(frozen=True, slots=True)
class HistoryWatches:
    """Holds the settings of the history's watches.

    Attributes:
        namespaces: the namespaces that the operator watches; empty: all.
        kinds: the kinds that are recorded.
        pauses: of each watch.
        discovery_seconds: seconds between two looks for namespaces.
    """

    namespaces: tuple[str, ...] = ()
    kinds: tuple[ReadKind, ...] = RECORDED_KINDS
    pauses: WatchPauses = field(default_factory=WatchPauses)
    discovery_seconds: float = DISCOVERY_SECONDS


@dataclass(frozen=True, slots=True)
class RecordedNamespace:
    """A namespace with a history."""

    uid: str
    name: str
    values: bool


class HistoryRecorder:
    """Records the history of namespaces that have one.

    Args:
        client: the Kubernetes API.
        history: the history in Postgres.
        retention: deletes old versions.
        digests: computes digests; None: there is no key, and nothing is recorded.
        metrics: the metrics of the process.
        watches: what is watched, and how often.
        limits: its limits.
    """

    def __init__(
        self,
        client: KubeClient,
        history: ObjectHistory,
        retention: HistoryRetention,
        digests: Digests | None,
        metrics: Metrics,
        watches: HistoryWatches | None = None,
        limits: HistoryLimits | None = None,
    ) -> None:
        self._client = client
        self._history = history
        self._retention = retention
        self._digests = digests
        self._metrics = metrics
        self._watched = watches or HistoryWatches()
        self._limits = limits or HistoryLimits()
        self._recording: Recording | None = None
        self._told: set[str] = set()
        metrics.pull(HISTORY_WATCHES, self._watches)

    async def run(self, election: LeaderElection) -> None:
        """Records while this replica is active, until cancelled; a failure of it ends nothing else."""
        await run_while_active(election, self._work, "the history recorder")

    async def _work(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._every(MAINTAIN_SECONDS, self.maintain))
                if self._digests is not None:
                    group.create_task(self._record(self._digests))
        finally:
            self._recording = None

    async def maintain(self) -> None:
        """Makes partitions, and deletes what is too old or too much. Raises StoreError."""
        now, limits = datetime.now(UTC), self._limits
        await self._retention.make_partitions(now.date())
        await self._retention.drop_partitions(now - limits.retention)
        await self._retention.forget(limits.retention.total_seconds())
        for namespace, versions in (await self._retention.evict(limits.namespace_bytes)).items():
            self._metrics.add(HISTORY_EVICTED, versions)
            _log.warning(
                "the history of namespace %s reached %d bytes: its %d oldest versions were deleted",
                namespace, limits.namespace_bytes, versions,
            )  # fmt: skip

    async def _record(self, digests: Digests) -> None:
        rules = FormRules(digests, self._metrics.watched(default_masker().mask, "history"))
        connections = MAX_NAMESPACES * len(self._watched.kinds) + _LISTINGS_AT_ONCE
        thread = ThreadPoolExecutor(1, "tarsy-history")
        recording = Recording(self._history, rules, self._metrics, thread, buffer_size=self._limits.buffer_size)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(thread.shutdown, wait=False, cancel_futures=True)
            client = await stack.enter_async_context(self._client.apart(connections))
            group = await stack.enter_async_context(asyncio.TaskGroup())
            await self._first_partitions()
            self._recording = recording
            group.create_task(recording.run())
            group.create_task(self._every(NOTE_SECONDS, recording.note_progress))
            watching: dict[RecordedNamespace, asyncio.Task[None]] = {}
            listings = asyncio.Semaphore(_LISTINGS_AT_ONCE)

            async def follow() -> None:
                wanted = await self._wanted()
                for gone in watching.keys() - wanted:
                    watching.pop(gone).cancel()
                    if gone.uid not in {one.uid for one in wanted}:
                        await recording.stopped(gone.uid)
                for new in sorted(wanted - watching.keys(), key=lambda one: one.name):
                    watching[new] = group.create_task(self._watch(client, recording, new, listings))

            group.create_task(self._every(self._watched.discovery_seconds, follow))

    async def _first_partitions(self) -> None:
        while True:
            try:
                return await self._retention.make_partitions(datetime.now(UTC).date())
            except StoreError as error:
                _log.warning("the history cannot be written; retrying in %g s: %s", RETRY_SECONDS, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _watch(
        self, client: KubeClient, recording: Recording, namespace: RecordedNamespace, listings: asyncio.Semaphore
    ) -> None:
        """Watches the kinds of a namespace until cancelled."""
        places = [Place(namespace.uid, namespace.name, kind, namespace.values) for kind in self._watched.kinds]
        for place in places:
            recording.add(place)
        _log.info("the history of namespace %s is recorded", namespace.name)
        try:
            async with asyncio.TaskGroup() as group:
                for place in places:
                    group.create_task(KindWatch(client, place, recording, listings, self._watched.pauses).run())
        finally:
            for place in places:
                recording.remove(place)

    async def _wanted(self) -> set[RecordedNamespace]:
        """Returns the namespaces with a history, at most `MAX_NAMESPACES` by name. Raises ApiError."""
        if self._watched.namespaces:
            found = [
                one for name in self._watched.namespaces if (one := await self._client.find("Namespace", None, name))
            ]
        else:
            found = await self._client.list("Namespace", labelSelector=HISTORY_LABEL)
        wanted = []
        for one in sorted(found, key=lambda one: str(one["metadata"]["name"])):
            metadata = one["metadata"]
            choice, name = (metadata.get("labels") or {}).get(HISTORY_LABEL), metadata["name"]
            if choice in (KEYS, MASKED_VALUES) and not metadata.get("deletionTimestamp"):
                wanted.append(RecordedNamespace(metadata["uid"], name, choice == MASKED_VALUES))
            elif choice is not None and choice not in (KEYS, MASKED_VALUES):
                choices = f"{KEYS} or {MASKED_VALUES}"
                self._tell(f"namespace {name} has no history: its label {HISTORY_LABEL} must be {choices}")
        for beyond in wanted[MAX_NAMESPACES:]:
            self._tell(f"namespace {beyond.name} has no history: at most {MAX_NAMESPACES} namespaces may have one")
        return set(wanted[:MAX_NAMESPACES])

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            _log.warning("%s", text)

    def _watches(self) -> dict[tuple[str, ...], float]:
        states = self._recording.states() if self._recording is not None else {}
        return {(state,): states.get(WatchState(state), 0) for state in WATCH_STATE.values or ()}

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except (ApiError, StoreError) as error:
                _log.warning("the history recorder: %s", error)
            await asyncio.sleep(seconds)
