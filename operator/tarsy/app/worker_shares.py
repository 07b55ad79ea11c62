"""Shares out what a worker pod may use among its processes: places, questions, connections to Postgres."""

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

from tarsy.app.errors import StartError
from tarsy.app.settings.processes import WorkerProcessSettings
from tarsy.runtime.settings import WorkerSettings

LEAST_CONNECTIONS: Final = 3
"""Connections to Postgres that a process needs: one for LISTEN, one for heartbeats and one for runs."""
RUN_CONNECTIONS: Final = 8
"""Maximum connections to Postgres of the pool that the runs of a process use.

Postgres plans every statement six times a connection, and works best with few statements at once: a hundred runs of a
process need no more than this.
"""
PROCESS_BYTES: Final = 256 << 20
"""Memory that the default number of processes allows for each."""


class Share(BaseModel):
    """Holds the limits of one process of a pod.

    `number` is its number in the pod, from 1. `connections` are those to Postgres, one of them for LISTEN.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    number: int
    places: int
    questions: int
    connections: int

    @property
    def run_connections(self) -> int:
        """Maximum connections of the pool that its runs use."""
        return min(self.connections - 1, RUN_CONNECTIONS)


def shares_of(settings: WorkerProcessSettings, cores: int, memory_bytes: int | None) -> Sequence[Share]:
    """Returns the share of each process of a pod; together they use exactly what the pod may use.

    Args:
        settings: the settings of the pod.
        cores: cores of the pod.
        memory_bytes: memory limit of the pod; None: none.

    Raises:
        StartError: there is not enough for the wanted number of processes.
    """
    places, connections = settings.execution.max_concurrent, settings.worker_pod.connections
    most = min(places, connections // LEAST_CONNECTIONS)
    wanted = settings.worker_pod.processes
    if wanted is not None and wanted > most:
        raise StartError(
            f"{wanted} worker processes need at least {wanted} places (--places) and {wanted * LEAST_CONNECTIONS} "
            f"connections to Postgres (--database-connections), and have {places} and {connections}; raise these or "
            "lower --processes"
        )
    by_memory = cores if memory_bytes is None else memory_bytes // PROCESS_BYTES
    number = max(1, min(cores, by_memory, most)) if wanted is None else wanted
    parts = zip(
        share_out(places, number),
        share_out(WorkerSettings().questions, number),
        share_out(connections, number),
        strict=True,
    )
    return [Share(number=i, places=p, questions=q, connections=c) for i, (p, q, c) in enumerate(parts, 1)]


def share_out(total: int, parts: int) -> list[int]:
    """Returns `total` in parts that differ by at most one, the larger ones first."""
    each, over = divmod(total, parts)
    return [each + (part < over) for part in range(parts)]
