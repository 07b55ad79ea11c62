"""Defines notifications, incidents and decisions of the intake."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

Fate = Literal["investigated", "folded", "resolved", "rejected"]


class QueueFull(Exception):
    """Too many investigations wait: nothing was written, and the sender may retry later.

    `namespace` is the one whose limit was reached; empty: the limit of the installation was reached.
    """

    def __init__(self, namespace: str = "") -> None:
        super().__init__(namespace)
        self.namespace = namespace


@dataclass(frozen=True, slots=True)
class Received:
    """A received notification. `route` is namespace/name, or empty; `digest` is the SHA-256 of its body."""

    source: str
    sender: str
    digest: str
    size: int
    route: str = ""


@dataclass(frozen=True, slots=True)
class AlertDraft:
    """An Alert to create.

    `body` is a text that is too large for the object: its SHA-256, by which the Alert refers to it, and the text.
    `incident_key` is spec.incidentKey.
    """

    namespace: str
    name: str
    manifest: Mapping[str, Any]
    body: tuple[str, str] | None = None
    incident_key: str | None = None


@dataclass(frozen=True, slots=True)
class Occurrence:
    """State of a group of alerts in a notification.

    `first` and `last` are the start times of the earliest and latest firing alert (of the resolved ones, where none
    fires); None: unknown. `draft` builds the Alert of a new incident from its start time and whether it stands for a
    storm; `namespace` is the namespace of that Alert.
    """

    route_uid: str
    group: str
    firing: bool
    first: datetime | None
    last: datetime | None
    storm_alerts: int
    storm_seconds: float
    draft: Callable[[datetime, bool], AlertDraft]
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Owed:
    """The Alert of an incident; `manifest` is None when the Alert has been created."""

    incident: UUID
    namespace: str
    name: str
    manifest: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Decision:
    """Fate of a notification with its reason, and the Alert that it led to (None: no Alert)."""

    fate: Fate
    reason: str
    alert: Owed | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """Counters of an incident for the status of its Alert; `revision` is noted after they were published."""

    id: UUID
    namespace: str
    alert: str
    alert_uid: str
    repeats: int
    folded: int
    last_received: datetime
    resolved_at: datetime | None
    revision: int


@dataclass(frozen=True, slots=True)
class Led:
    """The leading Alert of the incident of a key.

    `own`: the Alert that asked leads; `alert_uid` is None until the Alert is created. `recent`: the incident had a
    notification within QUIET_SECONDS; `resolved`: its sender reported it as resolved.
    """

    incident: UUID
    alert: str
    alert_uid: str | None
    own: bool
    recent: bool = True
    resolved: bool = False


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """Number of notifications of one fate and reason; `owed`: their Alert has not been created yet."""

    fate: Fate
    reason: str
    owed: bool
    notifications: int
    resends: int
