"""Reads webhooks of Datadog, whose payload is the template that docs/senders.md gives.

Datadog has no payload of its own that says whether a monitor triggered or recovered: `$ALERT_TRANSITION` does.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from tarsy.http.intake.formats.notification import NotAnIncident, Notification, SentModel, known
from tarsy.resources.v1alpha1.alert import Severity

DATADOG_TYPE = "DatadogMonitor"
"""Alert type of monitors whose AlertRoute sets none."""

_OPEN = frozenset({"triggered", "re-triggered", "no data", "re-no data", "warn", "re-warn", "renotify"})
_RESOLVED = "recovered"
_PRIORITIES: Mapping[str, Severity] = {
    "p1": "Critical",
    "p2": "Critical",
    "p3": "Warning",
    "p4": "Info",
    "p5": "Info",
}


class _Monitor(SentModel):
    alert_id: str = Field(min_length=1)
    cycle: str = Field(min_length=1)
    transition: str = Field(min_length=1)
    title: str | None = None
    priority: str | None = None
    scope: str | None = None
    tags: str | None = None
    link: str | None = None


def read_datadog(document: Mapping[str, Any]) -> Notification:
    """Returns the notification of a monitor; its tags `name:value` are labels.

    Raises:
        NotAnIncident: the transition is neither a trigger nor a recovery.
        pydantic.ValidationError: the document has not the format of the template.
    """
    monitor = _Monitor.model_validate(document)
    transition = monitor.transition.strip().lower()
    if transition not in _OPEN and transition != _RESOLVED:
        raise NotAnIncident
    own = {
        "monitor": monitor.alert_id,
        "title": monitor.title,
        "priority": monitor.priority,
        "scope": monitor.scope,
        "url": monitor.link,
    }
    return Notification(
        labels={**_labels_of(monitor.tags), **known(own)},
        group=f"{monitor.alert_id}/{monitor.cycle}",
        firing=transition != _RESOLVED,
        first=None,
        last=None,
        alert_type=DATADOG_TYPE,
        severity=_PRIORITIES.get((monitor.priority or "").lower()),
    )


def _labels_of(tags: str | None) -> dict[str, str]:
    """Returns the tags of the form `name:value`, the first of a name."""
    found: dict[str, str] = {}
    for tag in (tags or "").split(","):
        name, colon, value = tag.strip().partition(":")
        if name and colon and value:
            found.setdefault(name, value)
    return found
