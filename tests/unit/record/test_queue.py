"""Tests why a run waits: the causes, in the order in which they must go."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tarsy.record.reading.queue import Capacity, QueuedRun, SeenWorker, why_it_waits

NOW = datetime(2026, 11, 28, 3, 0, tzinfo=UTC)
FREE = Capacity(workers=1, places=20, questions=10, global_limit=100)


def _run(**changes: Any) -> QueuedRun:
    values: dict[str, Any] = {
        "id": UUID(int=1),
        "namespace": "shop",
        "name": "checkout",
        "parent": None,
        "alert_type": "PodCrash",
        "chain_namespace": "tarsy-library",
        "chain": "kubernetes",
        "replay": False,
        "accepted_at": NOW,
        "since": NOW,
    }
    return QueuedRun(**{**values, **changes})


def _worker(**changes: Any) -> SeenWorker:
    values: dict[str, Any] = {
        "id": UUID(int=2),
        "host": "tarsy-0",
        "started_at": NOW,
        "expires_at": NOW,
        "alive": True,
        "schema_version": 49,
        "runs": 3,
        "answers": 1,
        "places": 20,
        "questions": 10,
        "global_limit": 100,
    }
    return SeenWorker(**{**values, **changes})


@pytest.mark.parametrize(
    ("run", "capacity", "reason", "said"),
    [
        (_run(parked_for="Approval", note="A call waits."), Capacity(), "WaitingForApproval", "A call waits."),
        (_run(parked_for="ProviderLimit", note="Later."), FREE, "WaitingForProvider", "Later."),
        (_run(parked_for="Weather"), FREE, "Parked", "parked"),
        (_run(note="Quota day is used up."), Capacity(), "WaitingForQuota", "Quota day"),
        (_run(), Capacity(), "NoWorker", "No worker is alive"),
        (_run(), Capacity(workers=2, draining=2), "WorkersDraining", "draining"),
        (_run(readable=False), FREE, "NewerPlan", "newer release"),
        (_run(parent="checkout", behind=True), FREE, "EarlierQuestion", "earlier question"),
        (_run(lost=True), FREE, "WorkerLost", "Another one resumes it"),
        (_run(), FREE, "Queued", "next worker"),
    ],
)
def test_the_cause_that_must_go_first_is_told(run: QueuedRun, capacity: Capacity, reason: str, said: str) -> None:
    why = why_it_waits(run, capacity)
    assert why.reason == reason
    assert said in why.message


@pytest.mark.parametrize(
    ("changes", "capacity", "reason"),
    [
        ({}, {"running": 100, "places": 200}, "InstallationLimit"),
        ({"namespace_limit": 2, "in_namespace": 2}, {}, "NamespaceLimit"),
        ({"in_namespace": 5}, {"namespace_limit": 5}, "NamespaceLimit"),
        ({"chain_limit": 1, "of_chain": 1}, {}, "ChainLimit"),
        ({}, {"running": 20}, "NoPlace"),
        ({"parent": "checkout"}, {"answering": 10}, "NoPlace"),
    ],
)
def test_a_limit_is_told_at_it_and_above_and_not_below(
    changes: dict[str, Any], capacity: dict[str, Any], reason: str
) -> None:
    def told(by: int) -> str:
        run = _run(**{k: v + by if k in ("in_namespace", "of_chain") else v for k, v in changes.items()})
        at = {**{name: getattr(FREE, name) for name in Capacity.__slots__}, **capacity}
        for busy in {"running", "answering"} & set(capacity):
            at[busy] += by
        return why_it_waits(run, Capacity(**at)).reason

    assert [told(by) for by in (-1, 0, 1)] == ["Queued", reason, reason]


def test_limits_of_runs_do_not_hold_a_question() -> None:
    busy = Capacity(workers=1, running=20, places=20, questions=10, global_limit=20)
    assert why_it_waits(_run(parent="checkout", namespace_limit=1, in_namespace=1), busy).reason == "Queued"


def test_capacity_is_of_workers_that_are_alive_and_do_not_drain() -> None:
    capacity = Capacity.of(
        [
            _worker(namespace_limit=4),
            _worker(draining=True, runs=1, answers=0, namespace_limit=9),
            _worker(alive=False, runs=7),
        ]
    )
    assert (capacity.workers, capacity.draining, capacity.running, capacity.answering) == (2, 1, 4, 1)
    assert (capacity.places, capacity.questions, capacity.global_limit, capacity.namespace_limit) == (20, 10, 100, 4)


def test_what_a_worker_of_an_older_release_does_not_tell_is_no_limit() -> None:
    older = _worker(places=None, questions=None, global_limit=None)
    capacity = Capacity.of([_worker(namespace_limit=4), older])
    assert (capacity.places, capacity.questions, capacity.namespace_limit) == (None, None, None)
    assert why_it_waits(_run(), capacity).reason == "Queued"
