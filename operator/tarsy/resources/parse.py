"""Parses an object of the Kubernetes API or of a file into a Resource, or reports all its errors at once.

Decision: only JSON names are accepted here, and values are never echoed, since a value may be a secret. A status that
this version cannot read counts as empty: it is rebuilt, and must not keep an object from being seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tarsy.resources.meta import API_VERSION, AnyResource
from tarsy.resources.schema import HINTS, BrokenRules
from tarsy.resources.v1alpha1 import KINDS

_R = TypeVar("_R", bound=AnyResource)


@dataclass(frozen=True)
class FieldError:
    """An error in one field; `path` is its JSON path, such as `spec.stages[0].agents[1].name`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidResource(ValueError):
    """An object that is not valid, with every error."""

    def __init__(self, kind: str, name: str, errors: tuple[FieldError, ...]) -> None:
        super().__init__(f"{kind} {name} is not valid: " + "; ".join(map(str, errors)))
        self.kind = kind
        self.name = name
        self.errors = errors


def parse_object(obj: Mapping[str, Any]) -> AnyResource:
    """The object as its kind's model.

    Raises:
        InvalidResource: with every error, by field path.
    """
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    kind = str(obj.get("kind") or "object")
    name = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key)) or "without a name"
    model = KINDS.get(kind)
    if model is None or obj.get("apiVersion") != API_VERSION:
        known = ", ".join(KINDS)
        field = FieldError(
            "kind" if model is None else "apiVersion", f"must be one of the kinds {known} of {API_VERSION}"
        )
        raise InvalidResource(kind, name, (field,))
    # Rules of the whole object are looked at only when its parts are good: a bad status must not hide a broken one.
    for document in (obj, {key: value for key, value in obj.items() if key != "status"}):
        try:
            return _validate(model, document)
        except orjson.JSONEncodeError as error:
            raise InvalidResource(kind, name, (FieldError("", f"cannot be encoded as JSON: {error}"),)) from None
        except ValidationError as error:
            details = [d for d in error.errors(include_url=False) if d["loc"][:1] != ("status",)]
            if details:
                raise InvalidResource(kind, name, tuple(e for d in details for e in _errors(d))) from None
    raise AssertionError("an object without a status has no error in its status")


def parse_as(kind: type[_R], obj: Mapping[str, Any]) -> _R:
    """The object as that kind's model.

    Raises:
        InvalidResource: with every error, or because the object is of another kind.
    """
    resource = parse_object(obj)
    if not isinstance(resource, kind):
        raise InvalidResource(resource.KIND, resource.key, (FieldError("kind", f"must be {kind.KIND}"),))
    return resource


def parse_valid(kind: type[_R], objects: Iterable[Mapping[str, Any]]) -> list[_R]:
    """Returns the valid objects of a list; the others report their errors in their status.

    Args:
        kind: the kind of the objects.
        objects: as the Kubernetes API listed them.
    """
    found = (valid_or_none(kind, obj) for obj in objects)
    return [resource for resource in found if resource is not None]


def valid_or_none(kind: type[_R], obj: Mapping[str, Any] | None) -> _R | None:
    """Returns the object as that kind's model; None if it does not exist or is not valid."""
    try:
        return None if obj is None else parse_as(kind, obj)
    except InvalidResource:
        return None


def _validate(model: type[AnyResource], obj: Mapping[str, Any]) -> AnyResource:
    """Validates JSON strictly, as the API server does: "3" is not a number there."""
    document = orjson.dumps(obj, option=orjson.OPT_NON_STR_KEYS)
    return model.model_validate_json(document, strict=True, by_alias=True, by_name=False)


def _errors(detail: ErrorDetails) -> Iterator[FieldError]:
    if detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]:
        return  # pydantic counts the good items only; the bad ones have errors of their own
    path = _path(detail["loc"])
    cause = detail.get("ctx", {}).get("error")
    if not isinstance(cause, BrokenRules):
        yield FieldError(path, _sentence(detail))
        return
    for rule in cause.rules:
        yield FieldError(".".join(part for part in (path, rule.field) if part), rule.message)


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _sentence(detail: ErrorDetails) -> str:
    limits = detail.get("ctx", {})
    match detail["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "is not a field of this kind; check its spelling"
        case "string_too_long":
            return f"must have at most {limits['max_length']} characters"
        case "string_too_short":
            return (
                "must not be empty"
                if limits["min_length"] == 1
                else f"must have at least {limits['min_length']} characters"
            )
        case "string_pattern_mismatch":
            return HINTS.get(limits["pattern"], f"must match {limits['pattern']}")
        case "too_long":
            return f"must have at most {limits['max_length']} items, but has {limits['actual_length']}"
        case "too_short":
            return (
                "must not be empty" if limits["min_length"] == 1 else f"must have at least {limits['min_length']} items"
            )
        case "literal_error":
            return f"must be {limits['expected']}"
        case "greater_than_equal":
            return f"must be at least {limits['ge']}"
        case "less_than_equal":
            return f"must be at most {limits['le']}"
        case "string_type":
            return "must be a string; put numbers and true or false in quotes"
        case "int_type" | "int_parsing" | "int_from_float":
            return "must be a whole number"
        case "bool_type" | "bool_parsing":
            return "must be true or false"
        case "tuple_type" | "list_type":
            return "must be a list"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "must be an object"
        case _:
            message = detail["msg"]
            return message[:1].lower() + message[1:]
