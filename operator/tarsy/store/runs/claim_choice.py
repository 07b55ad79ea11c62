"""Chooses the runs that a worker claims next, within all limits and fairly between namespaces."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that waits for a worker.

    `leased`: it still has the lease of a dead worker. `served_at` is the last claim of a run of its namespace; None:
    none within a day. A `replay` waits until nothing else does. `room` is what the quotas of its namespace leave (the
    function `quota_room` of migration 39); None: it has none, or the run was started before.
    """

    id: UUID
    namespace: str
    chain_namespace: str
    chain: str
    priority: int
    accepted_at: datetime
    namespace_limit: int | None
    chain_limit: int | None
    leased: bool = False
    served_at: datetime | None = None
    replay: bool = False
    room: Mapping[str, Any] | None = None

    @property
    def rooms(self) -> Mapping[str, int]:
        """Runs that each quota of its namespace lets start, by quota and share; a run to be triaged needs no room."""
        rooms: Mapping[str, int] = self.room["rooms"] if self.room and self.room["over"] is None else {}
        return rooms


RunsInProgress = Mapping[tuple[str, str, str], int]
"""Runs in progress by namespace, chain namespace and chain."""


_JUST_NOW = 1e15
"""Later than any time since 1970 in seconds."""


def choose_runs(
    candidates: Iterable[Candidate],
    running: RunsInProgress,
    *,
    free: int,
    global_limit: int,
    namespace_limit: int | None = None,
) -> list[Candidate]:
    """Chooses the runs to claim next, within all limits.

    Fairness between namespaces comes first: the namespace with the fewest runs is next, of equals the one that was
    served longest ago. Within a namespace priority decides, then age. Without the second rule a namespace with short
    urgent runs would take back every slot that it has just released. Replays come after all other runs of all
    namespaces: nobody is woken by them.

    Args:
        candidates: waiting runs.
        running: runs in progress.
        free: free slots of this worker.
        global_limit: maximum runs in progress in the whole installation.
        namespace_limit: maximum runs in progress of one namespace; None: only the limit that it has itself.
    """
    candidates = list(candidates)
    served = {c.namespace: c.served_at.timestamp() if c.served_at else float("-inf") for c in candidates}
    namespaces: Counter[str] = Counter()
    chains: Counter[tuple[str, str]] = Counter()
    for (namespace, chain_namespace, chain), runs in running.items():
        namespaces[namespace] += runs
        chains[chain_namespace, chain] += runs
    places = min(free, global_limit - namespaces.total())
    rooms: dict[str, int] = {}
    for candidate in candidates:
        rooms.update(candidate.rooms)
    lines: defaultdict[tuple[str, str, str], list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=_place):
        lines[candidate.namespace, candidate.chain_namespace, candidate.chain].append(candidate)

    def fits(c: Candidate) -> bool:
        return (
            (namespace_limit is None or namespaces[c.namespace] < namespace_limit)
            and (c.namespace_limit is None or namespaces[c.namespace] < c.namespace_limit)
            and (c.chain_limit is None or chains[c.chain_namespace, c.chain] < c.chain_limit)
            and all(rooms[quota] > 0 for quota in c.rooms)
        )

    chosen: list[Candidate] = []
    while len(chosen) < places:
        # The first that fits of each line goes before all others of it.
        heads = [head for line in lines.values() if (head := next(filter(fits, line), None)) is not None]
        if not heads:
            break
        best = min(heads, key=lambda c: (c.replay, namespaces[c.namespace], served[c.namespace], *_place(c)))
        lines[best.namespace, best.chain_namespace, best.chain].remove(best)
        chosen.append(best)
        namespaces[best.namespace] += 1
        served[best.namespace] = _JUST_NOW + len(chosen)
        chains[best.chain_namespace, best.chain] += 1
        for quota in best.rooms:
            rooms[quota] -= 1
    return chosen


def _place(candidate: Candidate) -> tuple[bool, int, datetime, UUID]:
    return candidate.replay, -candidate.priority, candidate.accepted_at, candidate.id
