"""Defines the vocabulary of the kinds: base model, CEL rules, unique lists, bounded text.

Decision: a rule is written once, with its CEL text for the API server and its Python predicate for `parse`, because
API servers older than CEL (and people who bypass admission) must get the same answer; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

_Reason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]


@dataclass(frozen=True)
class ValidationRule:
    """One rule of a model: `cel` for the API server, `holds` for Python (None when it compares with the old object).

    `message` names the field and the remedy. `field` is the JSON name of the field it is about, if it is one field.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool] | None = None
    field: str | None = None
    reason: _Reason = "FieldValueInvalid"

    def validation(self) -> dict[str, str]:
        """The rule as one entry of `x-kubernetes-validations`."""
        entry = {"rule": self.cel, "message": self.message, "reason": self.reason}
        if self.field is not None:
            entry["fieldPath"] = f".{self.field}"
        return entry


class BrokenRules(ValueError):
    """The rules of one model that an object breaks; `parse` reports each of them by itself."""

    def __init__(self, rules: tuple[ValidationRule, ...]) -> None:
        super().__init__("; ".join(rule.message for rule in rules))
        self.rules = rules


class Model(BaseModel):
    """A frozen piece of an object: snake_case in Python, camelCase in JSON, unknown fields refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )
    RULES: ClassVar[tuple[ValidationRule, ...]] = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Adds the check of the rules; pydantic would call that of a model without rules as well, for each object."""
        schema = handler(source)
        return core_schema.no_info_after_validator_function(cls._rules_hold, schema) if cls.RULES else schema

    def _rules_hold(self) -> Self:
        broken = tuple(rule for rule in self.RULES if rule.holds is not None and not rule.holds(self))
        if broken:
            raise BrokenRules(broken)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        result = handler(schema)
        if cls.RULES:
            target = handler.resolve_ref_schema(result)
            target["x-kubernetes-validations"] = [rule.validation() for rule in cls.RULES]
        return result

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, without what is unset."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Lenient(Model):
    """A piece that others write too, or newer versions of us (metadata, status): unknown fields are dropped.

    Empty texts are not written: they say nothing, and Kubernetes 1.20 as Debian's Go builds it takes them for null.
    """

    model_config = ConfigDict(extra="ignore")

    @model_serializer(mode="wrap")
    def _without_empty_texts(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value != ""}


