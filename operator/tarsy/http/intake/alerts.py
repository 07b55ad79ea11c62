"""Builds the Alert of a new incident.

Decision: its name consists of its type and a hash of the incident key, so creating it is idempotent. The text is masked
before it is written anywhere. If it is too large for an object, the object contains a preview and a reference.
"""

import hashlib
import re
from datetime import UTC, datetime
from typing import Any

from tarsy.http.authentication.identity import Caller
from tarsy.http.intake.formats.notification import Notification
from tarsy.http.intake.routing import target
from tarsy.http.intake.texts import placed
from tarsy.kube.access import service_account_subject
from tarsy.record.text import clean
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1 import Alert
from tarsy.resources.v1alpha1.alert_route import AlertRoute, Storm
from tarsy.resources.v1alpha1.common import MAX_GROUP, MAX_GROUPS
from tarsy.store.intake import AlertDraft

ROUTE_ANNOTATION = "tarsy.dev/alert-route"
"""Annotation of an Alert: namespace and name of its AlertRoute."""

_NOT_OF_A_NAME = re.compile(r"[^a-z0-9]+")


def group_hash(route: AlertRoute, notification: Notification) -> str:
    """Returns the hash that all notifications of one alert group share."""
    parts = (route.metadata.namespace, route.metadata.name, notification.labels["__source__"], notification.group)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def draft_alert(
    route: AlertRoute,
    notification: Notification,
    alert_type: str,
    author: Caller,
    masked: str,
    *,
    begun: datetime,
    storm: bool,
) -> AlertDraft:
    """Builds the Alert of an incident.

    Args:
        route: the matching AlertRoute.
        notification: the first notification of the incident.
        alert_type: type of the Alert.
        author: author of the Alert.
        masked: the body, with secrets masked.
        begun: time since which it fires.
        storm: whether it is the parent alert of a storm.
    """
    spec, namespace = route.spec, target(route)
    key = f"{group_hash(route, notification)}@{begun.astimezone(UTC).isoformat()}"
    name = f"{_word(alert_type)}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    text, chain = clean(masked), spec.chain_ref
    if storm:
        limit = spec.storm or Storm()
        chain = limit.chain_ref or chain
        text += (
            f"\n\nThis alert stands for an alert storm: AlertRoute {route.key} received more than {limit.alerts} new "
            f"alerts within {limit.seconds} seconds. Further alerts are only counted in its status."
        )
    place = placed(text)
    said: dict[str, Any] = {
        "alertType": alert_type,
        **place.spec,
        "incidentKey": key,
        "severity": spec.severity or notification.severity,
        "chainRef": {"name": chain.name} if chain else None,
        "budget": spec.budget.to_dict() if spec.budget else None,
        "author": _author(author),
        "reader": _reader(route),
    }
    manifest = {
        "apiVersion": API_VERSION,
        "kind": Alert.KIND,
        "metadata": {"name": name, "namespace": namespace, "annotations": {ROUTE_ANNOTATION: route.key}},
        "spec": {field: value for field, value in said.items() if value is not None},
    }
    return AlertDraft(namespace, name, manifest, place.body, key)


def _reader(route: AlertRoute) -> dict[str, Any] | None:
    """Returns `spec.reader`: the ServiceAccount that the route names in its own namespace, as for its senders."""
    if route.spec.reader is None:
        return None
    subject = service_account_subject(route.metadata.namespace, route.spec.reader.service_account_name)
    return _author(Caller(subject.username, groups=subject.groups))


def _author(caller: Caller) -> dict[str, Any]:
    """Returns `spec.author`, with groups truncated as in admission: fewer groups mean fewer permissions."""
    groups = [group for group in caller.groups if 0 < len(group) <= MAX_GROUP][:MAX_GROUPS]
    author: dict[str, Any] = {"username": caller.username, "uid": caller.uid, "groups": groups}
    return {field: value for field, value in author.items() if value}


def _word(alert_type: str) -> str:
    """Converts an alert type to the beginning of an object name."""
    return _NOT_OF_A_NAME.sub("-", alert_type.lower()).strip("-")[:40].strip("-") or "alert"
