"""Declares the settings of a worker.

The lease figures follow procrastinate's proportion (a worker counts as dead after three missed heartbeats); what the
local deadline subtracts is the time one heartbeat may take.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Holds the settings by which a worker claims and holds runs.

    `places` are the runs this process has at once, `global_limit` those of the whole installation; beside them it
    answers up to `questions` questions at once. `namespace_limit` are runs of one namespace at once in the whole
    installation, and answers as many; None: no limit but the namespace's own. `name` shows people which worker this is;
    empty: the host name.
    `lease_seconds` after its last heartbeat a worker's runs may be claimed by others; `heartbeat_seconds` lie between
    two heartbeats. `poll_seconds` bounds how long a lost wake-up can delay a claim.
    `max_parked` runs of the whole installation may be parked, and `max_parked_of_namespace` of one namespace (None:
    only the total limits them), each for `max_wait_seconds` in all. A run may ask for `approval_requests` approvals. A
    provider that asks to wait longer than `park_provider_seconds` parks the run; 0: none does.
    """

    places: int = 20
    global_limit: int = 100
    questions: int = 10
    namespace_limit: int | None = None
    lease_seconds: float = 10.0
    heartbeat_seconds: float = 10.0 / 3
    poll_seconds: float = 2.0
    max_parked: int = 1000
    max_parked_of_namespace: int | None = None
    max_wait_seconds: float = 24 * 3600.0
    approval_requests: int = 5
    park_provider_seconds: float = 300.0
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
        if self.max_parked < 0 or (self.max_parked_of_namespace is not None and self.max_parked_of_namespace < 0):
            raise ValueError("the limits of parked runs must not be negative")
        if self.drain_seconds < 0:
            raise ValueError("the time to drain must not be negative")
