"""What was sent, read: Alertmanager's notification (version 4), a JSON object, or text.

Decision: one body is one notification and leads to one Alert at most, as its sender grouped it. So a route looks at the
labels that all of its firing alerts have in common; where they differ in a label it has none, as where it is missing.
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
    """A body that cannot be read; `reason` is a word for the ledger, the message says what is wrong and allowed."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class Notification:
    """A body as one route reads it.

    `group` is equal in all that is about one thing. `first` and `last` are since when the earliest and the latest of
    what fires does (of what ended, where nothing fires); None where nobody says. `differing` are labels that alerts of
    the group differ in.
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
    """A body that could be read; what it says depends on the route that reads it."""

    @property
    def source(self) -> BodyFormat:
        """How it came."""

    @property
    def text(self) -> str:
        """As it came."""

    def read(self, route: AlertRoute) -> Notification:
        """What it says."""


def parse_body(source: BodyFormat, content: bytes) -> IntakeBody:
    """Reads a body.

    Raises:
        BadBody: it is not what it should be.
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
    """A notification of Alertmanager; what does not depend on the route is worked out once."""

    text: str
    whole: Notification
    source: BodyFormat = "alertmanager"

    def read(self, route: AlertRoute) -> Notification:
        """What it says, by its own groups or those of the route."""
        by = route.spec.group_by
        return replace(self.whole, group=_equal(self.whole.labels, by)) if by else self.whole


def _of_group(group: _Group) -> Notification:
    firing = [alert for alert in group.alerts if alert.status == "firing"] if group.status == "firing" else []
    looked_at = firing or list(group.alerts)
    common, differing = _common([alert.labels for alert in looked_at])
    if group.truncated_alerts:  # the rest is known to Alertmanager only
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
    """A JSON object of any form; the route says what is where."""

    text: str
    document: Mapping[str, Any]
    source: BodyFormat = "json"

    def read(self, route: AlertRoute) -> Notification:
        """What it says, by the fields that the route names."""
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
    """A text, which says nothing to a machine: equal texts are about one thing."""

    text: str
    source: BodyFormat = "text"

    def read(self, route: AlertRoute) -> Notification:
        """That it is there."""
        return Notification({SOURCE_LABEL: self.source}, _digest(self.text), True, None, None, None, None)


def _common(labels: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], set[str]]:
    """The labels that all have alike, and the names of the others."""
    first, *others = labels
    common = {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}
    return common, {name for one in labels for name in one} - common.keys()


def _equal(labels: Mapping[str, str], by: Sequence[str]) -> str:
    return orjson.dumps({name: labels.get(name, "") for name in by}, option=orjson.OPT_SORT_KEYS).decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _find(document: Any, pointer: str | None) -> Any:
    """What a JSON pointer leads to; None where it leads nowhere."""
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
    """A point in time as JSON has it: RFC 3339, or seconds since 1970."""
    try:
        if isinstance(value, str):
            return _TIME.validate_python(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValidationError, ValueError, OverflowError, OSError):
        return None
    return None


def _alert_type(name: str | None) -> str | None:
    """A name as an Alert may have it for its type."""
    return _NOT_OF_A_TYPE.sub("_", name or "")[:253].strip("-./ ") or None


def _severity(word: str | None) -> Severity | None:
    return _SEVERITIES.get((word or "").lower())
