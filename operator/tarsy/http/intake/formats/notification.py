"""Defines what a body says about an alert group, and the helpers that the formats share."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from tarsy.resources.v1alpha1.alert import Severity

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


class NotAnIncident(Exception):
    """A body is valid, but reports neither the start nor the end of an incident, such as a comment or a test."""


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


class SentModel(BaseModel):
    """A part of a body. Fields that it does not name are ignored, because senders add some in any version."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


def known(labels: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the labels that have a value."""
    return {name: value for name, value in labels.items() if value}


def scalar(value: Any) -> str | None:
    """Returns a JSON value as the text of a label; None: it is an object, a list or null."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return str(value)
        case _:
            return None


def instant(value: Any) -> datetime | None:
    """Parses a time: RFC 3339, or seconds since 1970; None: it is neither."""
    try:
        if isinstance(value, str):
            return _TIME.validate_python(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValidationError, ValueError, OverflowError, OSError):
        return None
    return None


def as_alert_type(name: str | None) -> str | None:
    """Converts a name to a valid alert type."""
    return _NOT_OF_A_TYPE.sub("_", name or "")[:253].strip("-./ ") or None


def as_severity(word: str | None) -> Severity | None:
    """Converts the word of a sender to a severity; None: it is not known."""
    return _SEVERITIES.get((word or "").lower())
