"""Reads events of Flux's notification controller, as its providers `generic` and `generic-hmac` send them.

An event of severity error fires. One of severity info ends the incident of its object if its reason says that the
object is reconciled; other infos, such as progress, are no incidents.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from tarsy.http.intake.formats.notification import NotAnIncident, Notification, SentModel, known

FLUX_TYPE = "FluxReconciliation"
"""Alert type of events whose AlertRoute sets none."""

_WELL = frozenset({"ReconciliationSucceeded", "Succeeded", "InstallSucceeded", "UpgradeSucceeded", "TestSucceeded"})


class _Object(SentModel):
    kind: str = Field(min_length=1)
    name: str = Field(min_length=1)
    namespace: str = ""


class _FluxEvent(SentModel):
    involved_object: _Object
    severity: Literal["info", "error", "trace"]
    reason: str = ""
    reporting_controller: str | None = None
    metadata: dict[str, str] | None = None


def _revision(metadata: Mapping[str, str]) -> str | None:
    """Returns the revision, whose key Flux sends alone or with the API group of the object before it."""
    return next((value for key, value in sorted(metadata.items()) if key.rpartition("/")[2] == "revision"), None)


def read_flux(document: Mapping[str, Any]) -> Notification:
    """Returns the notification of an event about an object of Flux.

    Raises:
        NotAnIncident: the event reports progress.
        pydantic.ValidationError: the document has not the format.
    """
    event = _FluxEvent.model_validate(document)
    firing = event.severity == "error"
    if not firing and event.reason not in _WELL:
        raise NotAnIncident
    about = event.involved_object
    return Notification(
        labels=known(
            {
                "kind": about.kind,
                "name": about.name,
                "namespace": about.namespace,
                "reason": event.reason,
                "controller": event.reporting_controller,
                "revision": _revision(event.metadata or {}),
            }
        ),
        group=f"{about.kind}/{about.namespace}/{about.name}",
        firing=firing,
        first=None,
        last=None,
        alert_type=FLUX_TYPE,
        severity=None,
    )
