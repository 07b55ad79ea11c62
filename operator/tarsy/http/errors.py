"""What a request can be refused with: one class, an HTTP status and a word of the Kubernetes API each.

Decision: handlers raise these whatever the door; the door writes them as its clients expect. A message is for the
caller, so it never holds what the caller may not read, and never a token.
"""

from collections.abc import Mapping


class HttpError(Exception):
    """A request that is answered with an error.

    `reason` is the machine-readable word (that of metav1.Status where it has one), `headers` go with the answer.
    """

    status = 500
    reason = "InternalError"

    def __init__(self, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.headers = dict(headers or {})


class BadRequest(HttpError):
    """A parameter or the body is wrong; the message names it and what is allowed."""

    status, reason = 400, "BadRequest"


class Unauthorized(HttpError):
    """Nobody knows who asks."""

    status, reason = 401, "Unauthorized"

    def __init__(self, message: str = "a valid bearer token is required", *, challenge: str = "Bearer") -> None:
        super().__init__(message, headers={"WWW-Authenticate": challenge})


class Forbidden(HttpError):
    """The caller may not; said before anything is looked up."""

    status, reason = 403, "Forbidden"


class NotFound(HttpError):
    """There is no such thing; said only to those who may read it."""

    status, reason = 404, "NotFound"


class MethodNotAllowed(HttpError):
    """The path is right, the method is not."""

    status, reason = 405, "MethodNotAllowed"


class Conflict(HttpError):
    """The state of the thing does not allow it now."""

    status, reason = 409, "Conflict"


class TooLarge(HttpError):
    """The body is over the limit."""

    status, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(HttpError):
    """The body is not of the one type that is read."""

    status, reason = 415, "UnsupportedMediaType"


class Unprocessable(HttpError):
    """The Kubernetes API found the object invalid."""

    status, reason = 422, "Invalid"


class TooManyRequests(HttpError):
    """More than one caller may have at once."""

    status, reason = 429, "TooManyRequests"


class Unavailable(HttpError):
    """What is needed to answer is away; the same request may succeed later."""

    status, reason = 503, "ServiceUnavailable"

    def __init__(self, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message, headers={"Retry-After": str(retry_after)})


class TimedOut(HttpError):
    """The answer took longer than a request may."""

    status, reason = 504, "Timeout"


class Relayed(HttpError):
    """What the Kubernetes API said to a request that was made as the caller."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
