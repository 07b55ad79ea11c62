"""Reads webhooks of PagerDuty (version 3): one event of one incident.

An incident that is opened again starts anew at that time. Comments, status updates and the test event of PagerDuty are
no incidents.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import AwareDatetime, Field

from tarsy.http.intake.formats.notification import NotAnIncident, Notification, SentModel, known
from tarsy.resources.v1alpha1.alert import Severity

PAGERDUTY_TYPE = "PagerDutyIncident"
"""Alert type of incidents whose AlertRoute sets none."""

_REOPENED, _RESOLVED = "incident.reopened", "incident.resolved"
_OPEN = frozenset(
    f"incident.{what}"
    for what in (
        "triggered",
        "acknowledged",
        "unacknowledged",
        "escalated",
        "delegated",
        "reassigned",
        "priority_updated",
        "service_updated",
    )
)
_URGENCIES: Mapping[str, Severity] = {"high": "Critical", "low": "Warning"}


class _Named(SentModel):
    summary: str | None = None


class _Incident(SentModel):
    id: str = Field(min_length=1)
    title: str | None = None
    html_url: str | None = Field(default=None, alias="html_url")
    created_at: AwareDatetime | None = Field(default=None, alias="created_at")
    incident_key: str | None = Field(default=None, alias="incident_key")
    urgency: str | None = None
    service: _Named | None = None
    priority: _Named | None = None


class _Kind(SentModel):
    event_type: str = Field(alias="event_type", min_length=1)


class _AnyEvent(SentModel):
    event: _Kind


class _Event(_Kind):
    occurred_at: AwareDatetime = Field(alias="occurred_at")
    data: _Incident


class _IncidentEvent(SentModel):
    event: _Event


def read_pagerduty(document: Mapping[str, Any]) -> Notification:
    """Returns the notification of an event.

    Raises:
        NotAnIncident: the event is not about the state of an incident.
        pydantic.ValidationError: the document has not the format.
    """
    kind = _AnyEvent.model_validate(document).event.event_type
    if kind not in _OPEN and kind not in (_REOPENED, _RESOLVED):
        raise NotAnIncident
    event = _IncidentEvent.model_validate(document).event
    incident = event.data
    began = event.occurred_at if kind == _REOPENED else incident.created_at
    return Notification(
        labels=known(
            {
                "incident": incident.id,
                "title": incident.title,
                "url": incident.html_url,
                "incident_key": incident.incident_key,
                "urgency": incident.urgency,
                "service": incident.service.summary if incident.service else None,
                "priority": incident.priority.summary if incident.priority else None,
            }
        ),
        group=incident.id,
        firing=kind != _RESOLVED,
        first=began,
        last=began,
        alert_type=PAGERDUTY_TYPE,
        severity=_URGENCIES.get(incident.urgency or ""),
    )
