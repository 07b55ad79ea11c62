"""Defines failures as the Kubernetes API reports them: a code, a reason and a message in a `Status` body.

The messages are the real API's, word by word where clients or people look for them (k8s.io/apimachinery, api/errors
and util/validation/field).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class ApiError(Exception):
    """An unsuccessful response."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> dict[str, Any]:
        """Returns the `Status` body of the error."""
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return {**body, "code": self.code}


class PageNotFound(ApiError):
    """An unknown path; the real API answers it in plain text."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found")


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in one field; `reason` is the API's term, such as FieldValueInvalid."""

    reason: str
    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


def show(value: object) -> str:
    """Formats a value for messages."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def required(field: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, "Required value" + (f": {detail}" if detail else ""))


def wrong(field: str, value: object, detail: str) -> FieldError:
    """Returns the error of an invalid value; `field` is its path, `detail` the rule that it violates."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {show(value)}: {detail}")


def broken_rule(field: str, detail: str) -> FieldError:
    """A violated CEL rule; since 1.34 the message contains no value."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {detail}")


def wrong_type(field: str, found: str, expected: str) -> FieldError:
    """Returns the error of a value of the JSON type `found` where the schema expects `expected`."""
    detail = f"{field or '<root>'} in body must be of type {expected}: {show(found)}"
    return FieldError("FieldValueTypeInvalid", field, f"Invalid value: {show(found)}: {detail}")


def not_supported(field: str, value: object, allowed: Sequence[object]) -> FieldError:
    """Returns the error of a value that is not one of `allowed`."""
    shown = ", ".join(show(item) for item in allowed)
    return FieldError("FieldValueNotSupported", field, f"Unsupported value: {show(value)}: supported values: {shown}")


def not_permitted(field: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def duplicate(field: str, value: object) -> FieldError:
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {show(value)}")


def too_long(field: str, limit: int) -> FieldError:
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


def too_many(field: str, count: int, limit: int) -> FieldError:
    """Returns the error of a list with `count` items, of which at most `limit` are allowed."""
    return FieldError("FieldValueTooMany", field, f"Too many: {count}: must have at most {limit} items")


def _qualified(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def _details(group: str, kind: str, name: str | None, **more: object) -> dict[str, Any]:
    found = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in found.items() if value}


def not_found(group: str, plural: str, name: str) -> ApiError:
    """Returns 404 for an object: its `group`, `plural` and `name`."""
    message = f'{_qualified(group, plural)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(group, plural, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(group: str, plural: str, name: str) -> ApiError:
    """Returns 409 for an object that exists: its `group`, `plural` and `name`."""
    message = f'{_qualified(group, plural)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str = "") -> ApiError:
    """Returns 409 for a write to an outdated object; `why` replaces the usual reason."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {_qualified(group, plural)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(group, plural, name))


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """Returns 422 with the `errors` of an object."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": error.reason, "message": error.text, "field": error.field} for error in errors]
    message = f'{_qualified(group, kind)} "{name}" is invalid: {shown}'
    return ApiError(422, "Invalid", message, _details(group, kind, name, causes=causes))


def forbidden(group: str, plural: str, name: str | None, why: str) -> ApiError:
    """Returns 403 for a request to a resource, or to an object if `name` is set; `why` is the reason."""
    named = f' "{name}"' if name else ""
    message = f"{_qualified(group, plural)}{named} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, _details(group, plural, name))


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def no_such_method() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(known: Sequence[str]) -> ApiError:
    return ApiError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(known)}")


def unsupported_media(accepted: Sequence[str]) -> ApiError:
    shown = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {shown}"
    return ApiError(415, "UnsupportedMediaType", message)
