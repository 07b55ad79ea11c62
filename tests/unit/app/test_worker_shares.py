"""The shares of the processes of a pod add up to what the pod may use."""

from typing import Any

import pytest

from tarsy.app.errors import StartError
from tarsy.app.settings.processes import WorkerProcessSettings
from tarsy.app.worker_shares import PROCESS_BYTES, share_out, shares_of
from tarsy.runtime.settings import WorkerSettings


def settings(processes: int | None = None, places: int = 20, connections: int = 21) -> WorkerProcessSettings:
    return WorkerProcessSettings.model_validate(
        {
            "database": {"url": "postgresql://db/tarsy"},
            "execution": {"maxConcurrent": places},
            "workerPod": {"processes": processes, "connections": connections},
        }
    )


@pytest.mark.parametrize(
    ("total", "parts", "expected"),
    [(2, 3, [1, 1, 0]), (3, 3, [1, 1, 1]), (4, 3, [2, 1, 1]), (20, 4, [5, 5, 5, 5]), (7, 1, [7])],
)
def test_parts_differ_by_at_most_one_and_lose_nothing(total: int, parts: int, expected: list[int]) -> None:
    assert share_out(total, parts) == expected


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 7])
def test_all_processes_together_use_exactly_what_the_pod_may_use(processes: int) -> None:
    shares = shares_of(settings(processes), cores=1, memory_bytes=None)
    assert [share.number for share in shares] == list(range(1, processes + 1))
    assert sum(share.places for share in shares) == 20
    assert sum(share.connections for share in shares) == 21
    assert sum(share.questions for share in shares) == WorkerSettings().questions
    assert min(share.connections for share in shares) >= 3


@pytest.mark.parametrize(
    ("cores", "memory_bytes", "limits", "expected"),
    [
        (1, None, {}, 1),
        (4, None, {}, 4),
        (64, None, {}, 7),  # 21 connections
        (64, None, {"connections": 24}, 8),
        (4, None, {"places": 1}, 1),
        (4, None, {"places": 3}, 3),
        (4, 4 * PROCESS_BYTES - 1, {}, 3),
        (4, 4 * PROCESS_BYTES, {}, 4),
        (4, 4 * PROCESS_BYTES + 1, {}, 4),
        (4, PROCESS_BYTES // 2, {}, 1),
    ],
)
def test_by_default_there_is_a_process_for_each_core_where_there_is_enough_for_it(
    cores: int, memory_bytes: int | None, limits: dict[str, Any], expected: int
) -> None:
    assert len(shares_of(settings(**limits), cores, memory_bytes)) == expected


@pytest.mark.parametrize(("connections", "expected"), [(3, 2), (8, 7), (9, 8), (10, 8), (21, 8)])
def test_runs_of_a_process_use_no_more_connections_than_help_them(connections: int, expected: int) -> None:
    (share,) = shares_of(settings(1, connections=connections), cores=1, memory_bytes=None)
    assert share.run_connections == expected


@pytest.mark.parametrize(("places", "connections"), [(4, 12), (5, 13)])
def test_a_wanted_number_is_taken_where_there_is_just_enough(places: int, connections: int) -> None:
    assert len(shares_of(settings(4, places, connections), cores=1, memory_bytes=1)) == 4


@pytest.mark.parametrize(("places", "connections"), [(3, 12), (4, 11)])
def test_a_number_without_enough_for_each_is_refused_with_the_remedy(places: int, connections: int) -> None:
    with pytest.raises(
        StartError, match=r"at least 4 places \(--places\) and 12 .*--database-connections.*--processes"
    ):
        shares_of(settings(4, places, connections), cores=8, memory_bytes=None)
