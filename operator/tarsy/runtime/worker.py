"""Claims runs, runs them concurrently, renews their leases with one heartbeat, and releases them on shutdown.

The only state that counts is in Postgres. A worker that dies leaves leases that lapse; a worker that was paused finds
its heartbeat refused (`WorkerLost`), stops its runs without a further write, and registers again under a new id. One
that drains claims nothing more and hands each run back at its next boundary, where nothing is left to be repeated.
"""

import asyncio
import logging
import math
import os
import random
import secrets
import socket
from dataclasses import dataclass, field
from importlib.metadata import version
from uuid import UUID

from tarsy.observe.logs import log_context
from tarsy.observe.metric_table import CLAIMED, HELD, PARKED_FOR, PLACES, WAIT, WORKERS_LOST
from tarsy.observe.metrics import Metrics
from tarsy.record.ids import worker_id
from tarsy.record.reading.queue import WorkerOffer
from tarsy.runtime.run import Runner
from tarsy.runtime.run_control import LocalLease, RunControl
from tarsy.runtime.run_metrics import kind
from tarsy.runtime.settings import WorkerSettings
from tarsy.store.errors import SchemaMismatch, StoreError, WorkerLost
from tarsy.store.runs.claims import ClaimedRun, Claims

_log = logging.getLogger(__name__)
LAPSE_SECONDS = (0.05, 0.15)
"""Between the end of another worker's lease and the claim of its runs; random, so that workers take turns."""


@dataclass(frozen=True, slots=True)
class WorkerWakeups:
    """What whoever hears of a change wakes a worker with.

    Args:
        claim: a run may be claimable.
        beat: a desired state may have changed.
    """

    claim: asyncio.Event = field(default_factory=asyncio.Event)
    beat: asyncio.Event = field(default_factory=asyncio.Event)

    def set(self) -> None:
        """Wakes the worker for both."""
        self.claim.set()
        self.beat.set()