@dataclass(frozen=True)
class Unique:
    """Marks a list whose items differ by `key` (a list map), or differ at all (a set) when there is no key."""

    key: str | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        result = handler(schema)
        result["x-kubernetes-list-type"] = "set" if self.key is None else "map"
        if self.key is not None:
            result["x-kubernetes-list-map-keys"] = [self.key]
        return result

    def _check(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        seen = [item if self.key is None else getattr(item, self.key) for item in items]
        twice = sorted({str(value) for value in seen if seen.count(value) > 1})
        if twice:
            what = "values" if self.key is None else f"values of {self.key}"
            raise PydanticCustomError(
                "not_unique",
                "has {what} more than once: {twice}; keep one of each",
                {"what": what, "twice": ", ".join(twice)},
            )
        return items


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""The Unicode categories Cc, without tab and newline, and Cs."""


def clip(text: str, limit: int) -> str:
    """`text` without control characters (but tab and newline), cut to `limit` characters and 4 * `limit` stored bytes.

    Stored bytes are those of JSON as the API server writes it, which spends six on each of `<`, `>` and `&`.
    """
    clean = _CONTROL.sub("", text)
    if 3 * len(clean) <= 2 * limit or (len(clean) <= limit and _stored_bytes(clean) <= 4 * limit):
        return clean
    budget = 4 * limit - len("…".encode())
    kept: list[str] = []
    for char in clean[: limit - 1]:
        budget -= _stored_bytes(char)
        if budget < 0:
            break
        kept.append(char)
    return "".join(kept) + "…"


def _stored_bytes(text: str) -> int:
    more = 5 * sum(map(text.count, "<>&")) + 3 * sum(map(text.count, "\u2028\u2029")) + sum(map(text.count, '"\\\t\n'))
    return len(text.encode()) + more


def clipped(limit: int) -> BeforeValidator:
    """An annotation for text in a status: never refused for its size, always cut to fit (see `clip`)."""
    return BeforeValidator(lambda value: clip(value, limit) if isinstance(value, str) else value)


def whole_seconds(value: datetime) -> datetime:
    """The time as Kubernetes keeps times: UTC, without fractions of a second."""
    return value.astimezone(UTC).replace(microsecond=0)


def _rfc3339(value: datetime) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")


NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
KEY = r"^[-._a-zA-Z0-9]+$"
HTTP_URL = r"^https?://[^\s/?#]+[^\s]*$"
HOST_PORT = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$"
TOOL = r"^[A-Za-z0-9_./-]+$"
TOOL_PATTERN = r"^[A-Za-z0-9_./*-]+$"
ALERT_TYPE = r"^[A-Za-z0-9_:]([A-Za-z0-9_.:/ -]*[A-Za-z0-9_:])?$"
ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
HEADER_NAME = r"^[A-Za-z0-9!#$%&'*+.^_|~-]+$"
HEADER_VALUE = r"^[ -~]*$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
ALERT_LABEL = r"^[A-Za-z0-9_]([-A-Za-z0-9_.:/]*[A-Za-z0-9_])?$"
JSON_POINTER = r"^(/([^~/]|~[01])*)+$"
AUDIENCE = r"^[!-~]+$"
USERNAME = r"^[!-9;-~]+$"
IMAGE = r"^[a-z0-9][a-zA-Z0-9._/:@-]*$"
QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$"
SHA256 = r"^[0-9a-f]{64}$"

HINTS = {
    NAME: "must be a Kubernetes name: lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
    _LABEL: "must be lower-case letters, digits and '-', with a letter or digit at both ends",
    KEY: "must be a key of a ConfigMap or Secret: letters, digits, '-', '_' and '.'",
    HTTP_URL: "must be a URL that begins with http:// or https:// and has a host",
    HOST_PORT: "must be a host in lower case, optionally with a port (host:port)",
    TOOL: "must be the name of a tool: letters, digits, '_', '-', '.' and '/'",
    ALERT_TYPE: "must be letters, digits, '_', ':', and between them also '-', '.', '/' and spaces",
    ENV_NAME: "must be the name of an environment variable: letters, digits and '_', not starting with a digit",
    HEADER_NAME: "must be the name of an HTTP header",
    HEADER_VALUE: "must be printable ASCII on one line",
    LABEL_KEY: "must be a label key",
    LABEL_VALUE: "must be a label value",
    ALERT_LABEL: "must be the name of an alert label: letters, digits, '_', and between them also '-', '.', ':', '/'",
    JSON_POINTER: "must be a JSON pointer (RFC 6901), such as /alert/name",
    AUDIENCE: "must be printable ASCII without spaces",
    USERNAME: "must be printable ASCII without spaces and colons",
    IMAGE: "must be an image name, such as registry.example.com/tools:1.0",
    QUANTITY: "must be a Kubernetes quantity, such as 500m or 128Mi",
    SHA256: "must be 64 hexadecimal digits in lower case",
}

# As metav1.Time: whole seconds in UTC.
Time = Annotated[AwareDatetime, AfterValidator(whole_seconds), PlainSerializer(_rfc3339, when_used="json")]
ObjectName = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=NAME)]
LabelName = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=_LABEL)]
DataKey = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=KEY)]
HttpUrl = Annotated[str, StringConstraints(min_length=1, max_length=2048, pattern=HTTP_URL)]
HostPort = Annotated[str, StringConstraints(min_length=1, max_length=259, pattern=HOST_PORT)]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=TOOL)]
ToolPattern = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=TOOL_PATTERN)]
AlertType = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=ALERT_TYPE)]
Uid = Annotated[str, StringConstraints(min_length=1, max_length=64)]
