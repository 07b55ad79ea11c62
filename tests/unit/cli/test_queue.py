"""Tests how the queue and the workers are printed for people."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from rich.console import Console

from tarsy.cli.reports.queue import queue_line, queue_table, worker_state, workers_table
from tarsy.http.views.queue import QueueItem, QueueView, WorkerView

NOW = datetime(2026, 11, 28, 3, 0, tzinfo=UTC)


def _item(**changes: Any) -> QueueItem:
    values: dict[str, Any] = {
        "kind": "Investigation",
        "namespace": "shop",
        "name": "checkout",
        "uid": "u1",
        "investigation": None,
        "alert_type": "PodCrash",
        "chain": "kubernetes",
        "chain_namespace": "tarsy-library",
        "accepted": True,
        "replay": False,
        "reason": "NoWorker",
        "message": "No worker is alive.",
        "since": NOW - timedelta(hours=2, minutes=5, seconds=9),
        "until": None,
    }
    return QueueItem(**{**values, **changes})


def _worker(**changes: Any) -> WorkerView:
    values: dict[str, Any] = {
        "id": UUID(int=1),
        "host": "tarsy-0/1",
        "alive": True,
        "draining": False,
        "started_at": NOW - timedelta(days=3, hours=4),
        "beat_at": NOW - timedelta(seconds=2),
        "expires_at": NOW,
        "runs": 3,
        "answers": 0,
        "places": 20,
        "questions": 10,
        "version": "1.2.3",
    }
    return WorkerView(**{**values, **changes})


def _printed(table: Any) -> str:
    console = Console(width=160, markup=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_what_waits_is_a_line_with_its_time_and_the_reason() -> None:
    early = _item(kind="Alert", name="early", chain=None, chain_namespace=None, accepted=False, reason="NoChain")
    text = _printed(queue_table([_item(), early], NOW, with_namespace=True))
    first, second = text.splitlines()[1:]
    assert first.split()[:6] == ["shop", "2h5m", "Investigation", "checkout", "tarsy-library/kubernetes", "NoWorker"]
    assert second.split()[2:6] == ["Alert", "early", "-", "NoChain"]
    assert "NAMESPACE" not in _printed(queue_table([_item()], NOW, with_namespace=False))


def test_a_line_counts_what_waits() -> None:
    queue = QueueView(
        pending=2, running=3, orphaned=1, parked=4, workers=1, not_accepted=5, items=(_item(),), omitted=0
    )
    assert queue_line(queue, "shop") == (
        "In namespace shop: 3 running, 2 queued, 4 parked, 1 to be resumed, 5 not accepted; 1 worker is alive."
    )
    assert queue_line(queue, None).startswith("In all namespaces: ")


def test_a_worker_tells_its_state_and_load_and_what_an_older_one_does_not_tell_is_a_dash() -> None:
    older = _worker(places=None, questions=None, beat_at=None, version=None)
    rows = [line.split() for line in _printed(workers_table([_worker(), older], NOW)).splitlines()[1:]]
    assert rows[0] == ["tarsy-0/1", "Alive", "3/20", "0/10", "2s", "ago", "3d4h", "1.2.3"]
    assert rows[1] == ["tarsy-0/1", "Alive", "3", "0", "-", "3d4h", "-"]
    assert worker_state(_worker(draining=True)) == "Draining"
    assert worker_state(_worker(draining=True, alive=False)) == "Lost"
