"""Reads webhooks of Argo CD's notifications, whose body is the template that docs/senders.md gives.

An application fires while it is degraded or missing, or its last operation failed. It is resolved when it is healthy
and its last operation succeeded. What is between, such as a running sync, is no incident.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from tarsy.http.intake.formats.notification import NotAnIncident, Notification, SentModel, known

ARGOCD_TYPE = "ArgoCDApplication"
"""Alert type of applications whose AlertRoute sets none."""

_UNHEALTHY = frozenset({"Degraded", "Missing"})
_FAILED = frozenset({"Failed", "Error"})


class _Application(SentModel):
    application: str = Field(min_length=1)
    namespace: str = Field(min_length=1)
    health: str = Field(min_length=1)
    phase: str | None = None
    project: str | None = None
    sync: str | None = None
    revision: str | None = None
    destination_namespace: str | None = None
    url: str | None = None


def read_argocd(document: Mapping[str, Any]) -> Notification:
    """Returns the notification of an application.

    Raises:
        NotAnIncident: the application is neither failing nor well.
        pydantic.ValidationError: the document has not the format of the template.
    """
    application = _Application.model_validate(document)
    firing = application.health in _UNHEALTHY or application.phase in _FAILED
    if not firing and (application.health != "Healthy" or application.phase not in ("Succeeded", "", None)):
        raise NotAnIncident
    return Notification(
        labels=known(
            {
                "application": application.application,
                "namespace": application.destination_namespace,
                "project": application.project,
                "health": application.health,
                "phase": application.phase,
                "sync": application.sync,
                "revision": application.revision,
                "url": application.url,
            }
        ),
        group=f"{application.namespace}/{application.application}",
        firing=firing,
        first=None,
        last=None,
        alert_type=ARGOCD_TYPE,
        severity=None,
    )
