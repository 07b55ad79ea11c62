"""Parses the body of a notification: of a sender whose format is known, a JSON object, or text.

Decision: one body leads to at most one Alert. What it says is the sender's word; the AlertRoute may group it otherwise.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson
from pydantic import ValidationError

from tarsy.http.bodies import JSON_DEPTH, depth_of
from tarsy.http.intake.body_format import BodyFormat
from tarsy.http.intake.formats.alertmanager import read_alertmanager, read_grafana
from tarsy.http.intake.formats.argocd import read_argocd
from tarsy.http.intake.formats.datadog import read_datadog
from tarsy.http.intake.formats.flux import read_flux
from tarsy.http.intake.formats.notification import (
    BadBody,
    Notification,
    as_alert_type,
    as_severity,
    instant,
    scalar,
)
from tarsy.http.intake.formats.pagerduty import read_pagerduty
from tarsy.plan.matching import SOURCE_LABEL
from tarsy.record.json_pointer import find_pointer
from tarsy.resources.v1alpha1.alert_route import AlertRoute, JsonFields

INTAKE_BODY_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class _Reader:
    """Holds the parser for the bodies of a sender, and their name in errors."""

    read: Callable[[Mapping[str, Any]], Notification]
    what: str


_READERS: Mapping[BodyFormat, _Reader] = {
    "alertmanager": _Reader(read_alertmanager, "a notification of Alertmanager (version 4)"),
    "grafana": _Reader(read_grafana, "a webhook of Grafana's alerting"),
    "pagerduty": _Reader(read_pagerduty, "a webhook of PagerDuty (version 3)"),
    "datadog": _Reader(read_datadog, "a webhook of Datadog with the payload of docs/senders.md"),
    "argocd": _Reader(read_argocd, "a webhook of Argo CD with the template of docs/senders.md"),
    "flux": _Reader(read_flux, "an event of Flux's notification controller"),
}


class IntakeBody(Protocol):
    """A parsed body; its notification depends on the AlertRoute."""

    @property
    def source(self) -> BodyFormat:
        """Format of the body."""

    @property
    def text(self) -> str:
        """The received text."""

    def read(self, route: AlertRoute) -> Notification:
        """Returns the notification for a route."""


def parse_body(source: BodyFormat, content: bytes) -> IntakeBody:
    """Parses a body.

    Raises:
        BadBody: the body does not have the format.
        NotAnIncident: it reports neither the start nor the end of one.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadBody("NotUtf8", f"the body is not valid UTF-8 (byte {error.start})") from None
    if not text.strip():
        raise BadBody("Empty", "the body is empty; send the alert in it")
    if source == "text":
        return TextBody(text)
    if depth_of(content) > JSON_DEPTH:
        raise BadBody("TooDeep", f"the body nests more than {JSON_DEPTH} levels deep; send at most {JSON_DEPTH} levels")
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BadBody("NotJson", f"the body is not valid JSON (line {error.lineno}, column {error.colno})") from None
    if not isinstance(document, dict):
        raise BadBody("Invalid", "the body is JSON, but not an object")
    reader = _READERS.get(source)
    if reader is None:
        return JsonBody(text, document)
    try:
        return SentBody(text, reader.read(document), source)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(step)[:64] for step in first["loc"])
        raise BadBody("Invalid", f"the body is not {reader.what}: {where}: {first['msg']}") from None


@dataclass(frozen=True, slots=True)
class SentBody:
    """A notification of a sender whose format is known."""

    text: str
    whole: Notification
    source: BodyFormat

    def read(self, route: AlertRoute) -> Notification:
        """Returns the notification, grouped by its sender or by the route."""
        by, labels = route.spec.group_by, self.whole.labels
        group = _equal(labels, by) if by else self.whole.group
        return replace(self.whole, labels={**labels, SOURCE_LABEL: self.source}, group=group)


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A JSON object of any form; the route maps its fields."""

    text: str
    document: Mapping[str, Any]
    source: BodyFormat = "json"

    def read(self, route: AlertRoute) -> Notification:
        """Returns the notification, from the fields that the route names."""
        at = route.spec.json_fields or JsonFields()
        about = find_pointer(self.document, at.labels) if at.labels else self.document
        scalars = {name: scalar(value) for name, value in about.items()} if isinstance(about, dict) else {}
        labels = {name: value for name, value in scalars.items() if value is not None}
        status = scalar(_at(self.document, at.status))
        begun = instant(_at(self.document, at.starts_at))
        key = _at(self.document, at.group_key)
        if key is not None:
            group = orjson.dumps(key, option=orjson.OPT_SORT_KEYS).decode()
        else:
            group = _equal(labels, route.spec.group_by) if route.spec.group_by else _digest(self.text)
        return Notification(
            labels={**labels, SOURCE_LABEL: self.source},
            group=group,
            firing=status is None or status.lower() not in {value.lower() for value in at.resolved_values},
            first=begun,
            last=begun,
            alert_type=as_alert_type(scalar(_at(self.document, at.alert_type)) or labels.get("alertname")),
            severity=as_severity(scalar(_at(self.document, at.severity)) or labels.get("severity")),
        )


@dataclass(frozen=True, slots=True)
class TextBody:
    """A plain text; equal texts belong to one group."""

    text: str
    source: BodyFormat = "text"

    def read(self, route: AlertRoute) -> Notification:
        """Returns a firing notification without labels."""
        return Notification({SOURCE_LABEL: self.source}, _digest(self.text), True, None, None, None, None)


def _equal(labels: Mapping[str, str], by: Sequence[str]) -> str:
    return orjson.dumps({name: labels.get(name, "") for name in by}, option=orjson.OPT_SORT_KEYS).decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _at(document: Any, pointer: str | None) -> Any:
    """Returns the value at a pointer of a route; None: the route names none, or there is none."""
    return find_pointer(document, pointer) if pointer else None
