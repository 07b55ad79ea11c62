"""Parses the body of a notification: of Alertmanager (version 4), a JSON object, or text.

Decision: one body is one notification, grouped by its sender, and leads to at most one Alert. So routes match the
labels that all firing alerts of the group share; a label in which they differ counts as missing.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from tarsy.http.bodies import JSON_DEPTH, depth_of
from tarsy.plan.matching import SOURCE_LABEL
from tarsy.resources.v1alpha1.alert import Severity
from tarsy.resources.v1alpha1.alert_route import AlertRoute, JsonFields

BodyFormat = Literal["alertmanager", "json", "text"]
INTAKE_BODY_BYTES = 1_048_576
_SEVERITIES: Mapping[str, Severity] = {"critical": "Critical", "warning": "Warning", "info": "Info", "none": "Info"}
_NOT_OF_A_TYPE = re.compile(r"[^A-Za-z0-9_.:/ -]")
_TIME = TypeAdapter[datetime](AwareDatetime)


class BadBody(Exception):
    """A body cannot be parsed.

    Args:
        reason: one CamelCase word, for the record.
        message: names the error and the allowed format.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class Notification:
    """A body as one AlertRoute reads it.

    `group` identifies the alert group. `first` and `last` are the start times of the earliest and the latest firing
    alert (of the resolved ones if none fires); None if unknown. `differing` are labels in which alerts of the group
    differ.
    """

    labels: Mapping[str, str]
    group: str
    firing: bool
    first: datetime | None
    last: datetime | None
    alert_type: str | None
    severity: Severity | None
    differing: frozenset[str] = field(default_factory=frozenset)


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
    if source == "json":
        return JsonBody(text, document)
    try:
        return AlertmanagerBody(text, _of_group(_Group.model_validate(document)))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(step)[:64] for step in first["loc"])
        raise BadBody(
            "Invalid", f"the body is not a notification of Alertmanager (version 4): {where}: {first['msg']}"
        ) from None


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


class _OneAlert(_Wire):
    status: Literal["firing", "resolved"] = "firing"
    labels: dict[str, str] = Field(default_factory=dict)
    starts_at: AwareDatetime


class _Group(_Wire):
    version: Literal["4"]
    group_key: str = Field(min_length=1)
    status: Literal["firing", "resolved"]
    alerts: tuple[_OneAlert, ...] = Field(min_length=1)
    common_labels: dict[str, str] = Field(default_factory=dict)
    truncated_alerts: int = 0


@dataclass(frozen=True, slots=True)
class AlertmanagerBody:
    """A notification of Alertmanager."""

    text: str
    whole: Notification
    source: BodyFormat = "alertmanager"

    def read(self, route: AlertRoute) -> Notification:
        """Returns the notification, grouped by Alertmanager or by the route."""
        by = route.spec.group_by
        return replace(self.whole, group=_equal(self.whole.labels, by)) if by else self.whole


def _of_group(group: _Group) -> Notification:
    firing = [alert for alert in group.alerts if alert.status == "firing"] if group.status == "firing" else []
    looked_at = firing or list(group.alerts)
    common, differing = _common([alert.labels for alert in looked_at])
    if group.truncated_alerts:  # only Alertmanager knows the labels of the rest
        common = group.common_labels
    earliest = min(looked_at, key=lambda alert: alert.starts_at)
    return Notification(
        labels={**common, SOURCE_LABEL: "alertmanager"},
        group=group.group_key,
        firing=bool(firing),
        first=earliest.starts_at,
        last=max(alert.starts_at for alert in looked_at),
        alert_type=_alert_type(common.get("alertname") or earliest.labels.get("alertname")),
        severity=_severity(common.get("severity")),
        differing=frozenset(differing),
    )


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A JSON object of any form; the route maps its fields."""

    text: str
    document: Mapping[str, Any]
    source: BodyFormat = "json"

    def read(self, route: AlertRoute) -> Notification:
        """Returns the notification, from the fields that the route names."""
        at = route.spec.json_fields or JsonFields()
        about = _find(self.document, at.labels) if at.labels else self.document
        scalars = {name: _scalar(value) for name, value in about.items()} if isinstance(about, dict) else {}
        labels = {name: value for name, value in scalars.items() if value is not None}
        status = _scalar(_find(self.document, at.status))
        begun = _time(_find(self.document, at.starts_at))
        key = _find(self.document, at.group_key)
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
            alert_type=_alert_type(_scalar(_find(self.document, at.alert_type)) or labels.get("alertname")),
            severity=_severity(_scalar(_find(self.document, at.severity)) or labels.get("severity")),
        )


@dataclass(frozen=True, slots=True)
class TextBody:
    """A plain text; equal texts belong to one group."""

    text: str
    source: BodyFormat = "text"

    def read(self, route: AlertRoute) -> Notification:
        """Returns a firing notification without labels."""
        return Notification({SOURCE_LABEL: self.source}, _digest(self.text), True, None, None, None, None)


def _common(labels: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], set[str]]:
    """Returns the common labels, and the names of the differing ones."""
    first, *others = labels
    common = {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}
    return common, {name for one in labels for name in one} - common.keys()


def _equal(labels: Mapping[str, str], by: Sequence[str]) -> str:
    return orjson.dumps({name: labels.get(name, "") for name in by}, option=orjson.OPT_SORT_KEYS).decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _find(document: Any, pointer: str | None) -> Any:
    """Resolves a JSON pointer; None if it does not resolve."""
    found = document
    for step in pointer.split("/")[1:] if pointer else ():
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isdecimal() and len(name) < 10 and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found if pointer else None


def _scalar(value: Any) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return str(value)
        case _:
            return None


def _time(value: Any) -> datetime | None:
    """Parses a time: RFC 3339, or seconds since 1970."""
    try:
        if isinstance(value, str):
            return _TIME.validate_python(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValidationError, ValueError, OverflowError, OSError):
        return None
    return None


def _alert_type(name: str | None) -> str | None:
    """Converts a name to a valid alert type."""
    return _NOT_OF_A_TYPE.sub("_", name or "")[:253].strip("-./ ") or None


def _severity(word: str | None) -> Severity | None:
    return _SEVERITIES.get((word or "").lower())
