"""Defines the queue as people see it: runs that wait, why each does, and the workers that take them.

The reason is derived from the state of a run and of the workers at one moment (`why_it_waits`). Its words are those of
the condition Finished, where a condition names the same cause.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from tarsy.record.waiting import WaitReason, waiting_reason


@dataclass(frozen=True, slots=True)
class WorkerOffer:
    """Holds the capacity of a worker: concurrent runs and questions, its limits, and its release.

    `global_limit` and `namespace_limit` are runs of the whole installation, and of one namespace, beyond which it
    claims none; None: no limit.
    """

    places: int
    questions: int
    global_limit: int
    namespace_limit: int | None
    version: str


@dataclass(frozen=True, slots=True)
class SeenWorker:
    """A registered worker. What workers of an older release do not tell is None.

    `runs` are the investigations and `answers` the questions that it has a lease of. Its lease ends at `expires_at`
    unless it is renewed; `alive` tells whether it has not ended.
    """

    id: UUID
    host: str
    started_at: datetime
    expires_at: datetime
    alive: bool
    schema_version: int
    runs: int
    answers: int
    draining: bool = False
    beat_at: datetime | None = None
    places: int | None = None
    questions: int | None = None
    global_limit: int | None = None
    namespace_limit: int | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run that no live worker has.

    `parent` is the investigation that a question is about. `since` is when it began to wait; `parked_for`, `until` and
    `note` belong to a run that is parked and not woken, `note` also to one that a quota holds. `lost`: its worker died.
    `in_namespace` and `of_chain` count the investigations that run, `behind` whether an earlier question is open.
    `readable` tells whether a live worker knows its plan.
    """

    id: UUID
    namespace: str
    name: str
    parent: str | None
    alert_type: str
    chain_namespace: str
    chain: str
    replay: bool
    accepted_at: datetime
    since: datetime
    parked_for: str | None = None
    note: str | None = None
    until: datetime | None = None
    lost: bool = False
    behind: bool = False
    readable: bool = True
    namespace_limit: int | None = None
    chain_limit: int | None = None
    in_namespace: int = 0
    of_chain: int = 0


@dataclass(frozen=True, slots=True)
class WaitingFor:
    """Why a run waits: a word for programs and a sentence with the remedy."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Capacity:
    """Holds the capacity of all live workers; a limit that not all of them report is None.

    `workers` are alive, and `draining` of them stop. `running` and `answering` are in progress, of `places` and
    `questions`.
    """

    workers: int = 0
    draining: int = 0
    running: int = 0
    answering: int = 0
    places: int | None = None
    questions: int | None = None
    global_limit: int | None = None
    namespace_limit: int | None = None

    @classmethod
    def of(cls, seen: Iterable[SeenWorker]) -> Self:
        """Adds up workers; those that are not alive count for nothing."""
        alive = [one for one in seen if one.alive]
        taking = [one for one in alive if not one.draining]
        return cls(
            workers=len(alive),
            draining=len(alive) - len(taking),
            running=sum(one.runs for one in alive),
            answering=sum(one.answers for one in alive),
            places=_sum(one.places for one in taking),
            questions=_sum(one.questions for one in taking),
            global_limit=max((one.global_limit for one in taking if one.global_limit is not None), default=None),
            namespace_limit=max(limits) if (limits := _all(one.namespace_limit for one in taking)) else None,
        )


def why_it_waits(run: QueuedRun, capacity: Capacity) -> WaitingFor:
    """Returns why a run is not in progress, the cause that must go first.

    Args:
        run: the run.
        capacity: the workers at the same moment.
    """
    if run.parked_for is not None:
        return WaitingFor(waiting_reason(run.parked_for), run.note or "It is parked.")
    if run.note is not None:
        return WaitingFor(waiting_reason(WaitReason.QUOTA), run.note)
    return _no_worker(run, capacity) or _limit(run, capacity) or _next(run)


def _no_worker(run: QueuedRun, capacity: Capacity) -> WaitingFor | None:
    if capacity.workers == 0:
        return WaitingFor(
            "NoWorker",
            "No worker is alive. See the pods of the operator, and of tarsy-worker where workers are Deployments of "
            "their own: their logs tell why they are not ready.",
        )
    if capacity.draining == capacity.workers:
        return WaitingFor("WorkersDraining", "All workers are draining: they stop, and take nothing new.")
    if not run.readable:
        return WaitingFor(
            "NewerPlan",
            "A newer release planned it, and no live worker knows its plan. Complete the upgrade; after 10 minutes "
            "without such a worker it ends as PlanUnreadable.",
        )
    return None


def _limit(run: QueuedRun, capacity: Capacity) -> WaitingFor | None:
    if run.parent is not None:
        if run.behind:
            return WaitingFor("EarlierQuestion", "An earlier question about the same investigation is open.")
        if capacity.questions is not None and capacity.answering >= capacity.questions:
            text = f"Workers answer {capacity.answering} questions, as many as they take."
            return WaitingFor("NoPlace", text)
        return None
    if capacity.global_limit is not None and capacity.running >= capacity.global_limit:
        text = f"{capacity.running} investigations run, as many as the installation allows (--global-limit)."
        return WaitingFor("InstallationLimit", text)
    for limit, where in (
        (run.namespace_limit, "maxConcurrent of its InvestigationDefaults"),
        (capacity.namespace_limit, "--namespace-limit"),
    ):
        if limit is not None and run.in_namespace >= limit:
            text = f"{run.in_namespace} investigations of namespace {run.namespace} run, as many as {where} allows."
            return WaitingFor("NamespaceLimit", text)
    if run.chain_limit is not None and run.of_chain >= run.chain_limit:
        name = f"Chain {run.chain_namespace}/{run.chain}"
        text = f"{run.of_chain} investigations of {name} run, as many as its maxConcurrent allows."
        return WaitingFor("ChainLimit", text)
    if capacity.places is not None and capacity.running >= capacity.places:
        text = f"All {capacity.places} places of the workers are taken. Add workers, or raise --places."
        return WaitingFor("NoPlace", text)
    return None


def _next(run: QueuedRun) -> WaitingFor:
    if run.lost:
        return WaitingFor("WorkerLost", "Its worker was lost. Another one resumes it.")
    return WaitingFor("Queued", "Nothing holds it: the next worker with a free place takes it.")


def _all(values: Iterable[int | None]) -> list[int]:
    """Returns the values, none if one is unknown."""
    known = list(values)
    return [] if None in known else [one for one in known if one is not None]


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return sum(_all(known)) if None not in known else None
