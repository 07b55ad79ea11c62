"""Models of the queue: runs that wait and why, and the workers."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.unstarted import UnstartedItem
from tarsy.record.reading.queue import Capacity, QueuedRun, SeenWorker, why_it_waits
from tarsy.record.reading.usage_report import QueueDepth


class WorkerView(View):
    """A registered worker. What a worker of an older release does not tell is null."""

    id: UUID
    host: str = Field(description="Name of its pod; with several processes in one pod, POD/NUMBER.")
    alive: bool = Field(description="Whether its lease has not ended. Others resume the runs of one that is lost.")
    draining: bool = Field(description="Whether it stops: it takes nothing more and hands back its runs.")
    started_at: datetime
    beat_at: datetime | None = Field(description="Time of its last heartbeat.")
    expires_at: datetime = Field(description="Time at which the worker counts as lost unless it renews its lease.")
    runs: int = Field(description="Number of investigations that it is running.")
    answers: int = Field(description="Number of questions that it is answering.")
    places: int | None = Field(description="Number of investigations that it runs at once.")
    questions: int | None = Field(description="Number of questions that it answers at once.")
    version: str | None = Field(description="Its release.")

    @classmethod
    def of(cls, found: SeenWorker) -> Self:
        """Converts a registered worker."""
        return cls(**{name: getattr(found, name) for name in cls.model_fields})


class WorkerList(View):
    """Registered workers, those that are alive first."""

    items: tuple[WorkerView, ...]
    omitted: bool = Field(description="Whether there are more workers than a list contains.")

    @classmethod
    def of(cls, found: Sequence[SeenWorker], limit: int) -> Self:
        """Converts workers.

        Args:
            found: up to one more than `limit`.
            limit: maximum number to return.
        """
        return cls(items=tuple(map(WorkerView.of, found[:limit])), omitted=len(found) > limit)


class QueueItem(View):
    """A run that waits, or an Alert or Investigation of which there is no run yet."""

    kind: Literal["Alert", "Investigation", "ChatMessage"]
    namespace: str
    name: str
    uid: str
    investigation: str | None = Field(description="Investigation that a question is about.")
    alert_type: str | None = Field(description="Null where it is not known yet.")
    chain: str | None = Field(description="Null until it is planned.")
    chain_namespace: str | None
    accepted: bool = Field(description="Whether there is a record of it.")
    replay: bool
    reason: str = Field(description="Why it waits, in a word. That of the condition Finished where it has one.")
    message: str = Field(description="Why it waits, with the remedy.")
    since: datetime = Field(description="Time at which it began to wait.")
    until: datetime | None = Field(description="Time at which it goes on at the latest, where that is known.")

    @classmethod
    def of(cls, run: QueuedRun, capacity: Capacity) -> Self:
        """Converts a run that waits.

        Args:
            run: the run.
            capacity: the workers at the same moment.
        """
        why = why_it_waits(run, capacity)
        return cls(
            kind="Investigation" if run.parent is None else "ChatMessage",
            namespace=run.namespace,
            name=run.name,
            uid=str(run.id),
            investigation=run.parent,
            alert_type=run.alert_type,
            chain=run.chain,
            chain_namespace=run.chain_namespace,
            accepted=True,
            replay=run.replay,
            reason=why.reason,
            message=why.message,
            since=run.since,
            until=run.until,
        )

    @classmethod
    def not_accepted(cls, found: UnstartedItem) -> Self:
        """Converts an object without a run."""
        return cls(
            kind=found.kind,
            namespace=found.namespace,
            name=found.name,
            uid=found.uid,
            investigation=None,
            alert_type=found.alert_type,
            chain=None,
            chain_namespace=None,
            accepted=False,
            replay=False,
            reason=found.reason or found.phase,
            message=found.message or "The operator has not looked at it yet.",
            since=found.created_at,
            until=None,
        )


class QueueView(View):
    """Depth of the queue, and what waits in it."""

    pending: int = Field(description="Investigations and questions that wait for a worker.")
    running: int
    orphaned: int = Field(description="Runs in progress whose worker was lost. Another worker resumes them.")
    parked: int = Field(description="Runs that wait for people, a provider or a quota, without a worker.")
    workers: int = Field(description="Live workers of the installation.")
    not_accepted: int = Field(
        description="Alerts and Investigations of which there is no run, of the kinds that the caller may list."
    )
    items: tuple[QueueItem, ...] = Field(description="What waits, the longest first.")
    omitted: int = Field(description="Number of those beyond the limit.")

    @classmethod
    def of(
        cls,
        depth: QueueDepth,
        waiting: Sequence[QueuedRun],
        workers: Iterable[SeenWorker],
        unstarted: tuple[Sequence[UnstartedItem], int],
        limit: int,
    ) -> Self:
        """Converts the recorded queue, and what is not on record.

        Args:
            depth: its numbers.
            waiting: runs that wait, the longest first, up to the limit.
            workers: all that are registered.
            unstarted: objects without a run, the oldest up to the limit, and the number of all.
            limit: maximum number to return.
        """
        capacity = Capacity.of(workers)
        of_record, known = [QueueItem.of(run, capacity) for run in waiting], {str(run.id) for run in waiting}
        objects = [QueueItem.not_accepted(one) for one in unstarted[0] if one.uid not in known]
        not_accepted = unstarted[1] - (len(unstarted[0]) - len(objects))
        items = sorted((*of_record, *objects), key=lambda one: (one.since, one.uid))[:limit]
        everything = depth.pending + depth.orphaned + depth.parked + not_accepted
        return cls(
            pending=depth.pending,
            running=depth.running,
            orphaned=depth.orphaned,
            parked=depth.parked,
            workers=capacity.workers,
            not_accepted=not_accepted,
            items=tuple(items),
            omitted=max(0, everything - len(items)),
        )
