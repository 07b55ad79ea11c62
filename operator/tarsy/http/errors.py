"""Defines the errors of the HTTP API: a class for each HTTP status, with the reason that the Kubernetes API uses.

Decision: handlers raise these errors; each frontend formats them for its clients. The caller reads the message, so it
never contains data that the caller may not read, and never a token.
"""

from collections.abc import Mapping


class HttpError(Exception):
    """Base of errors that are sent to the caller.

    Args:
        message: a sentence for the caller.
        headers: additional headers of the response.

    `reason` is the machine-readable reason: that of metav1.Status if it has one.
    """

    status = 500
    reason = "InternalError"

    def __init__(self, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.headers = dict(headers or {})


class BadRequest(HttpError):
    """A parameter or the body is invalid; the message names it and the allowed values."""

    status, reason = 400, "BadRequest"


class Unauthorized(HttpError):
    """The request is not authenticated."""

    status, reason = 401, "Unauthorized"

    def __init__(self, message: str = "a valid bearer token is required", *, challenge: str = "Bearer") -> None:
        super().__init__(message, headers={"WWW-Authenticate": challenge})


class Forbidden(HttpError):
    """The caller is not authorized. Raised before anything is looked up."""

    status, reason = 403, "Forbidden"


class NotFound(HttpError):
    """The object does not exist. Raised only after the caller was authorized to read it."""

    status, reason = 404, "NotFound"


class MethodNotAllowed(HttpError):
    """The path does not support the method."""

    status, reason = 405, "MethodNotAllowed"


class Conflict(HttpError):
    """The current state of the object does not allow the request."""

    status, reason = 409, "Conflict"


class TooLarge(HttpError):
    """The body exceeds the size limit."""

    status, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(HttpError):
    """The content type or coding of the body is not supported."""

    status, reason = 415, "UnsupportedMediaType"


class Unprocessable(HttpError):
    """The Kubernetes API rejected the object as invalid."""

    status, reason = 422, "Invalid"


class TooManyRequests(HttpError):
    """The caller has too many concurrent requests or connections."""

    status, reason = 429, "TooManyRequests"


class Unavailable(HttpError):
    """A dependency is unavailable; the same request may succeed later.

    Args:
        message: a sentence for the caller.
        retry_after: seconds, sent as Retry-After.
    """

    status, reason = 503, "ServiceUnavailable"

    def __init__(self, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message, headers={"Retry-After": str(retry_after)})


class TimedOut(HttpError):
    """The request exceeded its maximum duration."""

    status, reason = 504, "Timeout"


class Relayed(HttpError):
    """An error of the Kubernetes API for a request that was sent with the caller's token.

    Args:
        status: HTTP status.
        reason: reason of the metav1.Status.
        message: message of the metav1.Status.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