class Worker:
    """One worker.

    Args:
        wake: makes it claim, or read the desired states of its runs, before it is due.
        metrics: what is counted for people to see.
    """

    def __init__(
        self,
        claims: Claims,
        runner: Runner,
        settings: WorkerSettings,
        wake: WorkerWakeups,
        metrics: Metrics | None = None,
    ) -> None:
        self._claims = claims
        self._metrics = metrics or Metrics()
        self._metrics.pull(PLACES, lambda: {(): settings.places})
        self._metrics.pull(HELD, self._held)
        self._runner = runner
        self._settings = settings
        self._wake = wake.claim
        self._beat_now = wake.beat
        self._runs: dict[UUID, tuple[int, RunControl]] = {}
        self._claiming = asyncio.Lock()
        self._draining = False
        self._idle = asyncio.Event()
        self._ended = 0
        self._lapse_at = math.inf
        self._lapse_read_at = -math.inf

    async def run(self) -> None:
        """Works until cancelled; then hands back what it holds.

        Raises:
            SchemaMismatch: this version is too old for the database's schema.
        """
        while True:
            host = self._settings.name or socket.gethostname()
            identity = worker_id(host, os.getpid(), secrets.token_hex(8))
            lease = LocalLease(self._settings.lease_seconds)
            asked = lease.now()
            try:
                await self._claims.register(identity, host, self._settings.lease_seconds, self._offer())
                lease.renewed(asked)
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._heartbeat(identity, lease))
                    group.create_task(self._claim(identity, lease, group))
            except* WorkerLost as lost:
                self._metrics.add(WORKERS_LOST)
                _log.warning("worker %s lost its leases and registers again: %s", identity, lost.exceptions[0])
            except* SchemaMismatch:
                raise  # for good: nothing that this version does will change it
            except* StoreError as away:
                _log.warning("worker %s cannot run: %s", identity, away.exceptions[0])
                await asyncio.sleep(1.0)
            finally:
                self._runs.clear()
                self._note_idle()
                await self._deregister(identity)

    async def drain(self) -> None:
        """Stops claiming and waits, within `drain_seconds`, until each run has reached a boundary and is handed back.

        `run` goes on, holding what did not get there in time; it is for the caller to cancel.
        """
        self._draining = True
        self._beat_now.set()  # so that people see it
        held = len(self._runs)
        for _, control in list(self._runs.values()):
            control.drain()
        self._note_idle()
        try:
            async with asyncio.timeout(self._settings.drain_seconds):
                await self._idle.wait()
        except TimeoutError:
            _log.warning(
                "%d runs did not reach a boundary in time; their current step will be repeated", len(self._runs)
            )
        else:
            _log.info("drained: %d runs were released to other workers", held)

    def _offer(self) -> WorkerOffer:
        """Returns the capacity of this worker, for people."""
        of = self._settings
        return WorkerOffer(of.places, of.questions, of.global_limit, of.namespace_limit, version("tarsy-operator"))

    def _held(self) -> dict[tuple[str, ...], float]:
        """Counts the held runs by kind."""
        questions = sum(control.answers for _, control in self._runs.values())
        return {(kind(False),): len(self._runs) - questions, (kind(True),): questions}

    def _note_idle(self) -> None:
        if self._draining and not self._runs:
            self._idle.set()

    async def _deregister(self, identity: UUID) -> None:
        try:
            async with asyncio.timeout(5):
                await self._claims.deregister(identity)
        except (StoreError, TimeoutError) as error:
            _log.info(
                "worker %s could not be unregistered in the database; its registration will expire: %s", identity, error
            )

    async def _heartbeat(self, identity: UUID, lease: LocalLease) -> None:
        """Beats when it is due, and between when something may have changed.

        Runs are handed back when it is due only: one that fails at once would else go round without a pause. While
        the worker drains it takes none back, so they are handed back at once.
        """
        seconds, clock = self._settings.heartbeat_seconds, asyncio.get_running_loop().time
        due = clock() + seconds
        while True:
            try:
                async with asyncio.timeout_at(due):
                    await self._beat_now.wait()
            except TimeoutError:
                pass
            self._beat_now.clear()
            hand_back = self._draining or clock() >= due
            if clock() >= due:
                due = clock() + seconds
            try:
                async with self._claiming, asyncio.timeout(seconds):
                    await self._beat(identity, lease, hand_back)
            except (StoreError, TimeoutError) as error:
                _log.warning("heartbeat of worker %s failed: %s", identity, str(error) or "no answer in time")

    async def _beat(self, identity: UUID, lease: LocalLease, hand_back: bool) -> None:
        asked = lease.now()
        held = await self._claims.heartbeat(identity, self._settings.lease_seconds, draining=self._draining)
        lease.renewed(asked)
        for run, (attempt, control) in list(self._runs.items()):
            current = held.get(run)
            if current is None or current[0] != attempt:
                control.lose()
            elif current[1] is not control.desired:
                control.want(current[1])
        for run, (attempt, _) in held.items():
            if hand_back and run not in self._runs:
                await self._claims.release(identity, run, attempt)

    async def _claim(self, identity: UUID, lease: LocalLease, group: asyncio.TaskGroup) -> None:
        while True:
            self._wake.clear()
            try:
                answering = sum(control.answers for _, control in self._runs.values())
                free = 0 if self._draining else self._settings.places - (len(self._runs) - answering)
                questions = 0 if self._draining else self._settings.questions - answering
                # No longer than a heartbeat may wait for its turn; what was claimed unheard is handed back.
                async with self._claiming, asyncio.timeout(self._settings.heartbeat_seconds):
                    most, each, ended = self._settings.global_limit, self._settings.namespace_limit, self._ended
                    for claimed in await self._claims.claim(
                        identity, free, most, questions=questions, namespace_limit=each, ended=ended
                    ):
                        self._start(claimed, lease, group)
                    self._ended -= ended
            except (StoreError, TimeoutError) as error:
                _log.warning("worker %s could not claim: %s", identity, str(error) or "no answer in time")
            seconds = await self._seconds_to_next_claim(identity)
            try:
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _seconds_to_next_claim(self, identity: UUID) -> float:
        """Returns the poll interval, or the time until another worker's lease ends and its runs may be claimed.

        Postgres is asked once a poll interval and after each lapse, not at each wake-up: what it says of a dead worker
        does not change.
        """
        most, clock = self._settings.poll_seconds, asyncio.get_running_loop().time
        if clock() >= min(self._lapse_at, self._lapse_read_at + most):
            self._lapse_at, self._lapse_read_at = math.inf, clock()
            try:
                async with asyncio.timeout(most):
                    lapse = await self._claims.seconds_to_next_lapse(identity)
            except (StoreError, TimeoutError):
                return most
            if lapse is not None and lapse > 0:  # else this worker has no place for its runs
                self._lapse_at = clock() + lapse + random.uniform(*LAPSE_SECONDS)
        return min(most, max(0.0, self._lapse_at - clock()))

    def _start(self, claimed: ClaimedRun, lease: LocalLease, group: asyncio.TaskGroup) -> None:
        """Starts a claimed run as a task of the worker's group."""

        async def run() -> None:
            try:
                await self._runner.run(claimed, control)
            except Exception:
                _log.exception("run of %s/%s was released, to be resumed", claimed.namespace, claimed.name)
            finally:
                if self._runs.get(claimed.id) == (claimed.attempt, control):  # else it was claimed again meanwhile
                    del self._runs[claimed.id]
                self._ended += 1
                self._note_idle()
                self._wake.set()
                if self._draining:
                    self._beat_now.set()  # which hands it back

        what, first = kind(claimed.parent is not None), claimed.attempt == 1
        self._metrics.add(CLAIMED, kind=what, attempt="first" if first else "resumed")
        if first:
            self._metrics.observe(WAIT, claimed.waited_seconds, kind=what)
        if claimed.parked_for is not None:
            self._metrics.observe(PARKED_FOR, claimed.parked_seconds, reason=claimed.parked_for)
        control = RunControl(lease, claimed.desired_state, answers=claimed.parent is not None)
        self._runs[claimed.id] = (claimed.attempt, control)
        with log_context(investigation=str(claimed.parent or claimed.id), attempt=claimed.attempt):
            _log.info("run of %s/%s claimed (attempt %d)", claimed.namespace, claimed.name, claimed.attempt)
            control.task = group.create_task(run(), name=f"run {claimed.id}")
        if self._draining:  # the claim was under way
            control.drain()
