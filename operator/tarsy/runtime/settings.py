"""Declares the settings of a worker.

The lease figures follow procrastinate's proportion (a worker counts as dead after three missed heartbeats); what the
local deadline subtracts is the time one heartbeat may take.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker claims and holds runs.

    `places` are the runs this process has at once, `global_limit` those of the whole installation; beside them it
    answers up to `questions` questions at once. `namespace_limit` are runs of one namespace at once in the whole
    installation, and answers as many; None: no limit but the namespace's own. `name` shows people which worker this is;
    empty: the host name.
    `lease_seconds` after its last heartbeat a worker's runs may be claimed by others; `heartbeat_seconds` lie between
    two heartbeats. `poll_seconds` bounds how long a lost wake-up can delay a claim.
    """

    places: int = 20
    global_limit: int = 100
    questions: int = 10
    namespace_limit: int | None = None
    lease_seconds: float = 10.0
    heartbeat_seconds: float = 10.0 / 3
    poll_seconds: float = 2.0
    finish_grace_seconds: float = 300.0
    drain_seconds: float = 20.0
    name: str = ""

    def __post_init__(self) -> None:
        if self.places < 1 or self.global_limit < 1 or self.questions < 0:
            raise ValueError("places and global limit must be at least 1, and questions not negative")
        if self.namespace_limit is not None and self.namespace_limit < 1:
            raise ValueError("the namespace limit must be at least 1")
        if self.lease_seconds < 2 * self.heartbeat_seconds:
            raise ValueError("the lease must last at least two heartbeats")
        if self.drain_seconds < 0:
            raise ValueError("the time to drain must not be negative")
